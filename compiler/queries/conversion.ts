/**
 * Converts a Compatfile, or one block of it, to a Configfile: writes directives in the order in which they run, and old names as
 * current ones.
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

/** The Configfile, or why there is none. */
export type Conversion =
	| { readonly text: string }
	| {
			readonly problem: string;
			/** Offset of the difference in the Compatfile, if it has a place. */
			readonly at?: number | undefined;
	  };

const OLD_ARGUMENT = /(?<!\\)\{args\.(\d+)\}/g;

/** A part of the text that is moved as a whole, with the comments above it. */
interface Piece {
	readonly text: string;
	/** The number of the first step that comes from it; undefined if none does. */
	readonly step: number | undefined;
}

/** A top-level block of a Compatfile that can be converted by itself. */
export interface ConvertibleBlock {
	readonly kind: 'site' | 'snippet' | 'named route';
	/** The first address of a site; otherwise, the name without its parentheses. */
	readonly name: string;
	readonly line: ParsedLine;
}

type CompatInput = Omit<ConfigInput, 'format'>;

/** Converts a Compatfile. Succeeds only if the result compiles to the same document. */
export function convertedToConfigfile(input: CompatInput, reader: Reader): Conversion {
	return converted(input, input.text, reader) ?? { problem: 'The Caddyfile has errors. Correct them first.' };
}

/** Returns the block that an offset is in; undefined if there is none, or if the file has nothing else. */
export function convertibleBlock(syntax: TextSyntax, offset: number): ConvertibleBlock | undefined {
	const { lines, dialect } = syntax;
	const line = lines.find(one => {
		const { start, end } = rangeOfLine(one);
		return start <= offset && offset <= end;
	});
	const name = line?.words[0]?.text;
	if (dialect !== 'compatfile' || !line?.block || name === undefined) return undefined;
	if (!lines.some(one => one !== line && one.words.length > 0)) return undefined;
	const kind = kindOfTopLevel(line, dialect, registryOf(dialect).directives);
	if (kind === 'snippet') return { kind, name: name.slice(1, -1), line };
	if (kind === 'route') return { kind: 'named route', name: name.slice(2, -1), line };
	return kind === 'site' ? { kind, name, line } : undefined;
}

/**
 * Converts the block at an offset of a Compatfile, with the snippets and named routes that it uses. A site also gets the global
 * options, so that the result compiles to the same document as the Compatfile with this site alone. A snippet or named route is
 * checked in the sites that use it.
 */
export function convertedBlock(input: CompatInput, offset: number, reader: Reader): Conversion {
	const syntax = parseSyntax(input.path ?? input.name, input.text, 'compatfile');
	const block = convertibleBlock(syntax, offset);
	if (!block) return { problem: 'There is no site, snippet or named route to convert by itself here.' };
	const { kind, name, line } = block;
	const { directives } = registryOf('compatfile');
	const linesOfKind = (wanted: string): ParsedLine[] =>
		syntax.lines.filter(one => kindOfTopLevel(one, 'compatfile', directives) === wanted);
	const used = withUsed(syntax, [line]);
	const users = kind === 'site' ? [] : linesOfKind('site').filter(site => withUsed(syntax, [site]).has(line));
	if (kind !== 'site' && users.length === 0) {
		return {
			problem: `No site in this file uses the ${kind} \`${name}\`, so the order in which its directives run is not known.`,
		};
	}
	const checked = [...linesOfKind('options'), ...withUsed(syntax, [line, ...users])];
	const wanted = kind === 'site' ? checked : [...used];
	// Files that the whole file imports can have other sites. They are needed only if a snippet is in one of them.
	for (const imports of [[], linesOfKind('import')]) {
		const text = withOnly(syntax, [...checked, ...imports]);
		const conversion = converted({ ...input, text }, withOnly(syntax, [...wanted, ...imports]), reader);
		if (conversion) return conversion;
	}
	return { problem: `By itself, the ${kind} \`${name}\` has errors. Correct them first.` };
}

