/** Renders a comparison of two configurations: as text, as Markdown for a pull request, or as plain data. */
import { escapeControlCharacters } from '../diagnostics/terminal-text.ts';
import type { Explanation } from '../explain/explanation.ts';
import { renderExplanation } from '../explain/render-explanation.ts';
import type { ChangedAspect } from './changed-aspect.ts';
import type { ConfigurationDiff, MeaningChange } from './configuration-diff.ts';
import { assumptionText } from './upstream-assumption.ts';

/** Maximum characters of a value that text and Markdown show. */
const MAX_VALUE_CHARS = 160;
/** Maximum characters of a request body that text and Markdown show. */
const MAX_BODY_CHARS = 40;
/** Width of the trace of each configuration, in columns. The two traces are shown side by side. */
const TRACE_COLUMN_WIDTH = 72;

/** Returns the comparison as text that ends in a newline. */
export function renderDiff(diff: ConfigurationDiff, beforeName: string, afterName: string): string {
	const lines: string[] = [];
	for (const [index, change] of diff.changes.entries()) {
		lines.push(`${index + 1}. ${requestText(change)}${similarClassesText(change)}`);
		for (const aspect of change.aspects) lines.push(`   ${aspectText(aspect)}`);
		lines.push('', ...sideBySide(traceLines(change.before, beforeName), traceLines(change.after, afterName)), '');
	}
	for (const aspect of diff.settings) lines.push(`The global option ${aspectText(aspect)}`);
	if (diff.settings.length > 0) lines.push('');
	lines.push(...closingLines(diff), '');
	return lines.map(line => escapeControlCharacters(line).trimEnd()).join('\n');
}

/** Returns the comparison as Markdown that ends in a newline. */
export function renderDiffAsMarkdown(diff: ConfigurationDiff, beforeName: string, afterName: string): string {
	const lines = [`### ${summaryText(diff)}`, ''];
	for (const change of diff.changes) {
		lines.push(
			`#### ${markdownCode(requestText(change))}${similarClassesText(change)}`,
			'',
			`| | ${markdownCode(beforeName)} | ${markdownCode(afterName)} |`,
			'| --- | --- | --- |',
		);
		for (const { name, before: beforeValue, after: afterValue } of change.aspects) {
			lines.push(`| ${name} | ${tableCell(beforeValue)} | ${tableCell(afterValue)} |`);
		}
		lines.push('', '<details><summary>Why</summary>', '');
		for (const [name, explanation] of [
			[beforeName, change.before],
			[afterName, change.after],
		] as const) {
			lines.push(`${markdownCode(name)}:`, '', '```', ...traceLines(explanation, name).slice(2), '```', '');
		}
		lines.push('</details>', '');
	}
	for (const { name, before: beforeValue, after: afterValue } of diff.settings) {
		lines.push(`- Global option ${markdownCode(name)}: ${tableCell(beforeValue)} → ${tableCell(afterValue)}`);
	}
	if (diff.settings.length > 0) lines.push('');
	lines.push(...blindSpotLines(diff).map(line => `- ${line}`));
	return `${lines.join('\n').trimEnd()}\n`;
}

/** Returns the comparison as plain data for JSON. */
export function diffAsJson(diff: ConfigurationDiff) {
	return {
		same: isSame(diff),
		classes: diff.classes,
		requests: diff.requests,
		changes: diff.changes.map(({ request, upstream, aspects, classes, before, after }) => ({
			request: {
				...{ method: request.method, url: request.url.text, from: request.from, headers: request.headers },
				...(request.body === undefined ? {} : { body: request.body }),
			},
			...(upstream ? { upstream } : {}),
			aspects,
			classes,
			before: before ?? null,
			after: after ?? null,
		})),
		settings: diff.settings,
		blind_spots: diff.blindSpots,
	};
}

/** Restores a comparison from the result of {@link diffAsJson}. The requests have only the parts that are rendered. */
export function diffFromJson(data: unknown): ConfigurationDiff {
	const { changes, blind_spots: blindSpots, ...rest } = data as ReturnType<typeof diffAsJson>;
	return {
		...rest,
		blindSpots,
		changes: changes.map(({ request, upstream, before, after, ...change }) => ({
			...change,
			request: { ...request, url: { text: request.url } } as MeaningChange['request'],
			upstream,
			before: before ?? undefined,
			after: after ?? undefined,
		})),
	};
}

