/**
 * Converts a Compatfile, or one block of it, to a Configfile. Directives are written in the order in which they run, and old names
 * are replaced by current ones.
 */
import type { ConfigInput } from '../dialects/dialect.ts';
import type { Document } from '../document/document.ts';
import { registryOf } from '../lower/registry.ts';
import { compile } from '../pipeline/compile.ts';
import { printedForm } from '../schema/printed-form.ts';
import type { Reader } from '../source/reader.ts';
import { formatText } from '../syntax/format.ts';
import type { ParsedBlock, ParsedLine } from '../syntax/parsed-file.ts';
import { everyLine, kindOfTopLevel, parseSyntax, rangeOfLine, type TextSyntax } from './text-syntax.ts';

/** The Configfile that results from a conversion, or the reason why there is none. */
export type Conversion =
	| { readonly text: string }
	| {
			readonly problem: string;
			/** Offset, in the Compatfile, of the part that causes the problem; undefined if it is not known. */
			readonly offset?: number | undefined;
	  };

const OLD_ARGUMENT = /(?<!\\)\{args\.(\d+)\}/g;

/** A line together with the comments above it, which move with it. */
interface LinePiece {
	readonly text: string;
	/** The number of the first step that is lowered from the line; undefined if there is none. */
	readonly stepNumber: number | undefined;
}

/** A top-level block of a Compatfile that can be converted on its own. */
export interface ConvertibleBlock {
	readonly kind: 'site' | 'snippet' | 'named route';
	/** The first address of a site, or the name of a snippet or route without parentheses. */
	readonly name: string;
	readonly line: ParsedLine;
}

type CompatInput = Omit<ConfigInput, 'format'>;

/** Converts a Compatfile. The result is a Configfile only if it compiles to the same document. */
export function convertToConfigfile(input: CompatInput, reader: Reader): Conversion {
	return convertAndCheck(input, input.text, reader) ?? { problem: 'The Caddyfile has errors. Correct them first.' };
}

/** Returns the block at an offset; undefined if there is none, or if it is the only block of the file. */
export function convertibleBlock(syntax: TextSyntax, offset: number): ConvertibleBlock | undefined {
	const { lines, dialect } = syntax;
	const line = lines.find(candidate => {
		const { start, end } = rangeOfLine(candidate);
		return start <= offset && offset <= end;
	});
	const name = line?.words[0]?.text;
	if (dialect !== 'compatfile' || !line?.block || name === undefined) return undefined;
	if (!lines.some(candidate => candidate !== line && candidate.words.length > 0)) return undefined;
	const kind = kindOfTopLevel(line, dialect, registryOf(dialect).directives);
	if (kind === 'snippet') return { kind, name: name.slice(1, -1), line };
	if (kind === 'route') return { kind: 'named route', name: name.slice(2, -1), line };
	return kind === 'site' ? { kind, name, line } : undefined;
}

/**
 * Converts the block at an offset of a Compatfile, with the snippets and named routes that it uses. For a site, the global options
 * are converted as well, so that the result compiles to the same document as a Compatfile with only this site. A snippet or named
 * route is checked in the sites that use it.
 */
export function convertBlock(input: CompatInput, offset: number, reader: Reader): Conversion {
	const syntax = parseSyntax(input.path ?? input.name, input.text, 'compatfile');
	const block = convertibleBlock(syntax, offset);
	if (!block) return { problem: 'There is no site, snippet or named route to convert by itself here.' };
	const { kind, name, line } = block;
	const { directives } = registryOf('compatfile');
	const linesOfKind = (kind: string): ParsedLine[] =>
		syntax.lines.filter(candidate => kindOfTopLevel(candidate, 'compatfile', directives) === kind);
	const usedLines = withUsedDefinitions(syntax, [line]);
	const usingSites =
		kind === 'site' ? [] : linesOfKind('site').filter(site => withUsedDefinitions(syntax, [site]).has(line));
	if (kind !== 'site' && usingSites.length === 0) {
		return {
			problem: `No site in this file uses the ${kind} \`${name}\`, so the order in which its directives run is not known.`,
		};
	}
	const checkedLines = [...linesOfKind('options'), ...withUsedDefinitions(syntax, [line, ...usingSites])];
	const shownLines = kind === 'site' ? checkedLines : [...usedLines];
	// Imports at the top level are left out at first, because the imported files may contain other sites. They are needed only if
	// an imported file defines a snippet that is used.
	for (const importLines of [[], linesOfKind('import')]) {
		const text = blankOtherLines(syntax, [...checkedLines, ...importLines]);
		const conversion = convertAndCheck(
			{ ...input, text },
			blankOtherLines(syntax, [...shownLines, ...importLines]),
			reader,
		);
		if (conversion) return conversion;
	}
	return { problem: `By itself, the ${kind} \`${name}\` has errors. Correct them first.` };
}

