/** The structure of a text: its symbols, the ranges that can be folded, and the ranges that enclose an offset. */
import { registryOf } from '../lower/registry.ts';
import type { ParsedLine } from '../syntax/parsed-file.ts';
import { scanComments } from '../syntax/scan-comments.ts';
import {
	everyLine,
	kindOfTopLevel,
	placeAt,
	rangeOf,
	rangeOfLine,
	type TextRange,
	type TextSyntax,
} from './text-syntax.ts';

export type SymbolKind =
	| 'options'
	| 'site'
	| 'snippet'
	| 'route'
	| 'upstream'
	| 'test'
	| 'let'
	| 'matcher'
	| 'directive';

/** A named part of a configuration. */
export interface TextSymbol {
	readonly name: string;
	readonly detail: string;
	readonly kind: SymbolKind;
	/** The range of the complete block or line. */
	readonly range: TextRange;
	readonly name_range: TextRange;
	readonly children: readonly TextSymbol[];
}

/** Returns the symbols of a text: its top-level blocks and, in these, named matchers and directives with blocks. */
export function symbolsOf(syntax: TextSyntax): TextSymbol[] {
	const { directives } = registryOf(syntax.dialect);
	const lines = joinHeads(syntax.lines);
	return lines.flatMap(({ head, line }) => {
		const kind = kindOfTopLevel(head, syntax.dialect, directives);
		if (kind === 'import') return [];
		const range = { start: rangeOfLine(head).start, end: rangeOfLine(line).end };
		const { words } = head;
		const firstWord = words[0];
		const nameWord = kind === 'upstream' || kind === 'test' || kind === 'let' ? (words[1] ?? firstWord) : firstWord;
		const name_range = nameWord ? rangeOf(nameWord.span) : { start: range.start, end: range.start + 1 };
		const name =
			kind === 'options'
				? 'global options'
				: kind === 'site'
					? words.map(({ text }) => text).join(' ')
					: (nameWord?.text ?? '');
		const detail =
			kind === 'let'
				? words
						.slice(2)
						.map(({ text }) => text)
						.join(' ')
				: kind === 'site'
					? ''
					: kind;
		return [{ name: name || '(no name)', detail, kind, range, name_range, children: innerSymbols(line) }];
	});
}

/** Joins the head of a block with the line of its `{`, which may be the next one. */
function joinHeads(lines: readonly ParsedLine[]): { readonly head: ParsedLine; readonly line: ParsedLine }[] {
	const joinedHeads: { head: ParsedLine; line: ParsedLine }[] = [];
	for (const line of lines) {
		const previous = joinedHeads.at(-1);
		if (line.words.length === 0 && previous && !previous.line.block && previous.line.words.length > 0)
			previous.line = line;
		else joinedHeads.push({ head: line, line });
	}
	return joinedHeads;
}

function innerSymbols({ block, alternative }: ParsedLine): TextSymbol[] {
	const ownSymbols = (block?.lines ?? []).flatMap(line => {
		const firstWord = line.words[0];
		if (!firstWord) return [];
		const isMatcher = firstWord.text.startsWith('@');
		if (!isMatcher && !line.block) return [];
		const detail = line.words
			.slice(1)
			.map(({ text }) => text)
			.join(' ');
		const kind: SymbolKind = isMatcher ? 'matcher' : 'directive';
		const range = rangeOfLine(line);
		return [
			{ name: firstWord.text, detail, kind, range, name_range: rangeOf(firstWord.span), children: innerSymbols(line) },
		];
	});
	return alternative ? [...ownSymbols, ...innerSymbols(alternative)] : ownSymbols;
}

/** A range of lines that an editor can fold. */
export interface Fold extends TextRange {
	readonly kind: 'block' | 'comment' | 'imports';
}

/** Returns the blocks, runs of comments and runs of imports that extend over several lines. */
export function foldsOf(syntax: TextSyntax): Fold[] {
	const { text } = syntax;
	const folds: Fold[] = [];
	const addFold = (kind: Fold['kind'], start: number, end: number): void => {
		if (text.slice(start, end).includes('\n')) folds.push({ kind, start, end });
	};
	for (const { line } of everyLine(syntax.lines)) {
		if (line.block) addFold('block', line.block.open.start, line.block.close.end);
		for (const { span, quote } of line.words) if (quote !== 'none') addFold('block', span.start, span.end);
	}
	let commentRun: { start: number; end: number } | undefined;
	for (const { start, end, isAlone } of scanComments(text, syntax.dialect)) {
		if (
			isAlone &&
			commentRun &&
			/^\s*$/.test(text.slice(commentRun.end, start)) &&
			!/\n\s*\n/.test(text.slice(commentRun.end, start))
		)
			commentRun.end = end;
		else {
			if (commentRun) addFold('comment', commentRun.start, commentRun.end);
			commentRun = isAlone ? { start, end } : undefined;
		}
	}
	if (commentRun) addFold('comment', commentRun.start, commentRun.end);
	let importRun: TextRange | undefined;
	for (const line of syntax.lines) {
		const word = line.words[0]?.text;
		const range = rangeOfLine(line);
		if (word === 'import' || word === 'use') importRun = { start: importRun?.start ?? range.start, end: range.end };
		else {
			if (importRun) addFold('imports', importRun.start, importRun.end);
			importRun = undefined;
		}
	}
	if (importRun) addFold('imports', importRun.start, importRun.end);
	return folds;
}

/**
 * Returns the ranges that enclose an offset, innermost first: the word, the line, the enclosing blocks and their lines, and the
 * complete text.
 */
export function enclosingRanges(syntax: TextSyntax, offset: number): TextRange[] {
	const { enclosingLines, line, word } = placeAt(syntax, offset);
	const ranges: TextRange[] = [];
	const addRange = (range: TextRange): void => {
		const innermost = ranges.at(-1);
		if (innermost && (range.start > innermost.start || range.end < innermost.end)) return;
		if (innermost?.start !== range.start || innermost.end !== range.end) ranges.push(range);
	};
	if (word) {
		const { start, end } = word.span;
		if (word.quote !== 'none' && word.quote !== 'heredoc' && offset > start && offset < end)
			addRange({ start: start + 1, end: end - 1 });
		addRange({ start, end });
	}
	if (line && line.words.length > 0) {
		addRange({ start: line.words[0]!.span.start, end: line.words.at(-1)!.span.end });
		addRange(rangeOfLine(line));
	}
	for (const outerLine of enclosingLines.toReversed()) {
		if (outerLine.block) {
			addRange({ start: outerLine.block.open.end, end: outerLine.block.close.start });
			addRange({ start: outerLine.block.open.start, end: outerLine.block.close.end });
		}
		addRange(rangeOfLine(outerLine));
	}
	addRange({ start: 0, end: syntax.text.length });
	return ranges;
}
