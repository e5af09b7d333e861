/** Scans a word of configuration text: quotes, backticks, backslashes, heredocs and `NAME="value"`. */
import type { Quote } from './ast.ts';
import {
	BACKSLASH,
	BACKTICK,
	CR,
	DOUBLE_QUOTE,
	EQUALS,
	HASH,
	isWhiteSpace,
	LESS_THAN,
	LF,
	whiteSpaceClass,
} from './characters.ts';
import { scanHeredoc } from './scan-heredoc.ts';

/** A mistake inside a word. Offsets refer to the text that the lexer reads. */
export interface LexicalProblem {
	readonly code: string;
	/** Returns the message, given the number of the line with the mistake. */
	readonly message: (line: number) => string;
	/** An offset in the line whose number is passed to `message`. */
	readonly lineOffset: number;
	readonly start: number;
	readonly end: number;
	readonly label?: string;
	readonly hint?: string;
}

/** A word whose value may differ from its source text. */
export interface ScannedWord {
	/**
	 * The value of the word; undefined if the characters are not a word, but a backslash that continues the line, or a lone quote
	 * at the end of the text.
	 */
	readonly text: string | undefined;
	readonly quote: Quote;
	/** How the value in `NAME="value"` is quoted. */
	readonly valueQuote?: Quote | undefined;
	/** Offset after the last character of the word. */
	readonly end: number;
	readonly problem?: LexicalProblem | undefined;
	/** True if the word is not closed and has taken the rest of the text. */
	readonly reachesEnd?: boolean | undefined;
	/** True if the word opens a quote that is never closed. */
	readonly unterminated?: boolean | undefined;
}

const plainRun = new RegExp(`[^${whiteSpaceClass}\\\\]+`, 'y');
const parameterName = /^[A-Za-z_][A-Za-z0-9_-]*=$/;

/**
 * Returns the end of the plain word at `start`. Returns −1 if the word needs a full scan, because of a backslash, quote, carriage
 * return or heredoc or, with `namedValues`, because of a possible `NAME="`.
 */
export function endOfPlainWord(text: string, start: number, namedValues: boolean): number {
	const firstCode = text.charCodeAt(start);
	if (firstCode === DOUBLE_QUOTE || firstCode === BACKTICK || firstCode === BACKSLASH) return -1;
	if (firstCode === LESS_THAN && text.charCodeAt(start + 1) === LESS_THAN) return -1;
	plainRun.lastIndex = start;
	plainRun.test(text);
	const end = plainRun.lastIndex;
	const nextCode = text.charCodeAt(end);
	if (nextCode === BACKSLASH || nextCode === CR) return -1;
	if (namedValues) {
		for (let index = start; index < end; index++) if (text.charCodeAt(index) === EQUALS) return -1;
	}
	return end;
}

/**
 * Scans the word at `start`, which must not be white space or `#`. `acceptsNamedValue` reports whether a quote after `NAME=` opens
 * a value here.
 */
export function scanWord(text: string, start: number, acceptsNamedValue?: () => boolean): ScannedWord {
	const firstCode = text.charCodeAt(start);
	if (firstCode === DOUBLE_QUOTE) return scanQuoted(text, start, false);
	if (firstCode === BACKTICK) return scanBacktick(text, start);
	let word = '';
	let isEscaped = false;
	let mayBeHeredoc = true;
	for (let index = start; index < text.length; index++) {
		const code = text.charCodeAt(index);
		if (code === BACKSLASH && !isEscaped) {
			isEscaped = true;
			continue;
		}
		if (isWhiteSpace(code)) {
			if (code === CR) continue;
			if (code === LF) return { text: word || undefined, quote: 'none', end: isEscaped ? index + 1 : index };
			if (word !== '') return { text: word, quote: 'none', end: index };
			continue;
		}
		if (word === '') {
			if (code === HASH) return { text: undefined, quote: 'none', end: index };
			// A backslash before a quote does not prevent quoting, but inside the quotes it still has an effect.
			if (code === DOUBLE_QUOTE) return scanQuoted(text, index, isEscaped);
			if (code === BACKTICK) return scanBacktick(text, index);
		}
		if (
			acceptsNamedValue &&
			!isEscaped &&
			(code === DOUBLE_QUOTE || code === BACKTICK) &&
			endsAsParameter(word) &&
			acceptsNamedValue()
		) {
			const value = code === DOUBLE_QUOTE ? scanQuoted(text, index, false) : scanBacktick(text, index);
			return { ...value, text: word + (value.text ?? ''), quote: 'none', valueQuote: value.quote };
		}
		if (isEscaped) {
			if (code === LESS_THAN) mayBeHeredoc = false;
			else word += '\\';
			isEscaped = false;
		}
		word += text[index];
		if (mayBeHeredoc && word.length === 2 && word === '<<') return scanHeredoc(text, index - 1);
	}
	return { text: word || undefined, quote: 'none', end: text.length };
}

function endsAsParameter(word: string): boolean {
	return word.charCodeAt(word.length - 1) === EQUALS && parameterName.test(word);
}

function scanBacktick(text: string, open: number): ScannedWord {
	const close = text.indexOf('`', open + 1);
	if (close !== -1) return { text: text.slice(open + 1, close), quote: 'backtick', end: close + 1 };
	const remainder = text.slice(open + 1);
	return { text: remainder || undefined, quote: 'none', end: text.length, unterminated: true, reachesEnd: true };
}

function scanQuoted(text: string, openOffset: number, escapedBefore: boolean): ScannedWord {
	let isEscaped = escapedBefore;
	let word = '';
	for (let index = openOffset + 1; index < text.length; index++) {
		const code = text.charCodeAt(index);
		if (isEscaped) {
			word += code === DOUBLE_QUOTE ? '"' : `\\${text[index]}`;
			isEscaped = false;
		} else if (code === BACKSLASH) isEscaped = true;
		else if (code === DOUBLE_QUOTE) return { text: word, quote: 'double', end: index + 1 };
		else {
			let end = index + 1;
			while (end < text.length && text.charCodeAt(end) !== DOUBLE_QUOTE && text.charCodeAt(end) !== BACKSLASH) end++;
			word += text.slice(index, end);
			index = end - 1;
		}
	}
	return { text: word || undefined, quote: 'none', end: text.length, unterminated: true, reachesEnd: true };
}
