/** Prints one finding per line, as compilers do, so that editors and `grep` can use the output: `--format unix`. */
import type { Diagnostic } from '../diagnostic.ts';
import { escapeControlCharacters } from '../terminal-text.ts';
import type { Findings } from './findings.ts';

/**
 * Returns `file:line:column: severity: message [code]` for each finding, or '' if there are none. A finding about the document
 * is at 1:1, and its message begins with the pointer. A finding in a file that several configurations import appears once.
 */
export function unixReport(configurations: readonly Findings[]): string {
	const lines = configurations.flatMap(({ name, diagnostics }) => diagnostics.map(one => `${formatLine(one, name)}\n`));
	return [...new Set(lines)].join('');
}

function formatLine({ severity, code, message, label, hint, span, pointer }: Diagnostic, name: string): string {
	const startPosition = span?.source.position(span.start);
	const location = startPosition ? `${span!.source.name}:${startPosition.line}:${startPosition.column}` : `${name}:1:1`;
	const pointerPrefix = span || pointer === undefined ? undefined : `${pointer}:`;
	const messageText = [pointerPrefix, message, label && `(${label})`, hint]
		.filter(part => part !== undefined)
		.join(' ');
	return escapeControlCharacters(`${location}: ${severity}: ${messageText} [${code}]`.replaceAll('\n', ' '));
}
