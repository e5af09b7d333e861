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

const TOKEN_TYPES_OF_NAMES = {
	snippet: 'macro',
	parameter: 'parameter',
	let: 'variable',
	matcher: 'variable',
	upstream: 'namespace',
	route: 'macro',
} as const;

const KEYWORDS = /^(?:import|use|let|upstream|test|else|when)$/;
/** Matches a placeholder. A brace after a backslash does not begin one. */
const PLACEHOLDER = /(?<!\\)\{[^{}\s]*[^{}\s\\]\}/;
const PLACEHOLDERS = new RegExp(PLACEHOLDER, 'g');

/** Returns the tokens of a text, in order. */
export function semanticTokens(syntax: TextSyntax): SemanticToken[] {
	const { text, dialect, lines } = syntax;
	const { directives, matchers } = registryOf(dialect);
	const tokens: SemanticToken[] = [];
	const usedStarts = new Set<number>();
	const add = (range: TextRange, type: TokenType, definition: boolean = false): void => {
		if (range.end <= range.start || usedStarts.has(range.start)) return;
		usedStarts.add(range.start);
		tokens.push({ start: range.start, end: range.end, type, definition });
	};
	for (const { kind, role, start, end } of namesIn(syntax))
		add({ start, end }, TOKEN_TYPES_OF_NAMES[kind], role === 'definition');
	for (const { start, end } of scanComments(text, dialect)) add({ start, end }, 'comment');
	const kinds = new Map(lines.map(line => [line, kindOfTopLevel(line, dialect, directives)]));
	for (const line of lines) {
		observeLowering(line, kinds.get(line)!, syntax, {
			block: (block, words) => {
				for (const {
					words: [first],
				} of block.lines)
					if (first && words.includes(first.text)) add(first.span, 'property');
			},
			choice: ({ span, text: word }, values) => {
				if (values.includes(word)) add(span, 'enumMember');
			},
			value: (span, kind) => {
				if (PLACEHOLDER.test(text.slice(span.start, span.end))) return;
				const isNumber = kind === 'duration' || kind === 'size' || kind === 'status' || kind === 'integer';
				if (isNumber) add(span, 'number');
				else if (kind === 'regexp') add(span, 'regexp');
				else if (kind === 'boolean') add(span, 'enumMember');
				else if (kind === 'file') add(span, 'string');
			},
			pipeline: pipelineLines => {
				for (const {
					words: [first],
				} of pipelineLines) {
					if (first?.quote !== 'none' || !directives.has(first.text)) continue;
					add(first.span, KEYWORDS.test(first.text) ? 'keyword' : 'function');
				}
			},
			matcher: words => {
				for (const { text: word, span, quote } of words) {
					if (quote !== 'none') continue;
					if (/^(?:and|or|not|[()])$/.test(word)) add(span, 'operator');
					else if (matchers.has(word)) add(span, 'function');
				}
			},
		});
	}
	for (const { line, enclosingLines } of everyLine(lines)) {
		const [first] = line.words;
		if (!first) continue;
		const kind = enclosingLines.length === 0 ? kinds.get(line) : undefined;
		if (first.quote === 'none' && KEYWORDS.test(first.text) && kind !== 'site') add(first.span, 'keyword');
		if (kind === 'site') for (const { span } of line.words) add(span, 'class');
		if (enclosingLines.length === 1 && kindOfTopLevel(enclosingLines[0]!, dialect, directives) === 'options')
			add(first.span, 'property');
		for (const { span, quote } of line.words) {
			for (const { 0: placeholder, index } of text.slice(span.start, span.end).matchAll(PLACEHOLDERS)) {
				const start = span.start + index;
				// The names in these braces have tokens of their own.
				if (!/^\{(?:let|param)\./.test(placeholder)) add({ start, end: start + placeholder.length }, 'variable');
			}
			if (quote !== 'none' && !PLACEHOLDER.test(text.slice(span.start, span.end))) add(span, 'string');
		}
	}
	return withoutOverlaps(tokens.sort((one, other) => one.start - other.start || one.end - other.end));
}

function withoutOverlaps(tokens: readonly SemanticToken[]): SemanticToken[] {
	let end = 0;
	return tokens.filter(token => {
		if (token.start < end) return false;
		end = token.end;
		return true;
	});
}
