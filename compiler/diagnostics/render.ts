/** Renders diagnostics as text for people: what is wrong, where, the lines around it, and what to do. */
import type { SourceSpan } from '../source/source.ts';
import type { Diagnostic, Severity } from './diagnostic.ts';
import { cutColumns, escapeControlCharacters, layOutTerminalLine, type TerminalLine } from './terminal-text.ts';

/** Maximum columns of source shown; longer lines are cut around the caret. */
const frameWidth = 100;
/** Maximum UTF-16 units of a line that are laid out on each side of the caret. */
const reach = 4000;
const ansi = '\u001b[';
const severityColours: { readonly [severity in Severity]: string } = { error: '31', warning: '33', note: '36' };

type Paint = (text: string, style: string) => string;

/**
 * Renders a diagnostic without a final newline. `color` adds ANSI colors; `frame: false` omits the code frame. A diagnostic
 * about the document shows its pointer instead of a code frame.
 */
export function renderDiagnostic(
	diagnostic: Diagnostic,
	options: { readonly color?: boolean; readonly frame?: boolean } = {},
): string {
	const paint: Paint = options.color ? (text, style) => `${ansi}${style}m${text}${ansi}0m` : text => text;
	const { severity, code, span, pointer, label, related, hint } = diagnostic;
	const colour = severityColours[severity];
	const message = escapeControlCharacters(diagnostic.message);
	const head = `${paint(`${severity}[${code}]`, `1;${colour}`)}${paint(`: ${message}`, '1')}`;
	const lines = [head];
	let gutter = 1;
	if (span) {
		const { line } = span.source.position(span.start);
		gutter = String(Math.min(line + 1, span.source.lineStarts.length)).length;
		lines.push(`${' '.repeat(gutter + 1)}${paint('-->', '34')} ${place(span)}`);
		if (options.frame !== false) frame(span, line, gutter, label, paint, colour, lines);
	} else {
		if (pointer !== undefined)
			lines.push(`  ${paint('-->', '34')} ${escapeControlCharacters(pointer === '' ? 'the whole document' : pointer)}`);
		if (label !== undefined) lines.push(`   ${escapeControlCharacters(label)}`);
	}
	const margin = ' '.repeat(gutter + 2);
	for (let at = span?.source.importedAt; at; at = at.source.importedAt) lines.push(`${margin}imported at ${place(at)}`);
	for (const other of related ?? [])
		lines.push(`${margin}${escapeControlCharacters(other.message)}: ${place(other.span)}`);
	if (hint !== undefined) lines.push(`${margin}${paint('hint:', '36')} ${escapeControlCharacters(hint)}`);
	return lines.join('\n');
}

function place(span: SourceSpan): string {
	const { line, column } = span.source.position(span.start);
	return `${escapeControlCharacters(span.source.name)}:${line}:${column}`;
}

/** Returns the part of a line to lay out, beginning at offset `from`, which is 0 except for very long lines. */
function textOfLine(span: SourceSpan, line: number, from: number): string {
	const { lineStarts, text } = span.source;
	const start = lineStarts[line - 1]! + from;
	const next = lineStarts[line];
	return text.slice(start, Math.min(next === undefined ? text.length : Math.max(start, next - 1), start + 2 * reach));
}

/** Returns the span's line with its neighbors, and the caret under it. */
function frame(
	span: SourceSpan,
	line: number,
	gutter: number,
	label: string | undefined,
	paint: Paint,
	colour: string,
	lines: string[],
): void {
	const { source } = span;
	const skipped = Math.max(0, span.start - source.lineStarts[line - 1]! - reach);
	const start = source.lineStarts[line - 1]! + skipped;
	const laid = layOutTerminalLine(textOfLine(span, line, skipped));
	const from = laid.columnOf(span.start - start);
	const to = Math.max(from + 1, Math.min(laid.columnOf(span.end - start), laid.columnOf(Number.POSITIVE_INFINITY)));
	const left = firstColumn(laid, from, to);
	const numbered = (number: number, text: TerminalLine) => {
		const bar = `${paint(`${String(number).padStart(gutter)} |`, '34')}`;
		const shown = window(text, left);
		lines.push(shown === '' ? bar : `${bar} ${shown}`);
	};
	if (line > 1) numbered(line - 1, layOutTerminalLine(textOfLine(span, line - 1, skipped)));
	numbered(line, laid);
	const carets = '^'.repeat(Math.min(to - from, Math.max(1, frameWidth - (from - left))));
	const note = label === undefined ? carets : `${carets} ${escapeControlCharacters(label)}`;
	lines.push(`${paint(`${' '.repeat(gutter)} |`, '34')} ${' '.repeat(from - left)}${paint(note, colour)}`);
	const last = source.lineStarts.length;
	if (line < last && !(line + 1 === last && source.lineStarts[line] === source.text.length)) {
		numbered(line + 1, layOutTerminalLine(textOfLine(span, line + 1, skipped)));
	}
}

/** Returns the first column to show: 0 unless the line is long and the caret far to the right. */
function firstColumn(line: TerminalLine, from: number, to: number): number {
	const width = line.columnOf(Number.POSITIVE_INFINITY);
	if (width <= frameWidth || to <= frameWidth - 1) return 0;
	// Shows some text before the caret, and all of a short span.
	const room = Math.max(10, Math.floor((frameWidth - (to - from)) / 2));
	return Math.max(0, Math.min(from - room, width - frameWidth + 1));
}

/** Returns the columns that fit, starting at column `left`, with an ellipsis where text is cut off. */
function window(line: TerminalLine, left: number): string {
	const width = line.columnOf(Number.POSITIVE_INFINITY);
	if (left === 0 && width <= frameWidth) return line.text;
	if (width <= left) return '';
	const cutsRight = width > left + frameWidth;
	const inner = cutColumns(line.text, left === 0 ? 0 : left + 1, cutsRight ? left + frameWidth - 1 : width);
	return `${left === 0 ? '' : '…'}${inner}${cutsRight ? '…' : ''}`;
}