/** Returns top-level lines and, transitively, the snippets and named routes of the same file that they use. */
function withUsed({ lines }: TextSyntax, given: readonly ParsedLine[]): ReadonlySet<ParsedLine> {
	const defined = new Map(lines.flatMap(line => (line.words[0] ? [[line.words[0].text, line] as const] : [])));
	const used = new Set(given);
	for (const one of used) {
		for (const { line } of everyLine([one])) {
			const [keyword, target] = line.words;
			const sign = keyword?.text === 'import' ? '' : keyword?.text === 'invoke' ? '&' : undefined;
			if (sign === undefined || !target) continue;
			const isComputed = target.text.includes('{');
			for (const [name, definition] of defined) {
				if (name === `${sign}(${target.text})` || (isComputed && name.startsWith(`${sign}(`))) used.add(definition);
			}
		}
	}
	return used;
}

/** Returns the text with blanks in place of all other top-level lines, so that what remains keeps its offset. */
function withOnly({ text, lines }: TextSyntax, kept: readonly ParsedLine[]): string {
	// The first and the last newline remain: one empty line in place of what is left out.
	const blank = (start: number, end: number): string => {
		const ends = [text.indexOf('\n', start), text.lastIndexOf('\n', end - 1)];
		return text.slice(start, end).replace(/[\s\S]/g, (_, index: number) => (ends.includes(start + index) ? '\n' : ' '));
	};
	let result = '';
	let at = 0;
	let previous = 0;
	for (const line of lines) {
		const { start, end } = rangeOfLine(line);
		const comments = /(?:(?<=^|\n)[ \t]*#.*\r?\n)*[ \t]*$/.exec(text.slice(previous, start))![0];
		const comment = /^[ \t]*#.*/.exec(text.slice(end))?.[0] ?? '';
		previous = end + comment.length;
		if (!kept.includes(line)) continue;
		result += blank(at, start - comments.length) + text.slice(start - comments.length, previous);
		at = previous;
	}
	return result + blank(at, text.length);
}

/**
 * Converts `shown`, which is the text of a Compatfile or a part of it at the same offsets. Returns undefined if the Compatfile has
 * errors.
 */
function converted(input: CompatInput, shown: string, reader: Reader): Conversion | undefined {
	const before = compile({ ...input, format: 'compatfile' }, reader);
	if (!before.document) return undefined;
	const parsed = (text: string): TextSyntax => parseSyntax(input.path ?? input.name, text, 'compatfile');
	const pointers = stepPointers(before.document, '');
	const steps: (readonly number[])[] = pointers.map(pointer => {
		const places: number[] = [];
		for (let at = before.locate(pointer); at; at = at.source.importedAt)
			if (at.source.path === input.path && at.source.name === input.name) places.push(at.start);
		return places;
	});
	const convert = (text: string): string => formatText(new Converter(parsed(text), steps).whole());
	const text = convert(input.text);
	const after = compile({ ...input, text, format: 'configfile' }, reader);
	if (!after.document) {
		const [mistake] = after.diagnostics.filter(({ severity }) => severity === 'error');
		return { problem: `A Configfile does not accept it: ${mistake?.message ?? 'it has errors.'}` };
	}
	const difference = firstDifference(comparable(before.document), comparable(after.document), '');
	if (difference === undefined) return { text: shown === input.text ? text : convert(shown) };
	return {
		problem: `A Configfile would mean something else: \`${difference}\` of the document differs.`,
		at: placeOf(difference, before.locate, input.path),
	};
}

/** Returns the pointers of all steps, in the order in which they run. */
function stepPointers(value: unknown, pointer: string): string[] {
	if (typeof value !== 'object' || value === null) return [];
	const inside = Object.entries(value).flatMap(([name, part]) =>
		stepPointers(part, `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`),
	);
	return 'handler' in value ? [pointer, ...inside] : inside;
}

class Converter {
	readonly #syntax: TextSyntax;
	readonly #steps: readonly (readonly number[])[];
	readonly #current = registryOf('configfile').oldSpellings;

	constructor(syntax: TextSyntax, steps: readonly (readonly number[])[]) {
		this.#syntax = syntax;
		this.#steps = steps;
	}

	whole(): string {
		const { text, lines } = this.#syntax;
		let result = '';
		let at = 0;
		for (const line of lines) {
			const { start, end } = rangeOfLine(line);
			result += text.slice(at, start) + this.#line(line, line.words.length === 0);
			at = end;
		}
		return result + text.slice(at);
	}

	/** Returns the text of a line with its block. */
	#line(line: ParsedLine, isOptions: boolean): string {
		const { text } = this.#syntax;
		const { start, end } = rangeOfLine(line);
		const { block } = line;
		if (!block) return this.#renamed(line, text.slice(start, end));
		const head = this.#renamed(line, text.slice(start, block.open.end));
		return `${head}${this.#block(block, isOptions)}${text.slice(block.close.start, end)}`;
	}

	/** Returns the text of a line's words with current names, and an expression as one quoted argument. */
	#renamed({ words }: ParsedLine, text: string): string {
		const [first] = words;
		if (!first) return text;
		const at = first.text.startsWith('@') ? 1 : 0;
		const expression = words[at + 1];
		const last = words.at(-1);
		if (words[at]?.text === 'expression' && expression && last && expression.quote === 'none') {
			const { start } = first.span;
			const written = text.slice(expression.span.start - start, last.span.end - start);
			if (!written.includes('`'))
				return `${text.slice(0, expression.span.start - start)}\`${written}\`${text.slice(last.span.end - start)}`;
		}
		const current = first.quote === 'none' ? this.#current.get(first.text) : undefined;
		const renamed = current === undefined ? text : current + text.slice(first.text.length);
		return renamed.replaceAll(OLD_ARGUMENT, '{args[$1]}');
	}

	/** Returns the content of a block. Its lines are in the order of their steps; lines without steps come first. */
	#block({ open, close, lines }: ParsedBlock, isOptions: boolean): string {
		const { text } = this.#syntax;
		const pieces: Piece[] = [];
		let at = open.end;
		for (const line of lines) {
			const { start, end } = rangeOfLine(line);
			const next = text.indexOf('\n', end);
			const lineEnd = next === -1 || next > close.start ? end : next;
			const step = this.#steps.findIndex(places => places.some(place => place >= start && place < end));
			// What a Configfile does by its own order.
			const isOrder = isOptions && line.words[0]?.text === 'order';
			const own = isOrder ? '' : this.#line(line, false);
			pieces.push({
				text: text.slice(at, start) + own + text.slice(end, lineEnd),
				step: step === -1 ? undefined : step,
			});
			at = lineEnd;
		}
		const sorted = pieces.toSorted((one, other) => (one.step ?? -1) - (other.step ?? -1));
		return sorted.map(piece => piece.text).join('') + text.slice(at, close.start);
	}
}