/** Returns the given top-level lines, and the snippets and named routes of the same file that they use, directly or not. */
function withUsedDefinitions({ lines }: TextSyntax, startLines: readonly ParsedLine[]): ReadonlySet<ParsedLine> {
	const definitionsByHead = new Map(
		lines.flatMap(line => (line.words[0] ? [[line.words[0].text, line] as const] : [])),
	);
	const usedLines = new Set(startLines);
	for (const userLine of usedLines) {
		for (const { line } of everyLine([userLine])) {
			const [keyword, target] = line.words;
			const prefix = keyword?.text === 'import' ? '' : keyword?.text === 'invoke' ? '&' : undefined;
			if (prefix === undefined || !target) continue;
			const isComputed = target.text.includes('{');
			for (const [name, definition] of definitionsByHead) {
				if (name === `${prefix}(${target.text})` || (isComputed && name.startsWith(`${prefix}(`)))
					usedLines.add(definition);
			}
		}
	}
	return usedLines;
}

/**
 * Returns the text with every top-level line except `keptLines` replaced by spaces, so that the offsets of the kept lines stay the
 * same.
 */
function blankOtherLines({ text, lines }: TextSyntax, keptLines: readonly ParsedLine[]): string {
	// The first and last newlines are kept, so that the omitted text leaves an empty line.
	const blankOut = (start: number, end: number): string => {
		const newlines = [text.indexOf('\n', start), text.lastIndexOf('\n', end - 1)];
		return text
			.slice(start, end)
			.replace(/[\s\S]/g, (_, index: number) => (newlines.includes(start + index) ? '\n' : ' '));
	};
	let blankedText = '';
	let position = 0;
	let previousEnd = 0;
	for (const line of lines) {
		const { start, end } = rangeOfLine(line);
		const comments = /(?:(?<=^|\n)[ \t]*#.*\r?\n)*[ \t]*$/.exec(text.slice(previousEnd, start))![0];
		const comment = /^[ \t]*#.*/.exec(text.slice(end))?.[0] ?? '';
		previousEnd = end + comment.length;
		if (!keptLines.includes(line)) continue;
		blankedText += blankOut(position, start - comments.length) + text.slice(start - comments.length, previousEnd);
		position = previousEnd;
	}
	return blankedText + blankOut(position, text.length);
}

/**
 * Converts `shownText`, which is the text of a Compatfile or a part of it at the same offsets. The complete text is converted and
 * checked first. Returns undefined if the Compatfile has errors.
 */
function convertAndCheck(input: CompatInput, shownText: string, reader: Reader): Conversion | undefined {
	const compatResult = compile({ ...input, format: 'compatfile' }, reader);
	if (!compatResult.document) return undefined;
	const parse = (text: string): TextSyntax => parseSyntax(input.path ?? input.name, text, 'compatfile');
	const pointers = stepPointers(compatResult.document, '');
	const placesByStep: (readonly number[])[] = pointers.map(pointer => {
		const places: number[] = [];
		for (let place = compatResult.locate(pointer); place; place = place.source.importedAt)
			if (place.source.path === input.path && place.source.name === input.name) places.push(place.start);
		return places;
	});
	const convert = (text: string): string => formatText(new Converter(parse(text), placesByStep).convertText());
	const configfileText = convert(input.text);
	const configResult = compile({ ...input, text: configfileText, format: 'configfile' }, reader);
	if (!configResult.document) {
		const [mistake] = configResult.diagnostics.filter(({ severity }) => severity === 'error');
		return { problem: `A Configfile does not accept it: ${mistake?.message ?? 'it has errors.'}` };
	}
	const differencePointer = firstDifferencePointer(
		comparableDocument(compatResult.document),
		comparableDocument(configResult.document),
		'',
	);
	if (differencePointer === undefined) return { text: shownText === input.text ? configfileText : convert(shownText) };
	return {
		problem: `A Configfile would mean something else: \`${differencePointer}\` of the document differs.`,
		offset: nearestOffset(differencePointer, compatResult.locate, input.path),
	};
}

/** Returns the JSON pointers of all steps, in the order in which they run. */
function stepPointers(value: unknown, pointer: string): string[] {
	if (typeof value !== 'object' || value === null) return [];
	const innerPointers = Object.entries(value).flatMap(([name, part]) =>
		stepPointers(part, `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`),
	);
	return 'handler' in value ? [pointer, ...innerPointers] : innerPointers;
}

class Converter {
	readonly #syntax: TextSyntax;
	readonly #placesByStep: readonly (readonly number[])[];
	readonly #currentNames = registryOf('configfile').oldSpellings;

	constructor(syntax: TextSyntax, placesByStep: readonly (readonly number[])[]) {
		this.#syntax = syntax;
		this.#placesByStep = placesByStep;
	}

	convertText(): string {
		const { text, lines } = this.#syntax;
		let convertedText = '';
		let position = 0;
		for (const line of lines) {
			const { start, end } = rangeOfLine(line);
			convertedText += text.slice(position, start) + this.#convertLine(line, line.words.length === 0);
			position = end;
		}
		return convertedText + text.slice(position);
	}

	/** Returns the converted text of a line with its block. */
	#convertLine(line: ParsedLine, isOptions: boolean): string {
		const { text } = this.#syntax;
		const { start, end } = rangeOfLine(line);
		const { block } = line;
		if (!block) return this.#convertWords(line, text.slice(start, end));
		const headText = this.#convertWords(line, text.slice(start, block.open.end));
		return `${headText}${this.#convertBlock(block, isOptions)}${text.slice(block.close.start, end)}`;
	}

	/** Returns the text of a line's words with current names. An expression becomes a single quoted argument. */
	#convertWords({ words }: ParsedLine, text: string): string {
		const [firstWord] = words;
		if (!firstWord) return text;
		const keywordIndex = firstWord.text.startsWith('@') ? 1 : 0;
		const expression = words[keywordIndex + 1];
		const lastWord = words.at(-1);
		if (words[keywordIndex]?.text === 'expression' && expression && lastWord && expression.quote === 'none') {
			const { start } = firstWord.span;
			const expressionText = text.slice(expression.span.start - start, lastWord.span.end - start);
			if (!expressionText.includes('`'))
				return `${text.slice(0, expression.span.start - start)}\`${expressionText}\`${text.slice(lastWord.span.end - start)}`;
		}
		const currentName = firstWord.quote === 'none' ? this.#currentNames.get(firstWord.text) : undefined;
		const renamedText = currentName === undefined ? text : currentName + text.slice(firstWord.text.length);
		return renamedText.replaceAll(OLD_ARGUMENT, '{args[$1]}');
	}

	/** Returns the content of a block in the order in which its steps run. Lines without steps come first. */
	#convertBlock({ open, close, lines }: ParsedBlock, isOptions: boolean): string {
		const { text } = this.#syntax;
		const pieces: LinePiece[] = [];
		let position = open.end;
		for (const line of lines) {
			const { start, end } = rangeOfLine(line);
			const newline = text.indexOf('\n', end);
			const lineEnd = newline === -1 || newline > close.start ? end : newline;
			const stepNumber = this.#placesByStep.findIndex(places => places.some(place => place >= start && place < end));
			// A Configfile has no `order` option, because its directives run in the order in which they are written.
			const isOrder = isOptions && line.words[0]?.text === 'order';
			const lineText = isOrder ? '' : this.#convertLine(line, false);
			pieces.push({
				text: text.slice(position, start) + lineText + text.slice(end, lineEnd),
				stepNumber: stepNumber === -1 ? undefined : stepNumber,
			});
			position = lineEnd;
		}
		const sortedPieces = pieces.toSorted((one, other) => (one.stepNumber ?? -1) - (other.stepNumber ?? -1));
		return sortedPieces.map(piece => piece.text).join('') + text.slice(position, close.start);
	}
}

