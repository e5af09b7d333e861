/**
 * The corpus in fixtures/wire: its inputs, what other servers answer to them, and the page that lists the inputs which only other
 * servers accept.
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { ROOT } from './harness.ts';

/** Absolute path of the corpus folder. */
export const WIRE_FOLDER: string = path.join(ROOT, 'fixtures/wire');

/**
 * Bytes that a client sends, as latin1. Our server either refuses them with `status`, or reads them as requests for the targets
 * `paths`.
 */
export interface WireRequest {
	/** Base name of the file that contains the request. */
	readonly group: string;
	readonly name: string;
	readonly why: string;
	readonly bytes: string;
	readonly status?: number;
	readonly paths?: readonly string[];
}

/** Bytes that an upstream sends, as latin1, and the response that the client gets. */
export interface WireAnswer {
	readonly name: string;
	readonly why: string;
	readonly bytes: string;
	readonly status: number;
	/** Body that the client must get. Not compared if undefined. */
	readonly body?: string;
}

/**
 * The targets of the requests that other servers accept in inputs that our server refuses, by input and server: `{"name":
 * {"node": ["/first"]}}`.
 */
export type AcceptedElsewhere = { readonly [name: string]: { readonly [server: string]: readonly string[] } };

/** Reads all requests of the corpus. */
export function wireRequests(): WireRequest[] {
	const folder = path.join(WIRE_FOLDER, 'requests');
	return readdirSync(folder)
		.sort()
		.flatMap(file => {
			const rows = JSON.parse(readFileSync(path.join(folder, file), 'utf8')) as WireRequest[];
			return rows.map(row => ({ ...row, group: path.basename(file, '.json') }));
		});
}

/** Reads all upstream responses of the corpus. */
export function wireAnswers(): WireAnswer[] {
	return JSON.parse(readFileSync(path.join(WIRE_FOLDER, 'responses/answers.json'), 'utf8')) as WireAnswer[];
}

/** Reads the recording of what other servers accept. */
export function readAcceptedElsewhere(): AcceptedElsewhere {
	return JSON.parse(readFileSync(path.join(WIRE_FOLDER, 'accepted-elsewhere.json'), 'utf8')) as AcceptedElsewhere;
}

/** Returns the Markdown page that lists the inputs that other servers accept although our server refuses them. */
export function renderWirePage(requests: readonly WireRequest[], others: AcceptedElsewhere): string {
	const refused = requests.filter(({ status, name }) => status !== undefined && others[name] !== undefined);
	const lines = [
		'# Bytes that are refused',
		'',
		`${requests.length} requests and ${wireAnswers().length} upstream responses that make a proxy and the server behind it disagree about where a message`,
		'ends, which host it is for, or which fields it has. The tests send each of them to this server, alone and as a proxy. The',
		'message is refused with the given status and the connection is closed, or what reaches the upstream has only one reading.',
		'',
		'The tables list the requests that Node.js (its strict parser) or nginx accept as at least one message, and why this server',
		'does not. Both columns are measured: `npm test` compares the first with Node, `npm run test:peers` the second with nginx.',
		'`2` means that the bytes after the request were taken for a second one.',
	];
	const groups = [...new Set(refused.map(({ group }) => group))];
	for (const group of groups) {
		lines.push('', `## ${group}`, '', '| Input | Here | Node | nginx | Why |', '| --- | --- | --- | --- | --- |');
		for (const { name, why, status } of refused.filter(row => row.group === group)) {
			const { node, nginx } = others[name]!;
			lines.push(`| ${name.replaceAll('|', '\\|')} | ${status} | ${taken(node)} | ${taken(nginx)} | ${why} |`);
		}
	}
	return `${lines.join('\n')}\n`;
}

function taken(paths: readonly string[] | undefined): string {
	return paths === undefined || paths.length === 0 ? '' : String(paths.length);
}
