/** The parser of nginx's configuration language: directives of words, ended by `;` or followed by a block. */
import type { Report } from '../../diagnostics/diagnostic.ts';
import type { Source, SourceSpan } from '../../source/source.ts';

/** One directive, with the directives of its block. */
export interface NginxDirective {
	readonly name: string;
	/** The words after the name, without quotes and escapes. */
	readonly args: readonly string[];
	/** The directives in the block; undefined if the directive ended with `;`. */
	readonly block: readonly NginxDirective[] | undefined;
	/** The span of the directive's name and words. */
	readonly span: SourceSpan;
	/** The directive as it was written, on one line and without its block. */
	readonly text: string;
}

/** Maximum depth of nested blocks, far above what real configurations need. */
const MAX_BLOCK_DEPTH = 64;

interface Token {
	readonly kind: 'word' | ';' | '{' | '}' | 'end';
	readonly text: string;
	readonly start: number;
	readonly end: number;
}

/** Parses a file. Reports every mistake and continues after it, so that one run shows all of them. */
export function parseNginx(source: Source, report: Report): NginxDirective[] {
	const tokens = tokenize(source, report);
	let tokenIndex = 0;
	const spanOf = (first: Token, last: Token): SourceSpan => ({ source, start: first.start, end: last.end });
	const reportMistake = (code: string, token: Token, message: string, hint: string): void =>
		report({ code: `nginx/${code}`, severity: 'error', message, span: spanOf(token, token), hint });
	const parseBlock = (depth: number, openingBrace: Token | undefined): NginxDirective[] => {
		const directives: NginxDirective[] = [];
		for (;;) {
			const token = tokens[tokenIndex]!;
			if (token.kind === 'end') {
				if (openingBrace)
					reportMistake('missing-brace', openingBrace, 'This block is never closed.', 'Add the missing `}`.');
				return directives;
			}
			tokenIndex++;
			if (token.kind === '}') {
				if (openingBrace) return directives;
				reportMistake(
					'stray-brace',
					token,
					'This `}` closes no block.',
					'Remove it, or add the `{` that it belongs to.',
				);
			} else if (token.kind === '{' || token.kind === ';') {
				reportMistake(
					'missing-name',
					token,
					`A directive cannot begin with \`${token.kind}\`.`,
					'Write its name before it.',
				);
				if (token.kind === '{') parseBlock(depth + 1, token);
			} else {
				const parsedDirective = parseDirective(token, depth);
				if (parsedDirective) directives.push(parsedDirective);
			}
		}
	};
	const parseDirective = (nameToken: Token, depth: number): NginxDirective | undefined => {
		const words: Token[] = [nameToken];
		while (tokens[tokenIndex]!.kind === 'word') words.push(tokens[tokenIndex++]!);
		const lastWord = words.at(-1)!;
		const nextToken = tokens[tokenIndex]!;
		const span = spanOf(nameToken, lastWord);
		const commonFields = { name: nameToken.text, args: words.slice(1).map(({ text }) => text), span };
		const text = source.text.slice(span.start, span.end).replace(/\s+/g, ' ');
		if (nextToken.kind === ';') {
			tokenIndex++;
			return { ...commonFields, block: undefined, text };
		}
		if (nextToken.kind === '{') {
			tokenIndex++;
			if (depth < MAX_BLOCK_DEPTH) return { ...commonFields, block: parseBlock(depth + 1, nextToken), text };
			reportMistake(
				'too-deep',
				nextToken,
				`Blocks are nested more than ${MAX_BLOCK_DEPTH} deep.`,
				'Remove some of them.',
			);
			skipBlock();
			return undefined;
		}
		reportMistake('missing-semicolon', lastWord, `\`${nameToken.text}\` is not ended by \`;\`.`, 'Add `;` after it.');
		return undefined;
	};
	const skipBlock = (): void => {
		for (let openBlockCount = 1; openBlockCount > 0 && tokens[tokenIndex]!.kind !== 'end'; tokenIndex++) {
			if (tokens[tokenIndex]!.kind === '{') openBlockCount++;
			else if (tokens[tokenIndex]!.kind === '}') openBlockCount--;
		}
	};
	return parseBlock(0, undefined);
}

function tokenize(source: Source, report: Report): Token[] {
	const { text } = source;
	const tokens: Token[] = [];
	let offset = 0;
	while (offset < text.length) {
		const start = offset;
		const char = text[offset]!;
		if (/\s/.test(char)) offset++;
		else if (char === '#') {
			while (offset < text.length && text[offset] !== '\n') offset++;
		} else if (char === ';' || char === '{' || char === '}') {
			offset++;
			tokens.push({ kind: char, text: char, start, end: offset });
		} else if (char === '"' || char === "'") {
			let word = '';
			for (offset++; offset < text.length && text[offset] !== char; offset++) {
				if (text[offset] === '\\' && offset + 1 < text.length) word += unescapeChar(text[++offset]!);
				else word += text[offset];
			}
			if (offset >= text.length) {
				const message = 'This quotation mark is never closed.';
				const span = { source, start, end: start + 1 };
				report({ code: 'nginx/missing-quote', severity: 'error', message, span, hint: `Add the missing \`${char}\`.` });
			}
			offset++;
			tokens.push({ kind: 'word', text: word, start, end: Math.min(offset, text.length) });
		} else {
			let word = '';
			for (; offset < text.length && !/[\s;{]/.test(text[offset]!); offset++) {
				if (text[offset] === '\\' && offset + 1 < text.length) word += unescapeChar(text[++offset]!);
				else if (text.startsWith('${', offset)) {
					const closingBrace = text.indexOf('}', offset);
					const lastIndex = closingBrace === -1 ? offset + 1 : closingBrace;
					word += text.slice(offset, lastIndex + 1);
					offset = lastIndex;
				} else word += text[offset];
			}
			tokens.push({ kind: 'word', text: word, start, end: offset });
		}
	}
	tokens.push({ kind: 'end', text: '', start: text.length, end: text.length });
	return tokens;
}

/**
 * Returns the text that a backslash followed by `char` stands for. The backslash is kept unless `char` is a quote, a backslash,
 * `t`, `r` or `n`, because all other escapes belong to regular expressions.
 */
function unescapeChar(char: string): string {
	if (char === '"' || char === "'" || char === '\\') return char;
	const control = { t: '\t', r: '\r', n: '\n' }[char];
	return control ?? `\\${char}`;
}
