/** Semantic tokens: the kinds of words in a text, for highlighting. */
import { registryOf } from '../lower/registry.ts';
import { scanComments } from '../syntax/scan-comments.ts';
import { namesIn } from './names.ts';
import { observeLowering } from './observed-lowering.ts';
import { everyLine, kindOfTopLevel, type TextRange, type TextSyntax } from './text-syntax.ts';

/** Types of tokens, named as in the Language Server Protocol, in the order of the legend. */
export const TOKEN_TYPES = [
	...([
		'comment',
		'keyword',
		'function',
		'property',
		'namespace',
		'variable',
		'parameter',
		'macro',
		'string',
		'number',
	] as const),
	...(['enumMember', 'operator', 'class', 'regexp'] as const),
] as const;

export type TokenType = (typeof TOKEN_TYPES)[number];

/** A range of text with its type. Tokens do not overlap. */
export interface SemanticToken extends TextRange {
	readonly type: TokenType;
	readonly definition: boolean;
}

const TOKEN_TYPES_BY_KIND = {
	snippet: 'macro',
	parameter: 'parameter',
	let: 'variable',
	matcher: 'variable',
	upstream: 'namespace',
	route: 'macro',
} as const;

const KEYWORD_PATTERN = /^(?:import|use|let|upstream|test|else|when)$/;
/** Matches a placeholder. A brace after a backslash does not begin one. */
const PLACEHOLDER = /(?<!\\)\{[^{}\s]*[^{}\s\\]\}/;
const ALL_PLACEHOLDERS = new RegExp(PLACEHOLDER, 'g');

/** Returns the tokens of a text, in order. */
export function semanticTokens(syntax: TextSyntax): SemanticToken[] {
	const { text, dialect, lines } = syntax;
	const { directives, matchers } = registryOf(dialect);
	const tokens: SemanticToken[] = [];
	const usedStarts = new Set<number>();
	const addToken = (range: TextRange, type: TokenType, definition: boolean = false): void => {
		if (range.end <= range.start || usedStarts.has(range.start)) return;
		usedStarts.add(range.start);
		tokens.push({ start: range.start, end: range.end, type, definition });
	};
	for (const { kind, role, start, end } of namesIn(syntax))
		addToken({ start, end }, TOKEN_TYPES_BY_KIND[kind], role === 'definition');
	for (const { start, end } of scanComments(text, dialect)) addToken({ start, end }, 'comment');
	const kindsByLine = new Map(lines.map(line => [line, kindOfTopLevel(line, dialect, directives)]));
	for (const line of lines) {
		observeLowering(line, kindsByLine.get(line)!, syntax, {
			onBlock: (block, words) => {
				for (const {
					words: [first],
				} of block.lines)
					if (first && words.includes(first.text)) addToken(first.span, 'property');
			},
			onChoice: ({ span, text: word }, values) => {
				if (values.includes(word)) addToken(span, 'enumMember');
			},
			onValue: (span, kind) => {
				if (PLACEHOLDER.test(text.slice(span.start, span.end))) return;
				const isNumber = kind === 'duration' || kind === 'size' || kind === 'status' || kind === 'integer';
				if (isNumber) addToken(span, 'number');
				else if (kind === 'regexp') addToken(span, 'regexp');
				else if (kind === 'boolean') addToken(span, 'enumMember');
				else if (kind === 'file') addToken(span, 'string');
			},
			onPipeline: pipelineLines => {
				for (const {
					words: [first],
				} of pipelineLines) {
					if (first?.quote !== 'none' || !directives.has(first.text)) continue;
					addToken(first.span, KEYWORD_PATTERN.test(first.text) ? 'keyword' : 'function');
				}
			},
			onMatcher: words => {
				for (const { text: word, span, quote } of words) {
					if (quote !== 'none') continue;
					if (/^(?:and|or|not|[()])$/.test(word)) addToken(span, 'operator');
					else if (matchers.has(word)) addToken(span, 'function');
				}
			},
		});
	}
	for (const { line, enclosingLines } of everyLine(lines)) {
		const [firstWord] = line.words;
		if (!firstWord) continue;
		const kind = enclosingLines.length === 0 ? kindsByLine.get(line) : undefined;
		if (firstWord.quote === 'none' && KEYWORD_PATTERN.test(firstWord.text) && kind !== 'site')
			addToken(firstWord.span, 'keyword');
		if (kind === 'site') for (const { span } of line.words) addToken(span, 'class');
		if (enclosingLines.length === 1 && kindOfTopLevel(enclosingLines[0]!, dialect, directives) === 'options')
			addToken(firstWord.span, 'property');
		for (const { span, quote } of line.words) {
			for (const { 0: placeholder, index } of text.slice(span.start, span.end).matchAll(ALL_PLACEHOLDERS)) {
				const start = span.start + index;
				// The names in these braces have tokens of their own.
				if (!/^\{(?:let|param)\./.test(placeholder)) addToken({ start, end: start + placeholder.length }, 'variable');
			}
			if (quote !== 'none' && !PLACEHOLDER.test(text.slice(span.start, span.end))) addToken(span, 'string');
		}
	}
	return withoutOverlaps(tokens.sort((one, other) => one.start - other.start || one.end - other.end));
}

function withoutOverlaps(tokens: readonly SemanticToken[]): SemanticToken[] {
	let previousEnd = 0;
	return tokens.filter(token => {
		if (token.start < previousEnd) return false;
		previousEnd = token.end;
		return true;
	});
}
