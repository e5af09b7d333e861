/** Formatting as edits: only the lines that change, so that an editor keeps its cursor and marks. */
import { formatText } from '../syntax/format.ts';
import { markedLines, splitLines } from '../syntax/format-difference.ts';
import type { TextRange } from './text-syntax.ts';

/** The replacement of a range of one text. */
export interface RangeEdit extends TextRange {
	readonly text: string;
}

/** Returns the edits that format a text, in order. With a range, only those that touch its lines. */
export function formattingEdits(text: string, within?: TextRange): RangeEdit[] {
	const formatted = formatText(text);
	if (formatted === text) return [];
	const edits: RangeEdit[] = [];
	let at = 0;
	let edit: { start: number; end: number; text: string } | undefined;
	for (const { mark, line } of markedLines(splitLines(text), splitLines(formatted))) {
		if (mark === ' ') {
			if (edit) edits.push(edit);
			edit = undefined;
			at += line.length;
			continue;
		}
		edit ??= { start: at, end: at, text: '' };
		if (mark === '-') {
			at += line.length;
			edit.end = at;
		} else edit.text += line;
	}
	if (edit) edits.push(edit);
	if (!within) return edits;
	const start = text.lastIndexOf('\n', within.start - 1) + 1;
	const newline = text.indexOf('\n', within.end);
	const end = newline === -1 ? text.length : newline + 1;
	return edits.filter(one => one.start < end && (one.end > start || one.start >= start));
}
