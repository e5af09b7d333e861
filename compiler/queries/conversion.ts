/**
 * Converts a Compatfile, or one block of it, to a Configfile. Directives are written in the order in which they run, and old names
 * are replaced by current ones.
 */
import { dirname, resolve } from 'node:path';
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import type { ConfigInput } from '../dialects/dialect.ts';
import type { Document } from '../document/document.ts';
import { escapePointer } from '../document/json-pointer.ts';
import { registryOf } from '../lower/registry.ts';
import { compile } from '../pipeline/compile.ts';
import { printedForm } from '../schema/printed-form.ts';
import type { Reader } from '../source/reader.ts';
import type { SourceSpan } from '../source/source.ts';
import { formatText } from '../syntax/format.ts';
import type { ParsedLine } from '../syntax/parsed-file.ts';
import { type LoweredStep, writeConfigfile } from './configfile-writer.ts';
import { everyLine, kindOfTopLevel, parseSyntax, rangeOfLine, type TextSyntax } from './text-syntax.ts';

/** The Configfile that results from a conversion, or what prevents the conversion. */
export type Conversion = { readonly text: string } | ConversionFailure;

/** The first problem that prevents a conversion, and further ones. */
export interface ConversionFailure extends ConversionProblem {
	readonly furtherProblems?: readonly ConversionProblem[];
}

/** What prevents a conversion, and what to do about it. */
export interface ConversionProblem {
	readonly problem: string;
	/** Offset, in the Compatfile, of the part that causes the problem; undefined if it is not known. */
	readonly offset?: number | undefined;
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
	let failure: ConversionFailure | undefined;
	for (const groupsConditions of [true, false]) {
		const convert = (text: string): string => formatText(writeConfigfile(parse(text), steps, groupsConditions));
		const configfileText = convert(input.text);
		const configResult = compile({ ...input, text: configfileText, format: 'configfile' }, reader);
		if (!configResult.document) {
			failure ??= failureOf(configResult.diagnostics.map(mistake => problemOf(mistake, configfileText, input)));
			continue;
		}
		const differences = [...differencesOf(compatDocument, comparableDocument(configResult.document), '')];
		if (differences.length === 0) return { text: shownText === input.text ? configfileText : convert(shownText) };
		failure ??= {
			problem:
				describeImport(differences[0]!.pointer, compatResult.locate, input.path) ??
				describeDifferences(differences, input.path),
			offset: nearestOffset(differences[0]!.pointer, compatResult.locate, input.path),
		};
	}
	return failure;
}

/** Returns the mistakes that a Configfile would have, without those that are reported twice. */
function failureOf(problems: readonly (ConversionProblem | undefined)[]): ConversionFailure {
	const distinctProblems = new Map(
		problems.flatMap(problem => (problem ? [[`${problem.offset} ${problem.problem}`, problem]] : [])),
	);
	const [firstProblem, ...furtherProblems] = [...distinctProblems.values()].toSorted(
		(one, other) => (one.offset ?? 0) - (other.offset ?? 0),
	);
	return {
		...(firstProblem ?? { problem: 'A Configfile does not accept it.' }),
		...(furtherProblems.length === 0 ? {} : { furtherProblems }),
	};
}

/**
 * Returns the problem that is an error of the converted text. Its place is that of the same line in the Compatfile; undefined if
 * the line was changed.
 */
