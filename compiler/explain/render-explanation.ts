/** Renders an explanation as text: one line per event, which begins with the event's place in the configuration. */

import { abbreviatePlaceholders } from '../codegen/placeholders/shorthands.ts';
import { HTTPS_REDIRECT_HANDLER } from '../codegen/plan/https-redirect.ts';
import { escapeControlCharacters } from '../diagnostics/terminal-text.ts';
import { HANDLERS } from '../modules/registry/handlers.ts';
import type { ExplainedMatcher, ExplainedPlace, ExplainedStep, ExplainedUpstream, Explanation } from './explanation.ts';

/** Maximum columns of a quoted configuration line. */
const MAX_LINE_COLUMNS = 100;
/** Maximum width in columns to which places in the configuration are padded. Longer places are not aligned. */
const MAX_PLACE_COLUMNS = 32;
/** Fields that every response has, and which are therefore not shown. */
const ORDINARY_FIELDS: ReadonlySet<string> = new Set(['server', 'date']);

interface EventRow {
	readonly place: string;
	readonly text: string;
}

/** Returns the complete explanation as text that ends in a newline. */
export function renderExplanation(explanation: Explanation): string {
	const { request, listener, site, steps, answer } = explanation;
	const rows = steps.flatMap(step => stepRows(step));
	const placeWidth = Math.min(MAX_PLACE_COLUMNS, Math.max(0, ...rows.map(({ place }) => place.length)));
	const host = listener.host.includes(':') ? `[${listener.host}]` : listener.host;
	const listenerText = `${host}:${listener.port} (${listener.scheme})`;
	const noSiteReason =
		answer?.handler === HTTPS_REDIRECT_HANDLER ? 'none: the host is redirected to HTTPS' : 'none matches this host';
	const noSiteText = answer?.error === undefined ? noSiteReason : 'not determined, because the request failed before';
	const siteText = site ? `${site.address} (${placeText(site.place)}): ${site.because}` : noSiteText;
	const lines = [
		`${request.method} ${request.url} from ${request.from}`,
		'',
		`listener  ${listenerText}`,
		`site      ${siteText}`,
		...(rows.length > 0 ? ['', ...rows.map(({ place, text }) => `${place.padEnd(placeWidth)}  ${text}`)] : []),
		'',
		...outcomeLines(explanation),
		'',
	];
	return lines.map(line => escapeControlCharacters(line).trimEnd()).join('\n');
}

function stepRows(step: ExplainedStep): EventRow[] {
	switch (step.kind) {
		case 'matcher':
			return matcherRows(step, nestingDepth(step.place) * 2, true);
		case 'handler': {
			const indent = '  '.repeat(nestingDepth(step.place));
			const rows = [{ place: placeText(step.place), text: `${indent}run  ${handlerText(step.handler, step.place)}` }];
			const { rewrite, limits = [] } = step;
			rows.push(
				...limits.map(({ zone, key }) => ({
					place: '',
					text: `${indent}     zone ${zone}, key ${abbreviatePlaceholders(key)}`,
				})),
			);
			if (!rewrite) return rows;
			const { before, after } = rewrite;
			const changes = (['method', 'authority', 'target'] as const)
				.filter(part => before[part] !== after[part])
				.map(part => ({ place: '', text: `${indent}     ${before[part]} -> ${after[part]}` }));
			return [...rows, ...changes];
		}
		case 'failure': {
			const indent = '  '.repeat(nestingDepth(step.place));
			const message = step.message === '' ? '' : `: ${step.message}`;
			return [{ place: placeText(step.place), text: `${indent}fail ${step.status}${message}` }];
		}
	}
}

function matcherRows(
	{ place, matcher, holds, parts }: ExplainedMatcher,
	indent: number,
	isOutermost: boolean,
): EventRow[] {
	const resultWord = holds === null ? 'fail' : holds ? 'yes ' : 'no  ';
	const row = {
		place: isOutermost ? placeText(place) : '',
		text: `${' '.repeat(indent)}${resultWord} ${shorten(matcher)}`,
	};
	return [row, ...(parts ?? []).flatMap(part => matcherRows(part, indent + 2, false))];
}

/** Returns the configuration line of a handler, with the handler's name unless the line begins with that name. */
function handlerText(handler: string, { text }: ExplainedPlace): string {
	if (text === undefined) return handler;
	const line = shorten(text);
	return line.split(' ', 1)[0] === handler ? line : `${line}  [${handler}]`;
}

function outcomeLines({ answer, upstreams, mirrors = [] }: Explanation): string[] {
	const lines = [
		...mirrors.map(mirror => `mirror    ${upstreamText(mirror)}`),
		...upstreams.map(upstream => `upstream  ${upstreamText(upstream)}`),
	];
	if (!answer) return [...lines, 'answer    none: the connection is closed'];
	if (answer.error !== undefined) {
		const message = answer.error === '' ? '' : `: ${answer.error}`;
		lines.push(`answer    ${answer.status}, as no error route answered${message}`);
	} else if (answer.handler === '') lines.push(`answer    ${answer.status}, as no handler answered`);
	else if (HANDLERS.get(answer.handler)?.upstreamAddressesOf && upstreams.length > 0)
		lines.push("answer    the upstream's");
	else
		lines.push(`answer    ${answer.status} by ${answer.handler}${answer.place ? ` (${placeText(answer.place)})` : ''}`);
	const isUpstreamAnswer = lines.at(-1)?.endsWith("upstream's") === true;
	for (const [name, value] of answer.headers) {
		const lowerName = name.toLowerCase();
		// The length is that of the fake upstream's body, not of the real one.
		if (!ORDINARY_FIELDS.has(lowerName) && !(isUpstreamAnswer && lowerName === 'content-length'))
			lines.push(`          ${name}: ${value}`);
	}
	return lines;
}

/** Describes the upstream to which a request was sent, and the request. */
function upstreamText({ name, address, backup, among, policy, shed, method, target }: ExplainedUpstream): string {
	const choiceText = backup ? ', a backup' : among > 1 ? `, one of ${among} by ${policy}` : '';
	const limitText = shed ? `, concurrency limit from ${shed.min} to ${shed.max}` : '';
	return `${name === undefined ? address : `${name} at ${address}`}${choiceText}${limitText}: ${method} ${target}`;
}

/** Returns the number of pipelines that enclose a place. */
function nestingDepth({ pointer }: ExplainedPlace): number {
	const pipelineCount = pointer.match(/\/pipeline(?=\/)/g)?.length ?? 0;
	return Math.max(0, pipelineCount - 1);
}

function placeText({ file, line, pointer }: ExplainedPlace): string {
	return file === undefined ? pointer : `${file}:${line}`;
}

function shorten(text: string): string {
	return text.length > MAX_LINE_COLUMNS ? `${text.slice(0, MAX_LINE_COLUMNS - 1)}…` : text;
}
