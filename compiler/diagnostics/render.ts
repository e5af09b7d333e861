/** Renders diagnostics as text for people: what is wrong, where, the lines around it, and what to do. */
import type { SourceSpan } from '../source/source.ts';
import type { Diagnostic, Severity } from './diagnostic.ts';
import { escapeControlCharacters, layOutTerminalLine, sliceColumns, type TerminalLine } from './terminal-text.ts';

/** Maximum columns of source shown; longer lines are cut around the caret. */
const MAX_FRAME_COLUMNS = 100;
/** Maximum UTF-16 units of a line, on each side of the caret, whose width is computed. */
const maxUnitsPerSide = 4000;
const escapePrefix = '\u001b[';
const severityColors: { readonly [severity in Severity]: string } = { error: '31', warning: '33', note: '36' };

type Paint = (text: string, style: string) => string;

/**
 * Renders a diagnostic without a final newline. `color` adds ANSI colors; `frame: false` omits the code frame. A diagnostic
 * about the document shows its pointer instead of a code frame.
 */
export function renderDiagnostic(
	diagnostic: Diagnostic,
	options: { readonly color?: boolean; readonly frame?: boolean } = {},
): string {
	const paint: Paint = options.color
		? (text, style) => `${escapePrefix}${style}m${text}${escapePrefix}0m`
		: text => text;
	const { severity, code, span, pointer, label, related, hint } = diagnostic;
	const severityColor = severityColors[severity];
	const message = escapeControlCharacters(diagnostic.message);
	const headline = `${paint(`${severity}[${code}]`, `1;${severityColor}`)}${paint(`: ${message}`, '1')}`;
	const lines = [headline];
	let gutterWidth = 1;
	if (span) {
		const { line } = span.source.position(span.start);
		gutterWidth = String(Math.min(line + 1, span.source.lineStarts.length)).length;
		lines.push(`${' '.repeat(gutterWidth + 1)}${paint('-->', '34')} ${formatPlace(span)}`);
		if (options.frame !== false) addFrame(span, line, gutterWidth, label, paint, severityColor, lines);
	} else {
		if (pointer !== undefined)
			lines.push(`  ${paint('-->', '34')} ${escapeControlCharacters(pointer === '' ? 'the whole document' : pointer)}`);
		if (label !== undefined) lines.push(`   ${escapeControlCharacters(label)}`);
	}
	const margin = ' '.repeat(gutterWidth + 2);
	for (let importSpan = span?.source.importedAt; importSpan; importSpan = importSpan.source.importedAt)
		lines.push(`${margin}imported at ${formatPlace(importSpan)}`);
	for (const relatedPlace of related ?? [])
		lines.push(`${margin}${escapeControlCharacters(relatedPlace.message)}: ${formatPlace(relatedPlace.span)}`);
	if (hint !== undefined) lines.push(`${margin}${paint('hint:', '36')} ${escapeControlCharacters(hint)}`);
	return lines.join('\n');
}

function formatPlace(span: SourceSpan): string {
	const { line, column } = span.source.position(span.start);
	return `${escapeControlCharacters(span.source.name)}:${line}:${column}`;
}

/**
 * Returns the part of a line whose width is computed. It begins at offset `lineOffset`, which is 0 unless the line is very long.
 */
function lineTextFrom(span: SourceSpan, line: number, lineOffset: number): string {
	const { lineStarts, text } = span.source;
	const start = lineStarts[line - 1]! + lineOffset;
	const nextLineStart = lineStarts[line];
	return text.slice(
		start,
		Math.min(
			nextLineStart === undefined ? text.length : Math.max(start, nextLineStart - 1),
			start + 2 * maxUnitsPerSide,
		),
	);
}

/** Adds the code frame to the output: the line of the span with its neighbors, and the caret below it. */
function addFrame(
	span: SourceSpan,
	line: number,
	gutterWidth: number,
	label: string | undefined,
	paint: Paint,
	severityColor: string,
	lines: string[],
): void {
	const { source } = span;
	const skippedUnits = Math.max(0, span.start - source.lineStarts[line - 1]! - maxUnitsPerSide);
	const layoutStart = source.lineStarts[line - 1]! + skippedUnits;
	const layout = layOutTerminalLine(lineTextFrom(span, line, skippedUnits));
	const caretStart = layout.columnOf(span.start - layoutStart);
	const caretEnd = Math.max(
		caretStart + 1,
		Math.min(layout.columnOf(span.end - layoutStart), layout.columnOf(Number.POSITIVE_INFINITY)),
	);
	const leftColumn = firstVisibleColumn(layout, caretStart, caretEnd);
	const addNumberedLine = (number: number, text: TerminalLine) => {
		const bar = `${paint(`${String(number).padStart(gutterWidth)} |`, '34')}`;
		const visibleText = visiblePart(text, leftColumn);
		lines.push(visibleText === '' ? bar : `${bar} ${visibleText}`);
	};
	if (line > 1) addNumberedLine(line - 1, layOutTerminalLine(lineTextFrom(span, line - 1, skippedUnits)));
	addNumberedLine(line, layout);
	const carets = '^'.repeat(
		Math.min(caretEnd - caretStart, Math.max(1, MAX_FRAME_COLUMNS - (caretStart - leftColumn))),
	);
	const caretText = label === undefined ? carets : `${carets} ${escapeControlCharacters(label)}`;
	lines.push(
		`${paint(`${' '.repeat(gutterWidth)} |`, '34')} ${' '.repeat(caretStart - leftColumn)}${paint(caretText, severityColor)}`,
	);
	const lineCount = source.lineStarts.length;
	if (line < lineCount && !(line + 1 === lineCount && source.lineStarts[line] === source.text.length)) {
		addNumberedLine(line + 1, layOutTerminalLine(lineTextFrom(span, line + 1, skippedUnits)));
	}
}

/** Returns the first column to show, which is 0 unless the line is long and the caret far to the right. */
function firstVisibleColumn(line: TerminalLine, caretStart: number, caretEnd: number): number {
	const width = line.columnOf(Number.POSITIVE_INFINITY);
	if (width <= MAX_FRAME_COLUMNS || caretEnd <= MAX_FRAME_COLUMNS - 1) return 0;
	// Columns to show before the caret: enough for some text, and so few that all of a short span is shown.
	const leadingColumns = Math.max(10, Math.floor((MAX_FRAME_COLUMNS - (caretEnd - caretStart)) / 2));
	return Math.max(0, Math.min(caretStart - leadingColumns, width - MAX_FRAME_COLUMNS + 1));
}

/** Returns the part of a line that fits, starting at column `leftColumn`, with an ellipsis wherever text is cut off. */
function visiblePart(line: TerminalLine, leftColumn: number): string {
	const width = line.columnOf(Number.POSITIVE_INFINITY);
	if (leftColumn === 0 && width <= MAX_FRAME_COLUMNS) return line.text;
	if (width <= leftColumn) return '';
	const cutsRight = width > leftColumn + MAX_FRAME_COLUMNS;
	const visibleText = sliceColumns(
		line.text,
		leftColumn === 0 ? 0 : leftColumn + 1,
		cutsRight ? leftColumn + MAX_FRAME_COLUMNS - 1 : width,
	);
	return `${leftColumn === 0 ? '' : '…'}${visibleText}${cutsRight ? '…' : ''}`;
}
