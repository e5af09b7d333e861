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
const MAX_DEPTH = 64;

interface Token {
	readonly kind: 'word' | ';' | '{' | '}' | 'end';
	readonly text: string;
	readonly start: number;
	readonly end: number;
}

/** Parses a file. Reports every mistake and continues after it, so that one run shows all of them. */
export function parseNginx(source: Source, report: Report): NginxDirective[] {
	const tokens = tokensOf(source, report);
	let position = 0;
	const spanOf = (first: Token, last: Token): SourceSpan => ({ source, start: first.start, end: last.end });
	const reportMistake = (code: string, token: Token, message: string, hint: string): void =>
		report({ code: `nginx/${code}`, severity: 'error', message, span: spanOf(token, token), hint });
	const parseBlock = (depth: number, openingBrace: Token | undefined): NginxDirective[] => {
		const directives: NginxDirective[] = [];
		for (;;) {
			const token = tokens[position]!;
			if (token.kind === 'end') {
				if (openingBrace)
					reportMistake('missing-brace', openingBrace, 'This block is never closed.', 'Add the missing `}`.');
				return directives;
			}
			position++;
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
				const parsed = parseDirective(token, depth);
				if (parsed) directives.push(parsed);
			}
		}
	};
	const parseDirective = (name: Token, depth: number): NginxDirective | undefined => {
		const words: Token[] = [name];
		while (tokens[position]!.kind === 'word') words.push(tokens[position++]!);
		const last = words.at(-1)!;
		const next = tokens[position]!;
		const span = spanOf(name, last);
		const common = { name: name.text, args: words.slice(1).map(({ text }) => text), span };
		const text = source.text.slice(span.start, span.end).replace(/\s+/g, ' ');
		if (next.kind === ';') {
			position++;
			return { ...common, block: undefined, text };
		}
		if (next.kind === '{') {
			position++;
			if (depth < MAX_DEPTH) return { ...common, block: parseBlock(depth + 1, next), text };
			reportMistake('too-deep', next, `Blocks are nested more than ${MAX_DEPTH} deep.`, 'Remove some of them.');
			skipBlock();
			return undefined;
		}
		reportMistake('missing-semicolon', last, `\`${name.text}\` is not ended by \`;\`.`, 'Add `;` after it.');
		return undefined;
	};
	const skipBlock = (): void => {
		for (let openBlocks = 1; openBlocks > 0 && tokens[position]!.kind !== 'end'; position++) {
			if (tokens[position]!.kind === '{') openBlocks++;
			else if (tokens[position]!.kind === '}') openBlocks--;
		}
	};
	return parseBlock(0, undefined);
}

function tokensOf(source: Source, report: Report): Token[] {
	const { text } = source;
	const tokens: Token[] = [];
	let at = 0;
	while (at < text.length) {
		const start = at;
		const char = text[at]!;
		if (/\s/.test(char)) at++;
		else if (char === '#') {
			while (at < text.length && text[at] !== '\n') at++;
		} else if (char === ';' || char === '{' || char === '}') {
			at++;
			tokens.push({ kind: char, text: char, start, end: at });
		} else if (char === '"' || char === "'") {
			let word = '';
			for (at++; at < text.length && text[at] !== char; at++) {
				if (text[at] === '\\' && at + 1 < text.length) word += unescapeChar(text[++at]!);
				else word += text[at];
			}
			if (at >= text.length) {
				const message = 'This quotation mark is never closed.';
				const span = { source, start, end: start + 1 };
				report({ code: 'nginx/missing-quote', severity: 'error', message, span, hint: `Add the missing \`${char}\`.` });
			}
			at++;
			tokens.push({ kind: 'word', text: word, start, end: Math.min(at, text.length) });
		} else {
			let word = '';
			for (; at < text.length && !/[\s;{]/.test(text[at]!); at++) {
				if (text[at] === '\\' && at + 1 < text.length) word += unescapeChar(text[++at]!);
				else if (text.startsWith('${', at)) {
					const close = text.indexOf('}', at);
					const stop = close === -1 ? at + 1 : close;
					word += text.slice(at, stop + 1);
					at = stop;
				} else word += text[at];
			}
			tokens.push({ kind: 'word', text: word, start, end: at });
		}
	}
	tokens.push({ kind: 'end', text: '', start: text.length, end: text.length });
	return tokens;
}

/**
 * Returns the text that an escape stands for. The backslash is kept before other characters, which only regular expressions escape.
 */
function unescapeChar(char: string): string {
	if (char === '"' || char === "'" || char === '\\') return char;
	const control = { t: '\t', r: '\r', n: '\n' }[char];
	return control ?? `\\${char}`;
}
