/** Formats a text by edits of only those lines that change, so that an editor keeps its cursor and marks. */
import { formatText } from '../syntax/format.ts';
import { markedLines, splitLines } from '../syntax/format-difference.ts';
import type { TextRange } from './text-syntax.ts';

/** The replacement of a range in a text. */
export interface RangeEdit extends TextRange {
	readonly text: string;
}

/** Returns the edits that format a text, in order. With `range`, only edits that touch the lines of the range. */
export function formattingEdits(text: string, range?: TextRange): RangeEdit[] {
	const formattedText = formatText(text);
	if (formattedText === text) return [];
	const edits: RangeEdit[] = [];
	let position = 0;
	let currentEdit: { start: number; end: number; text: string } | undefined;
	for (const { mark, line } of markedLines(splitLines(text), splitLines(formattedText))) {
		if (mark === ' ') {
			if (currentEdit) edits.push(currentEdit);
			currentEdit = undefined;
			position += line.length;
			continue;
		}
		currentEdit ??= { start: position, end: position, text: '' };
		if (mark === '-') {
			position += line.length;
			currentEdit.end = position;
		} else currentEdit.text += line;
	}
	if (currentEdit) edits.push(currentEdit);
	if (!range) return edits;
	const start = text.lastIndexOf('\n', range.start - 1) + 1;
	const newline = text.indexOf('\n', range.end);
	const end = newline === -1 ? text.length : newline + 1;
	return edits.filter(edit => edit.start < end && (edit.end > start || edit.start >= start));
}
