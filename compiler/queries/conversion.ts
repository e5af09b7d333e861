/**
 * Converts a Compatfile, or one block of it, to a Configfile. Directives are written in the order in which they run, and old names
 * are replaced by current ones.
 */
import { dirname, resolve } from 'node:path';
import { nameCompatiblePlaceholders } from '../codegen/placeholders/shorthands.ts';
import type { ConfigInput } from '../dialects/dialect.ts';
import type { Document } from '../document/document.ts';
import { escapePointer } from '../document/json-pointer.ts';
import { registryOf } from '../lower/registry.ts';
import { COMPATIBLE_FALLBACK_POLICY } from '../modules/matchers/file.ts';
import { compile } from '../pipeline/compile.ts';
import { printedForm } from '../schema/printed-form.ts';
import type { Reader } from '../source/reader.ts';
import { formatText } from '../syntax/format.ts';
import type { ParsedBlock, ParsedLine } from '../syntax/parsed-file.ts';
import { everyLine, kindOfTopLevel, parseSyntax, rangeOfLine, type TextRange, type TextSyntax } from './text-syntax.ts';

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
	/** Set if the document stores the line's condition not in its step but in the group around the step. */
	readonly conditional?: ConditionalPiece | undefined;
}

/** The lines of a block, and where the tokens around them are. */
interface BlockRange {
	readonly open: TextRange;
	readonly close: TextRange;
	readonly lines: readonly ParsedLine[];
}

interface ConditionalPiece {
	/** The JSON pointer of the group. */
	readonly group: string;
	/** The matcher as written in the line. */
	readonly matcher: string;
	/** The line's text without the matcher. */
	readonly text: string;
}

/** A step in the document to which the Compatfile compiles. */
interface LoweredStep {
	readonly pointer: string;
	/** Offsets in the converted file: of the line from which the step was lowered, and of the imports that lead to that line. */
	readonly places: readonly number[];
	/** True if the step itself has no condition, and is directly in a group that has one. */
	readonly sharesCondition: boolean;
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
	const placesOf = (pointer: string): readonly number[] => {
		const places: number[] = [];
		for (let place = compatResult.locate(pointer); place; place = place.source.importedAt)
			if (place.source.path === input.path && place.source.name === input.name) places.push(place.start);
		return places;
	};
	const steps = [...stepsOf(compatResult.document, '', false)].map(
		(step): LoweredStep => ({ ...step, places: placesOf(step.pointer) }),
	);
	const compatDocument = comparableDocument(compatResult.document);
	// At first, directives with the same matcher are grouped. If the document then differs, the second attempt does not group them.
	let problem: Conversion | undefined;
	for (const groupsConditions of [true, false]) {
		const convert = (text: string): string =>
			formatText(new Converter(parse(text), steps, groupsConditions).convertText());
		const configfileText = convert(input.text);
		const configResult = compile({ ...input, text: configfileText, format: 'configfile' }, reader);
		if (!configResult.document) {
			const [mistake] = configResult.diagnostics.filter(({ severity }) => severity === 'error');
			problem ??= { problem: `A Configfile does not accept it: ${mistake?.message ?? 'it has errors.'}` };
			continue;
		}
		const difference = firstDifference(compatDocument, comparableDocument(configResult.document), '');
		if (!difference) return { text: shownText === input.text ? configfileText : convert(shownText) };
		problem ??= {
			problem: `A Configfile would mean something else: ${describeDifference(difference, input.path)}`,
			offset: nearestOffset(difference.pointer, compatResult.locate, input.path),
		};
	}
	return problem;
}

