/** The tokens of both text dialects (words, standalone braces and newlines), and the Chevrotain lexer that recognizes them. */
import { createToken, type IToken, Lexer, type TokenType } from 'chevrotain';
import type { Dialect } from '../dialects/dialect.ts';
import { lazily } from '../exchange/lazily.ts';
import { whiteSpaceClass, whiteSpaceCodes } from './characters.ts';
import { endOfPlainWord, type ScannedWord, scanWord } from './scan-word.ts';

/** A token as the parser receives it. `payload` is set for a word whose value may differ from its image. */
export interface WordToken extends IToken {
	payload?: ScannedWord;
}

// A standalone brace is followed by white space other than CR, by a line continuation, or by the end of the text. Carriage returns
// in between are ignored.
const standaloneEnd = `\\r*(?:(?=[${whiteSpaceClass.replace('\\t-\\r', '\\t-\\f')}])|(?![^])|(?=\\\\[^\\S\\n]*\\n))`;

const Blank = createToken({
	name: 'Blank',
	pattern: new RegExp(`[${whiteSpaceClass.replace('\\t-\\r', '\\t\\v-\\r')}]+`),
	start_chars_hint: whiteSpaceCodes.filter(code => code !== 10),
	group: Lexer.SKIPPED,
});

/** A newline, together with the blank lines and the indentation after it. */
export const Newline = createToken({
	name: 'Newline',
	pattern: /\n[\t\r\n ]*/,
	start_chars_hint: ['\n'],
	line_breaks: true,
});

/**
 * A comment up to the end of the line. If a backslash ends the line, the newline is included, so that the text on the next line
 * continues the current one.
 */
export const Comment = createToken({
	name: 'Comment',
	pattern: /#(?:[^\n]*\\\r*\n|[^\n]*)/,
	start_chars_hint: ['#'],
	group: Lexer.SKIPPED,
	line_breaks: true,
});

/** A standalone `{`. Next to other characters it is text, as in placeholders. */
export const OpenBrace = createToken({
	name: 'Open',
	pattern: new RegExp(`\\{${standaloneEnd}`),
	start_chars_hint: ['{'],
});

/** A standalone `}`. */
export const CloseBrace = createToken({
	name: 'Close',
	pattern: new RegExp(`\\}${standaloneEnd}`),
	start_chars_hint: ['}'],
});

/** A word, quoted or not, other than a standalone brace. */
export const Word = createToken({ name: 'Word', pattern: Lexer.NA });

/** Maximum number of words before a named value on a line. */
export const maxWordsBeforeValue = 256;

/**
 * Reports whether a quote after `NAME=` opens a quoted value, which is the case in the head of a snippet and after `use`. `tokens`
 * are the tokens before the quote.
 */
function takesNamedValues(tokens: readonly IToken[]): boolean {
	let headToken: IToken | undefined;
	for (let index = tokens.length - 1; index >= 0; index--) {
		const type = tokens[index]!.tokenType;
		if (type === Newline || type === OpenBrace || type === CloseBrace) break;
		if (tokens.length - index > maxWordsBeforeValue) return false;
		headToken = tokens[index];
	}
	if (!headToken || (headToken as WordToken).payload) return false;
	return headToken.image === 'use' || (headToken.image.startsWith('(') && headToken.image.endsWith(')'));
}

type WordMatch = [string] & { payload?: ScannedWord };

function wordPattern(namedValues: boolean): (text: string, offset: number, tokens: IToken[]) => WordMatch {
	return (text, offset, tokens) => {
		const end = endOfPlainWord(text, offset, namedValues);
		if (end !== -1) return [text.slice(offset, end)];
		const word = scanWord(text, offset, namedValues ? () => takesNamedValues(tokens) : undefined);
		const match: WordMatch = [text.slice(offset, word.end)];
		match.payload = word;
		return match;
	};
}

// The lexer groups code units above 255 in steps of 255, so one unit of each group is listed.
const wordStartCodes = Array.from({ length: 256 }, (_, code) => code)
	.concat(Array.from({ length: 257 }, (_, step) => Math.min(256 + step * 255, 0xffff)))
	.filter(code => !whiteSpaceCodes.includes(code) && code !== 0x23);

function wordToken(name: string, namedValues: boolean): TokenType {
	return createToken({
		name,
		pattern: wordPattern(namedValues) as never,
		start_chars_hint: wordStartCodes,
		line_breaks: true,
		categories: [Word],
	});
}

const tokensByDialect = {
	configfile: [Blank, Newline, Comment, OpenBrace, CloseBrace, wordToken('ConfigfileWord', true)],
	compatfile: [Blank, Newline, Comment, OpenBrace, CloseBrace, wordToken('CompatfileWord', false)],
};

/** All types of tokens, for the parser. */
export const vocabulary: TokenType[] = [
	Word,
	...new Set([...tokensByDialect.configfile, ...tokensByDialect.compatfile]),
];

function createLexer(dialect: Dialect): Lexer {
	return new Lexer(tokensByDialect[dialect], {
		positionTracking: 'onlyOffset',
		ensureOptimizations: true,
		skipValidations: true,
	});
}

/** The lexer of each dialect, made when it is first used, because the analysis of its tokens takes milliseconds. */
const lexers: { readonly [dialect in Dialect]: () => Lexer } = {
	configfile: lazily(() => createLexer('configfile')),
	compatfile: lazily(() => createLexer('compatfile')),
};

/**
 * Splits a text into tokens. Environment variables have already been replaced. Never fails, because every text can be tokenized.
 */
export function tokenize(text: string, dialect: Dialect): WordToken[] {
	return lexers[dialect]().tokenize(text).tokens as WordToken[];
}