/** Returns a document without the names for captures of expressions that capture nothing. */
function comparable(document: Document): unknown {
	return JSON.parse(JSON.stringify(printedForm(document)), (_, value) => {
		if (value?.type !== 'expression' || typeof value.expression !== 'string' || value.expression.includes('_regexp'))
			return value;
		const { name: _name, ...rest } = value;
		return rest;
	});
}

/** Returns the pointer of the first part that differs; undefined if none does. */
function firstDifference(one: unknown, other: unknown, pointer: string): string | undefined {
	if (Object.is(one, other)) return undefined;
	if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return pointer;
	for (const name of new Set([...Object.keys(one), ...Object.keys(other)])) {
		const found = firstDifference(one[name as never], other[name as never], `${pointer}/${name}`);
		if (found !== undefined) return found;
	}
	return undefined;
}

/** Returns the place of a part of the document, or of the nearest enclosing part that has one. */
function placeOf(
	pointer: string,
	locate: (
		pointer: string,
	) => { readonly start: number; readonly source: { readonly path?: string | undefined } } | undefined,
	path: string | undefined,
): number | undefined {
	for (let at = pointer; at !== ''; at = at.slice(0, at.lastIndexOf('/'))) {
		const span = locate(at);
		if (span && span.source.path === path) return span.start;
	}
	return undefined;
}