/** Reports whether no difference was found. */
export function isSame({ changes, settings }: ConfigurationDiff): boolean {
	return changes.length === 0 && settings.length === 0;
}

function summaryText(diff: ConfigurationDiff): string {
	const { changes, settings } = diff;
	const classesText = `${diff.classes.toLocaleString('en-US')} request class${diff.classes === 1 ? '' : 'es'}`;
	if (isSame(diff)) return `No difference in ${classesText}.`;
	const parts = [
		changes.length > 0 ? `${changes.length} difference${changes.length === 1 ? '' : 's'} in ${classesText}` : '',
		settings.length > 0 ? `${settings.length} changed global option${settings.length === 1 ? '' : 's'}` : '',
	];
	return `${parts.filter(part => part !== '').join(', and ')}.`;
}

function closingLines(diff: ConfigurationDiff): string[] {
	return [...blindSpotLines(diff), summaryText(diff)];
}

function blindSpotLines({ blindSpots }: ConfigurationDiff): string[] {
	return blindSpots.map(text => `Not compared completely: ${text}.`);
}

function requestText({ request, upstream }: MeaningChange): string {
	const fieldsText = request.headers.map(([name, value]) => ` -H '${name}: ${value}'`).join('');
	const clientText = request.from === undefined || request.from === '127.0.0.1' ? '' : ` from ${request.from}`;
	const protocol = { h1: '', h2: ' over HTTP/2', h3: ' over HTTP/3' }[request.protocol ?? 'h1'];
	return `${request.method} ${request.url.text}${fieldsText}${bodyText(request)}${clientText}${protocol}${upstream ? `, ${assumptionText(upstream)}` : ''}`;
}

function bodyText({ body }: MeaningChange['request']): string {
	if (body === undefined) return '';
	return body.length <= MAX_BODY_CHARS
		? ` -d '${body}'`
		: ` with a body of ${body.length.toLocaleString('en-US')} bytes`;
}

function similarClassesText({ classes }: MeaningChange): string {
	return classes === 1 ? '' : `, and ${classes - 1} similar class${classes === 2 ? '' : 'es'}`;
}

function aspectText({ name, before, after }: ChangedAspect): string {
	if (before === undefined) return `${name}: now ${cutValue(after!)}`;
	if (after === undefined) return `${name}: no longer ${cutValue(before)}`;
	return `${name}: ${cutValue(before)} → ${cutValue(after)}`;
}

function traceLines(explanation: Explanation | undefined, name: string): string[] {
	if (!explanation) return [name, '', 'nothing listens there'];
	// The first two lines show the request, which is the same for both configurations.
	return [name, '', ...renderExplanation(explanation).trimEnd().split('\n').slice(2)];
}

function sideBySide(leftLines: readonly string[], rightLines: readonly string[]): string[] {
	const lines: string[] = [];
	for (let i = 0; i < Math.max(leftLines.length, rightLines.length); i++) {
		lines.push(`   ${fitColumn(leftLines[i] ?? '').padEnd(TRACE_COLUMN_WIDTH)} | ${fitColumn(rightLines[i] ?? '')}`);
	}
	return lines;
}

function fitColumn(text: string): string {
	return text.length > TRACE_COLUMN_WIDTH ? `${text.slice(0, TRACE_COLUMN_WIDTH - 1)}…` : text;
}

function cutValue(text: string): string {
	return text.length > MAX_VALUE_CHARS ? `${text.slice(0, MAX_VALUE_CHARS - 1)}…` : text;
}

function tableCell(value: string | undefined): string {
	return value === undefined ? '–' : markdownCode(cutValue(value)).replaceAll('|', '\\|').replaceAll('\n', ' ');
}

function markdownCode(text: string): string {
	const fence = text.includes('`') ? '``' : '`';
	return `${fence}${text}${fence}`;
}
