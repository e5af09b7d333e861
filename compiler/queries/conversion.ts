/**
 * Converts a Compatfile, or one block of it, to a Configfile: writes directives in the order in which they run, and replaces old
 * names by current ones.
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

/** The resulting Configfile, or the reason why there is none. */
export type Conversion =
	| { readonly text: string }
	| {
			readonly problem: string;
			/** Offset in the Compatfile of the part that causes the problem, if known. */
			readonly offset?: number | undefined;
	  };

const OLD_ARGUMENT = /(?<!\\)\{args\.(\d+)\}/g;

/** A line with the comments above it, which are moved together. */
interface Piece {
	readonly text: string;
	/** The number of the first step that is lowered from the line; undefined if no step is. */
	readonly step: number | undefined;
}

/** A top-level block of a Compatfile that can be converted by itself. */
export interface ConvertibleBlock {
	readonly kind: 'site' | 'snippet' | 'named route';
	/** For a site, its first address; for a snippet or route, its name without the parentheses. */
	readonly name: string;
	readonly line: ParsedLine;
}

type CompatInput = Omit<ConfigInput, 'format'>;

/** Converts a Compatfile. Succeeds only if the result compiles to the same document. */
export function convertToConfigfile(input: CompatInput, reader: Reader): Conversion {
	return convertChecked(input, input.text, reader) ?? { problem: 'The Caddyfile has errors. Correct them first.' };
}

/** Returns the block that contains an offset; undefined if there is none, or if it is the only content of the file. */
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
 * Converts the block at an offset of a Compatfile, with the snippets and named routes that it uses. A site also gets the global
 * options, so that the result compiles to the same document as a Compatfile that has only this site. A snippet or named route is
 * checked in the sites that use it.
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
	// The first attempt leaves out imports at the top level, because the imported files may contain other sites. They are needed
	// only if an imported file defines a snippet that is used.
	for (const importLines of [[], linesOfKind('import')]) {
		const text = blankOthers(syntax, [...checkedLines, ...importLines]);
		const conversion = convertChecked({ ...input, text }, blankOthers(syntax, [...shownLines, ...importLines]), reader);
		if (conversion) return conversion;
	}
	return { problem: `By itself, the ${kind} \`${name}\` has errors. Correct them first.` };
}

/** Returns the given top-level lines and, transitively, the snippets and named routes of the same file that they use. */
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