function problemOf(mistake: Diagnostic, configfileText: string, input: CompatInput): ConversionProblem | undefined {
	const { severity, message, label, hint, span } = mistake;
	if (severity !== 'error') return undefined;
	const isInFile = span !== undefined && span.source.path === input.path && span.source.name === input.name;
	const where = span === undefined || isInFile ? 'it' : `\`${span.source.name}\``;
	const sentences = [`A Configfile does not accept ${where}: ${message}`];
	if (label !== undefined)
		sentences.push(`${label[0]!.toUpperCase()}${label.slice(1)}${/[.?]$/.test(label) ? '' : '.'}`);
	if (hint !== undefined) sentences.push(hint);
	const problem = sentences.join(' ');
	if (!isInFile) return { problem };
	const line = configfileText.slice(0, span.start).split('\n').length;
	const words = configfileText.split('\n')[line - 1]!.trim();
	const candidates = input.text.split('\n');
	const index = candidates.findIndex(candidate => candidate.trim() === words);
	const lineStart = candidates.slice(0, Math.max(index, 0)).join('\n').length + (index > 0 ? 1 : 0);
	const offset = index === -1 ? -1 : input.text.indexOf(words, lineStart);
	return offset === -1 ? { problem } : { problem, offset };
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

type Locate = (pointer: string) => Pick<SourceSpan, 'start' | 'source'> | undefined;

interface Difference {
	readonly pointer: string;
	readonly values: readonly [compat: unknown, config: unknown];
}

/** Returns why two documents differ, and what to do about it, in sentences. */
function describeDifferences(differences: readonly Difference[], file: string | undefined): string {
	const relativePaths = differences.flatMap(({ values: [before, after] }) =>
		typeof before === 'string' && file !== undefined && before !== after && after === resolve(dirname(file), before)
			? [`\`${before}\``]
			: [],
	);
	if (relativePaths.length > 0) {
		const names = [...new Set(relativePaths)];
		return `In a Caddyfile, relative paths begin at the working directory of the server; in a Configfile, at the folder of the file. Write ${names.length === 1 ? 'an absolute path' : 'absolute paths'} for ${listOf(names)}.`;
	}
	const [{ pointer, values }] = differences as [Difference];
	const [before, after] = values;
	if (pointer.endsWith('/exclusive'))
		return `Of the \`${before ?? after}\` lines in this block, only the first that matches runs. A Configfile can express this only for lines that are next to each other. Move the directives between them elsewhere.`;
	if (pointer.endsWith('/handler') && before === 'first_match')
		return 'Of several lines here, only the first that matches runs. Some of them are imported, so that they cannot become one `when … else …`. Write all of them in the same block, without `import`.';
	return `A Configfile would mean something else: \`${pointer}\` of the document differs. Convert this part by hand, and compare with \`svc diff\`.`;
}

/** Returns a description of a difference if it is due to an imported file, and otherwise undefined. */
function describeImport(pointer: string, locate: Locate, path: string | undefined): string | undefined {
	for (let ancestor = pointer; ancestor !== ''; ancestor = ancestor.slice(0, ancestor.lastIndexOf('/'))) {
		const span = locate(ancestor);
		if (!span) continue;
		return span.source.path === path
			? undefined
			: `The imported file \`${span.source.name}\` would mean something else, because only this file is converted. Write its lines in the order in which they run, or move them into this file.`;
	}
	return undefined;
}

function listOf(names: readonly string[]): string {
	return names.length === 1 ? names[0]! : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
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

/** Yields the parts in which two values differ. */
function* differencesOf(first: unknown, second: unknown, pointer: string): Generator<Difference> {
	if (Object.is(first, second)) return;
	if (typeof first !== 'object' || typeof second !== 'object' || first === null || second === null) {
		yield { pointer, values: [first, second] };
		return;
	}
	for (const name of new Set([...Object.keys(first), ...Object.keys(second)]))
		yield* differencesOf(first[name as never], second[name as never], `${pointer}/${escapePointer(name)}`);
}

/** Returns the offset of a part of the document, or of the nearest enclosing part whose position in the file is known. */
function nearestOffset(pointer: string, locate: Locate, path: string | undefined): number | undefined {
	for (let ancestor = pointer; ancestor !== ''; ancestor = ancestor.slice(0, ancestor.lastIndexOf('/'))) {
		const span = locate(ancestor);
		if (span && span.source.path === path) return span.start;
	}
	return undefined;
}
