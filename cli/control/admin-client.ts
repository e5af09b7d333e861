/** Calls the Admin API of a running server, for commands such as `reload` and `stop`. */
import { DEFAULT_ADMIN_LISTEN, isWildcard, parseAdminAddress } from '../../admin/listen-address.ts';
import type { AdminSettings } from '../../compiler/document/document.ts';
import { quoteWord } from '../command/arguments.ts';
import { CommandFailure, type CommandOption } from '../command/command.ts';

/** Environment variable that holds the access token; it takes precedence over the configuration's token. */
export const TOKEN_VARIABLE = 'SVC_ADMIN_TOKEN';

/** The option `--address` of commands that call a server. */
export const ADDRESS_OPTION: CommandOption = {
	name: 'address',
	valueName: 'ADDRESS',
	summary: 'Address of the Admin API',
	default: `the configuration's, otherwise ${DEFAULT_ADMIN_LISTEN}`,
};

/** Where the token comes from, for help texts. */
export const TOKEN_RULE = `The access token comes from the environment variable ${TOKEN_VARIABLE}, otherwise from the configuration; there is no option for it.`;

/** Number of milliseconds that a server may take to accept the connection. */
const CONNECT_TIMEOUT_MS = 5000;
/** Number of milliseconds that a server may take to begin its reply. Loading a large configuration takes seconds. */
const ANSWER_TIMEOUT_MS = 300_000;

/** A reply of the Admin API. */
export interface AdminAnswer {
	readonly status: number;
	/** The body of the reply, parsed as JSON; undefined if it is not JSON. */
	readonly body: unknown;
}

/**
 * Posts to the Admin API. Resolves to the reply, whatever its status. @throws {@link CommandFailure} if the Admin API cannot be
 * reached
 */
export async function postToAdmin(
	path: string,
	target: { readonly address: string | undefined; readonly settings: AdminSettings | undefined },
	payload: { readonly type: string; readonly text: string } | undefined,
): Promise<AdminAnswer> {
	const addressText = target.address ?? target.settings?.listen ?? DEFAULT_ADMIN_LISTEN;
	const address = parseAdminAddress(addressText.replace(/^http:\/\//, '').replace(/\/$/, ''));
	if (!address || (address.kind === 'tcp' && address.port === 0)) {
		throw new CommandFailure(`${quoteWord(addressText)} is not an address; write host:port or unix//path.`);
	}
	if (address.kind === 'fd') {
		throw new CommandFailure(
			`${quoteWord(addressText)} is an address that only the server can resolve; give a reachable one with --address.`,
		);
	}
	const host = address.kind === 'unix' ? 'localhost' : isWildcard(address.host) ? '127.0.0.1' : address.host;
	const port = address.kind === 'unix' ? '' : `:${address.port}`;
	const origin = `http://${host.includes(':') ? `[${host}]` : host}${port}`;
	const token = process.env[TOKEN_VARIABLE] || target.settings?.token;
	const { Client } = await import('undici');
	const client = new Client(origin, {
		connect: { timeout: CONNECT_TIMEOUT_MS, ...(address.kind === 'unix' ? { socketPath: address.path } : {}) },
		headersTimeout: ANSWER_TIMEOUT_MS,
	});
	try {
		const response = await client.request({
			method: 'POST',
			path,
			headers: {
				...(payload ? { 'content-type': payload.type } : {}),
				...(token ? { authorization: `Bearer ${token}` } : {}),
				...(target.settings?.enforce_origin ? { origin: originFor(target.settings, origin) } : {}),
			},
			body: payload?.text ?? null,
		});
		return { status: response.statusCode, body: parseJson(await response.body.text()) };
	} catch (error) {
		throw unreachableFailure(addressText, error);
	} finally {
		await client.destroy();
	}
}

/**
 * Converts an error reply to a failure. Its text consists of the diagnostics, the output of a program that failed, the server's
 * message, and `hintText`.
 */
export function answerFailure(answer: AdminAnswer, failedAction: string, hintText = ''): CommandFailure {
	const replyError = memberOf(answer.body, 'error');
	const message = memberOf(replyError, 'message');
	const sections = listOrEmpty(memberOf(replyError, 'diagnostics')).map(
		diagnostic => `${String(memberOf(diagnostic, 'text') ?? memberOf(diagnostic, 'message'))}\n\n`,
	);
	const processOutput = memberOf(replyError, 'output');
	if (typeof processOutput === 'string') {
		sections.push(`The new process wrote:\n${processOutput.replace(/^/gm, '    ')}\n\n`);
	}
	const hint =
		hintText !== ''
			? hintText
			: answer.status === 401
				? ` Set ${TOKEN_VARIABLE}, or pass the server's configuration with -c.`
				: '';
	const messageText =
		typeof message === 'string'
			? message
			: `it answered with status ${answer.status}, which is not the Admin API of svc`;
	return new CommandFailure(`${failedAction}: ${messageText}${/[.!?]$/.test(messageText) ? '' : '.'}${hint}`, {
		preamble: sections.join(''),
	});
}

/** Returns the rendered diagnostics of a successful reply. */
export function answerWarnings(answer: AdminAnswer): string {
	return listOrEmpty(memberOf(answer.body, 'diagnostics'))
		.map(diagnostic => `${String(memberOf(diagnostic, 'text'))}\n\n`)
		.join('');
}

/** Returns a member of an object; undefined if `value` is not an object or has no such member. */
export function memberOf(value: unknown, name: string): unknown {
	return value !== null && typeof value === 'object' ? (value as Record<string, unknown>)[name] : undefined;
}

/** Returns the header `Origin` to send. With `enforce_origin`, the server admits only requests from an allowed origin. */
function originFor(settings: AdminSettings, ownOrigin: string): string {
	const firstOrigin = settings.origins?.[0];
	if (firstOrigin === undefined) return ownOrigin;
	return firstOrigin.includes('://') ? firstOrigin : `http://${firstOrigin.replace(/^\/\//, '')}`;
}

function unreachableFailure(address: string, error: unknown): CommandFailure {
	const code = String(memberOf(error, 'code') ?? (error instanceof Error ? error.message : error));
	const reasons: { readonly [code: string]: string } = {
		ECONNREFUSED:
			'nothing listens there. Either no server runs, or the option `admin` is missing from its configuration or names another address',
		ENOENT:
			'there is no such socket. Either no server runs, or the option `admin` is missing from its configuration or names another address',
		ENOTFOUND: 'the host name cannot be resolved',
		EACCES: 'permission denied',
		UND_ERR_CONNECT_TIMEOUT: 'the connection timed out',
		UND_ERR_HEADERS_TIMEOUT: 'the server did not reply in time',
		UND_ERR_SOCKET: 'the connection was closed before the server replied',
		ECONNRESET: 'the connection was closed before the server replied',
	};
	return new CommandFailure(`The Admin API at ${address} cannot be reached: ${reasons[code] ?? code}.`);
}

function listOrEmpty(value: unknown): readonly unknown[] {
	return Array.isArray(value) ? value : [];
}

function parseJson(text: string): unknown {
	try {
		return JSON.parse(text);
	} catch {
		return undefined;
	}
}