/** Returns the text with every top-level line except `keptLines` replaced by spaces, so that the kept lines keep their offsets. */
function blankOthers({ text, lines }: TextSyntax, keptLines: readonly ParsedLine[]): string {
	// The first and last newlines are kept, so that one empty line takes the place of the omitted text.
	const blankOut = (start: number, end: number): string => {
		const newlines = [text.indexOf('\n', start), text.lastIndexOf('\n', end - 1)];
		return text
			.slice(start, end)
			.replace(/[\s\S]/g, (_, index: number) => (newlines.includes(start + index) ? '\n' : ' '));
	};
	let result = '';
	let position = 0;
	let previousEnd = 0;
	for (const line of lines) {
		const { start, end } = rangeOfLine(line);
		const comments = /(?:(?<=^|\n)[ \t]*#.*\r?\n)*[ \t]*$/.exec(text.slice(previousEnd, start))![0];
		const comment = /^[ \t]*#.*/.exec(text.slice(end))?.[0] ?? '';
		previousEnd = end + comment.length;
		if (!keptLines.includes(line)) continue;
		result += blankOut(position, start - comments.length) + text.slice(start - comments.length, previousEnd);
		position = previousEnd;
	}
	return result + blankOut(position, text.length);
}

/**
 * Converts `shownText`, which is the text of a Compatfile, or a part of it at the same offsets. Returns undefined if the Compatfile
 * has errors.
 */
function convertChecked(input: CompatInput, shownText: string, reader: Reader): Conversion | undefined {
	const compatResult = compile({ ...input, format: 'compatfile' }, reader);
	if (!compatResult.document) return undefined;
	const parse = (text: string): TextSyntax => parseSyntax(input.path ?? input.name, text, 'compatfile');
	const pointers = stepPointers(compatResult.document, '');
	const steps: (readonly number[])[] = pointers.map(pointer => {
		const places: number[] = [];
		for (let place = compatResult.locate(pointer); place; place = place.source.importedAt)
			if (place.source.path === input.path && place.source.name === input.name) places.push(place.start);
		return places;
	});
	const convert = (text: string): string => formatText(new Converter(parse(text), steps).convertText());
	const text = convert(input.text);
	const configResult = compile({ ...input, text, format: 'configfile' }, reader);
	if (!configResult.document) {
		const [mistake] = configResult.diagnostics.filter(({ severity }) => severity === 'error');
		return { problem: `A Configfile does not accept it: ${mistake?.message ?? 'it has errors.'}` };
	}
	const difference = firstDifference(
		comparableDocument(compatResult.document),
		comparableDocument(configResult.document),
		'',
	);
	if (difference === undefined) return { text: shownText === input.text ? text : convert(shownText) };
	return {
		problem: `A Configfile would mean something else: \`${difference}\` of the document differs.`,
		offset: nearestPlace(difference, compatResult.locate, input.path),
	};
}

/** Returns the pointers of all steps, in the order in which they run. */
function stepPointers(value: unknown, pointer: string): string[] {
	if (typeof value !== 'object' || value === null) return [];
	const innerPointers = Object.entries(value).flatMap(([name, part]) =>
		stepPointers(part, `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`),
	);
	return 'handler' in value ? [pointer, ...innerPointers] : innerPointers;
}

class Converter {
	readonly #syntax: TextSyntax;
	readonly #steps: readonly (readonly number[])[];
	readonly #currentNames = registryOf('configfile').oldSpellings;

	constructor(syntax: TextSyntax, steps: readonly (readonly number[])[]) {
		this.#syntax = syntax;
		this.#steps = steps;
	}

	convertText(): string {
		const { text, lines } = this.#syntax;
		let result = '';
		let position = 0;
		for (const line of lines) {
			const { start, end } = rangeOfLine(line);
			result += text.slice(position, start) + this.#convertLine(line, line.words.length === 0);
			position = end;
		}
		return result + text.slice(position);
	}

	/** Returns the text of a line with its block. */
	#convertLine(line: ParsedLine, isOptions: boolean): string {
		const { text } = this.#syntax;
		const { start, end } = rangeOfLine(line);
		const { block } = line;
		if (!block) return this.#convertWords(line, text.slice(start, end));
		const head = this.#convertWords(line, text.slice(start, block.open.end));
		return `${head}${this.#convertBlock(block, isOptions)}${text.slice(block.close.start, end)}`;
	}

	/** Returns the text of a line's words with current names, and an expression as one quoted argument. */
	#convertWords({ words }: ParsedLine, text: string): string {
		const [first] = words;
		if (!first) return text;
		const keywordIndex = first.text.startsWith('@') ? 1 : 0;
		const expression = words[keywordIndex + 1];
		const last = words.at(-1);
		if (words[keywordIndex]?.text === 'expression' && expression && last && expression.quote === 'none') {
			const { start } = first.span;
			const expressionText = text.slice(expression.span.start - start, last.span.end - start);
			if (!expressionText.includes('`'))
				return `${text.slice(0, expression.span.start - start)}\`${expressionText}\`${text.slice(last.span.end - start)}`;
		}
		const currentName = first.quote === 'none' ? this.#currentNames.get(first.text) : undefined;
		const renamedText = currentName === undefined ? text : currentName + text.slice(first.text.length);
		return renamedText.replaceAll(OLD_ARGUMENT, '{args[$1]}');
	}

	/** Returns the content of a block. Lines that have steps are in the order of these steps; lines without steps come first. */
	#convertBlock({ open, close, lines }: ParsedBlock, isOptions: boolean): string {
		const { text } = this.#syntax;
		const pieces: Piece[] = [];
		let position = open.end;
		for (const line of lines) {
			const { start, end } = rangeOfLine(line);
			const newline = text.indexOf('\n', end);
			const lineEnd = newline === -1 || newline > close.start ? end : newline;
			const step = this.#steps.findIndex(places => places.some(place => place >= start && place < end));
			// A Configfile needs no `order` option, because its directives run in the order in which they are written.
			const isOrder = isOptions && line.words[0]?.text === 'order';
			const lineText = isOrder ? '' : this.#convertLine(line, false);
			pieces.push({
				text: text.slice(position, start) + lineText + text.slice(end, lineEnd),
				step: step === -1 ? undefined : step,
			});
			position = lineEnd;
		}
		const sorted = pieces.toSorted((one, other) => (one.step ?? -1) - (other.step ?? -1));
		return sorted.map(piece => piece.text).join('') + text.slice(position, close.start);
	}
}

/** Returns the document for comparison. Omits the capture names of expressions that capture nothing. */
function comparableDocument(document: Document): unknown {
	return JSON.parse(JSON.stringify(printedForm(document)), (_, value) => {
		if (value?.type !== 'expression' || typeof value.expression !== 'string' || value.expression.includes('_regexp'))
			return value;
		const { name: _name, ...otherFields } = value;
		return otherFields;
	});
}

/** Returns the pointer of the first part that differs, or undefined if the values are equal. */
function firstDifference(one: unknown, other: unknown, pointer: string): string | undefined {
	if (Object.is(one, other)) return undefined;
	if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return pointer;
	for (const name of new Set([...Object.keys(one), ...Object.keys(other)])) {
		const difference = firstDifference(one[name as never], other[name as never], `${pointer}/${name}`);
		if (difference !== undefined) return difference;
	}
	return undefined;
}

/** Returns the offset of a part of the document, or of the nearest enclosing part with a place in the file. */
function nearestPlace(
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
