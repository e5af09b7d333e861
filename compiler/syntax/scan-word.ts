/** Scans one word of configuration text: quotes, backticks, backslashes, heredocs and `NAME="value"`. */
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

/** A mistake inside a word. Offsets refer to the text that the lexer sees. */
export interface LexicalProblem {
	readonly code: string;
	/** Returns the message, given the number of the line with the mistake. */
	readonly message: (line: number) => string;
	/** An offset on the line whose number is passed to `message`. */
	readonly lineOffset: number;
	readonly start: number;
	readonly end: number;
	readonly label?: string;
	readonly hint?: string;
}

/** A word whose meaning differs from its source text. */
export interface ScannedWord {
	/**
	 * The word; undefined if the characters form no word, which is the case for a backslash that continues the line, or a lone quote
	 * at the end.
	 */
	readonly text: string | undefined;
	readonly quote: Quote;
	/** The quote of the value in `NAME="value"`. */
	readonly valueQuote?: Quote | undefined;
	/** Offset after the last character consumed. */
	readonly end: number;
	readonly problem?: LexicalProblem | undefined;
	/** True if the word was never closed and consumed the rest of the text. */
	readonly reachesEnd?: boolean | undefined;
	/** True if the word opened a quote that is never closed. */
	readonly unterminated?: boolean | undefined;
}

const plainRun = new RegExp(`[^${whiteSpaceClass}\\\\]+`, 'y');
const parameterName = /^[A-Za-z_][A-Za-z0-9_-]*=$/;

/**
 * Returns the end of the plain word at `start`, or -1 if a backslash, quote, carriage return, heredoc or (with `namedValues`) a
 * possible `NAME="` requires the full scan.
 */
export function endOfPlainWord(text: string, start: number, namedValues: boolean): number {
	const first = text.charCodeAt(start);
	if (first === DOUBLE_QUOTE || first === BACKTICK || first === BACKSLASH) return -1;
	if (first === LESS_THAN && text.charCodeAt(start + 1) === LESS_THAN) return -1;
	plainRun.lastIndex = start;
	plainRun.test(text);
	const end = plainRun.lastIndex;
	const next = text.charCodeAt(end);
	if (next === BACKSLASH || next === CR) return -1;
	if (namedValues) {
		for (let at = start; at < end; at++) if (text.charCodeAt(at) === EQUALS) return -1;
	}
	return end;
}

/**
 * Scans the word at `start`, which is neither white space nor `#`. `acceptsNamedValue` reports whether a quote after `NAME=` opens
 * a value here.
 */
export function scanWord(text: string, start: number, acceptsNamedValue?: () => boolean): ScannedWord {
	const first = text.charCodeAt(start);
	if (first === DOUBLE_QUOTE) return scanQuoted(text, start, false);
	if (first === BACKTICK) return scanBacktick(text, start);
	let word = '';
	let escaped = false;
	let heredocAllowed = true;
	for (let at = start; at < text.length; at++) {
		const code = text.charCodeAt(at);
		if (code === BACKSLASH && !escaped) {
			escaped = true;
			continue;
		}
		if (isWhiteSpace(code)) {
			if (code === CR) continue;
			if (code === LF) return { text: word || undefined, quote: 'none', end: escaped ? at + 1 : at };
			if (word !== '') return { text: word, quote: 'none', end: at };
			continue;
		}
		if (word === '') {
			if (code === HASH) return { text: undefined, quote: 'none', end: at };
			// A backslash before a quote does not prevent quoting, but inside the quotes it still counts.
			if (code === DOUBLE_QUOTE) return scanQuoted(text, at, escaped);
			if (code === BACKTICK) return scanBacktick(text, at);
		}
		if (
			acceptsNamedValue &&
			!escaped &&
			(code === DOUBLE_QUOTE || code === BACKTICK) &&
			endsAsParameter(word) &&
			acceptsNamedValue()
		) {
			const value = code === DOUBLE_QUOTE ? scanQuoted(text, at, false) : scanBacktick(text, at);
			return { ...value, text: word + (value.text ?? ''), quote: 'none', valueQuote: value.quote };
		}
		if (escaped) {
			if (code === LESS_THAN) heredocAllowed = false;
			else word += '\\';
			escaped = false;
		}
		word += text[at];
		if (heredocAllowed && word.length === 2 && word === '<<') return scanHeredoc(text, at - 1);
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

function scanQuoted(text: string, open: number, escapedBefore: boolean): ScannedWord {
	let escaped = escapedBefore;
	let word = '';
	for (let at = open + 1; at < text.length; at++) {
		const code = text.charCodeAt(at);
		if (escaped) {
			word += code === DOUBLE_QUOTE ? '"' : `\\${text[at]}`;
			escaped = false;
		} else if (code === BACKSLASH) escaped = true;
		else if (code === DOUBLE_QUOTE) return { text: word, quote: 'double', end: at + 1 };
		else {
			let end = at + 1;
			while (end < text.length && text.charCodeAt(end) !== DOUBLE_QUOTE && text.charCodeAt(end) !== BACKSLASH) end++;
			word += text.slice(at, end);
			at = end - 1;
		}
	}
	return { text: word || undefined, quote: 'none', end: text.length, unterminated: true, reachesEnd: true };
}