/** Yields all steps, in the order in which they run. */
function* stepsOf(
	value: unknown,
	pointer: string,
	isInConditionalGroup: boolean,
): Generator<Pick<LoweredStep, 'pointer' | 'sharesCondition'>> {
	if (typeof value !== 'object' || value === null) return;
	if ('handler' in value) yield { pointer, sharesCondition: isInConditionalGroup && !('when' in value) };
	// Other objects with a pipeline, such as branches, are also yielded, so that their positions are known even if they are empty.
	if (!('handler' in value) && 'pipeline' in value) yield { pointer, sharesCondition: false };
	const isConditionalGroup = 'handler' in value && value.handler === 'group' && 'when' in value;
	for (const [name, part] of Object.entries(value)) {
		const partPointer = `${pointer}/${escapePointer(name)}`;
		if (!isConditionalGroup || name !== 'pipeline' || !Array.isArray(part)) yield* stepsOf(part, partPointer, false);
		else for (const [index, step] of part.entries()) yield* stepsOf(step, `${partPointer}/${index}`, true);
	}
}

class Converter {
	readonly #syntax: TextSyntax;
	readonly #steps: readonly LoweredStep[];
	readonly #groupsConditions: boolean;
	readonly #currentNames = registryOf('configfile').oldSpellings;

	constructor(syntax: TextSyntax, steps: readonly LoweredStep[], groupsConditions: boolean) {
		this.#syntax = syntax;
		this.#steps = steps;
		this.#groupsConditions = groupsConditions;
	}

	convertText(): string {
		const { text, lines } = this.#syntax;
		let convertedText = '';
		let position = 0;
		for (const [index, line] of lines.entries()) {
			const { start, end } = rangeOfLine(line);
			convertedText += text.slice(position, start) + this.#convertLine(line, line.words.length === 0);
			position = end;
			if (line.block || kindOfTopLevel(line, 'compatfile', registryOf('compatfile').directives) !== 'site') continue;
			// A site without braces extends to the end of the file.
			const open = { start: end, end };
			const close = { start: text.length, end: text.length };
			return convertedText + this.#convertBlock({ open, close, lines: lines.slice(index + 1) }, false);
		}
		return convertedText + text.slice(position);
	}

	/** Returns the converted text of a line with its block. */
	#convertLine(line: ParsedLine, isOptions: boolean): string {
		const { text } = this.#syntax;
		const { start, end } = rangeOfLine(line);
		const { block } = line;
		const addedText = line.words[0]?.text === 'php_fastcgi' ? policyOfScripts(block) : '';
		if (!block) {
			const lineText = this.#convertWords(line, text.slice(start, end));
			return addedText === '' ? lineText : `${lineText} {\n${addedText}}`;
		}
		const headText = this.#convertWords(line, text.slice(start, block.open.end));
		return `${headText}${this.#convertBlock(block, isOptions)}${addedText}${text.slice(block.close.start, end)}`;
	}

	/**
	 * Returns the text of a line's words with current names. A name with another meaning in a Configfile is replaced by the name for
	 * its meaning in the Compatfile. An expression becomes a single quoted argument.
	 */
	#convertWords(line: ParsedLine, writtenText: string): string {
		const text = nameCompatiblePlaceholders(this.#convertNames(line, writtenText));
		return POLICY_LINES.has(line.words[0]?.text ?? '') && line.words[1]?.text === 'first_exist_fallback'
			? text.replace('first_exist_fallback', COMPATIBLE_FALLBACK_POLICY)
			: text;
	}

	#convertNames({ words }: ParsedLine, text: string): string {
		const [firstWord] = words;
		if (!firstWord) return text;
		const keywordIndex = words.findIndex(({ text }, index) => index > 2 || !/^(?:@.*|not|lb_retry_match)$/.test(text));
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
	#convertBlock({ open, close, lines }: BlockRange, isOptions: boolean): string {
		const { text } = this.#syntax;
		const pieces: LinePiece[] = [];
		let position = open.end;
		for (const line of lines) {
			const { start, end } = rangeOfLine(line);
			const newline = text.indexOf('\n', end);
			const lineEnd = newline === -1 || newline > close.start ? end : newline;
			const isInLine = ({ places }: LoweredStep): boolean => places.some(place => place >= start && place < end);
			const stepNumber = this.#steps.findIndex(isInLine);
			// A Configfile has no `order` option, because its directives run in the order in which they are written.
			const isOrder = isOptions && line.words[0]?.text === 'order';
			const lineText = isOrder ? '' : this.#convertLine(line, false);
			const matcherWord = line.words[1];
			const innerStep =
				this.#groupsConditions && matcherWord?.quote === 'none' && /^[@/]/.test(matcherWord.text)
					? this.#steps.find(step => step.sharesCondition && isInLine(step))
					: undefined;
			const matcher = matcherWord && text.slice(matcherWord.span.start, matcherWord.span.end);
			pieces.push({
				text: text.slice(position, start) + lineText + text.slice(end, lineEnd),
				stepNumber: stepNumber === -1 ? undefined : stepNumber,
				conditional: innerStep && {
					group: innerStep.pointer.slice(0, innerStep.pointer.lastIndexOf('/pipeline/')),
					matcher: matcher!,
					text: text.slice(position, start) + lineText.replace(matcher!, () => '') + text.slice(end, lineEnd),
				},
			});
			position = lineEnd;
		}
		const sortedPieces = pieces.toSorted((one, other) => (one.stepNumber ?? -1) - (other.stepNumber ?? -1));
		return joinPieces(sortedPieces) + text.slice(position, close.start);
	}
}