/** Returns the document in a form for comparison, without the capture names of expressions that capture nothing. */
function comparableDocument(document: Document): unknown {
	return JSON.parse(JSON.stringify(printedForm(document)), (_, value) => {
		if (value?.type !== 'expression' || typeof value.expression !== 'string' || value.expression.includes('_regexp'))
			return value;
		const { name: _name, ...otherFields } = value;
		return otherFields;
	});
}

/** Returns the JSON pointer of the first part in which two values differ; undefined if they are equal. */
function firstDifferencePointer(first: unknown, second: unknown, pointer: string): string | undefined {
	if (Object.is(first, second)) return undefined;
	if (typeof first !== 'object' || typeof second !== 'object' || first === null || second === null) return pointer;
	for (const name of new Set([...Object.keys(first), ...Object.keys(second)])) {
		const difference = firstDifferencePointer(first[name as never], second[name as never], `${pointer}/${name}`);
		if (difference !== undefined) return difference;
	}
	return undefined;
}

/** Returns the offset of a part of the document, or of the nearest enclosing part that has a place in the file. */
function nearestOffset(
	pointer: string,
	locate: (
		pointer: string,
	) => { readonly start: number; readonly source: { readonly path?: string | undefined } } | undefined,
	path: string | undefined,
): number | undefined {
	for (let ancestor = pointer; ancestor !== ''; ancestor = ancestor.slice(0, ancestor.lastIndexOf('/'))) {
		const span = locate(ancestor);
		if (span && span.source.path === path) return span.start;
	}
	return undefined;
}
