/** Finds comments, and the end of the line that follows a comment. */
import type { Dialect } from '../dialects/dialect.ts';
import { CloseBrace, Newline, OpenBrace, tokenize } from './tokens.ts';

/** A comment, from its `#` to the end of its line. */
export interface ScannedComment {
	readonly start: number;
	readonly end: number;
	/** True if nothing else is on the line of the comment. */
	readonly isAlone: boolean;
}

/** Returns the comments of a text, as the lexer sees them: a `#` in a word, quote or heredoc does not begin a comment. */
export function scanComments(text: string, dialect: Dialect): ScannedComment[] {
	const comments: ScannedComment[] = [];
	const collectComments = (rangeStart: number, rangeEnd: number): void => {
		for (let hash = text.indexOf('#', rangeStart); hash !== -1 && hash < rangeEnd; ) {
			const newline = text.indexOf('\n', hash);
			const end = newline === -1 ? text.length : newline;
			const lineStart = text.lastIndexOf('\n', hash - 1) + 1;
			comments.push({ start: hash, end, isAlone: text.slice(lineStart, hash).trim() === '' });
			hash = text.indexOf('#', end);
		}
	};
	let position = 0;
	for (const { startOffset, image, tokenType } of tokenize(text, dialect)) {
		collectComments(position, startOffset);
		position = tokenType === Newline ? startOffset + 1 : startOffset + image.length;
	}
	collectComments(position, text.length);
	return comments;
}

/** Returns the end of the first line with words after an offset. If the line opens a block, the block is included. */
export function endOfNextLine(text: string, start: number, dialect: Dialect): number {
	let depth = 0;
	let hasWords = false;
	let end = start;
	for (const { startOffset, image, tokenType } of tokenize(text.slice(start), dialect)) {
		if (tokenType === Newline) {
			if (hasWords && depth === 0) break;
			continue;
		}
		if (tokenType === OpenBrace) depth++;
		else if (tokenType === CloseBrace && --depth < 0) break;
		hasWords = true;
		end = start + startOffset + image.length;
	}
	return end;
}