/** Sub-directives whose argument is a policy of the matcher `file`. */
const POLICY_LINES: ReadonlySet<string> = new Set(['policy', 'try_policy']);

/** Joins the texts of lines. Adjacent lines whose condition is stored in the same group become a `route` with this condition. */
function joinPieces(pieces: readonly LinePiece[]): string {
	let text = '';
	for (let index = 0; index < pieces.length; ) {
		const { conditional, text: pieceText } = pieces[index]!;
		let end = index + 1;
		while (conditional && pieces[end]?.conditional?.group === conditional.group) end++;
		text +=
			conditional && end > index + 1
				? `\nroute ${conditional.matcher} {${pieces
						.slice(index, end)
						.map(piece => piece.conditional!.text)
						.join('')}\n}`
				: pieceText;
		index = end;
	}
	return text;
}

/**
 * Returns the line `try_policy …` to add to the block of `php_fastcgi`; '' if it is not needed. It is needed if the last tried
 * file is a script, because the default policy is then not the same in a Compatfile and a Configfile.
 */
function policyOfScripts(block: ParsedBlock | undefined): string {
	const argumentsOf = (name: string): readonly string[] | undefined =>
		block?.lines.findLast(({ words }) => words[0]?.text === name)?.words.map(({ text }) => text);
	const index = argumentsOf('index')?.[1] ?? 'index.php';
	const lastFile = argumentsOf('try_files')?.at(-1) ?? index;
	return index !== 'off' && /\.php$/i.test(lastFile) ? `try_policy ${COMPATIBLE_FALLBACK_POLICY}\n` : '';
}

interface Difference {
	readonly pointer: string;
	readonly values: readonly [compat: unknown, config: unknown];
}

function describeDifference({ pointer, values: [before, after] }: Difference, file: string | undefined): string {
	const isRelativePath =
		typeof before === 'string' && file !== undefined && before !== after && after === resolve(dirname(file), before);
	if (!isRelativePath) return `\`${pointer}\` of the document differs.`;
	return `its paths are relative to its folder, not to the working directory. Write an absolute path for \`${before}\`.`;
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

/** Returns the first part in which two values differ; undefined if they are equal. */
function firstDifference(first: unknown, second: unknown, pointer: string): Difference | undefined {
	if (Object.is(first, second)) return undefined;
	if (typeof first !== 'object' || typeof second !== 'object' || first === null || second === null)
		return { pointer, values: [first, second] };
	for (const name of new Set([...Object.keys(first), ...Object.keys(second)])) {
		const difference = firstDifference(
			first[name as never],
			second[name as never],
			`${pointer}/${escapePointer(name)}`,
		);
		if (difference !== undefined) return difference;
	}
	return undefined;
}

/** Returns the offset of a part of the document, or of the nearest enclosing part whose position in the file is known. */
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
