/**
 * The names that a configuration defines and uses: snippets and their parameters, constants, matchers, upstreams and named routes.
 */
import { registryOf } from '../lower/registry.ts';
import type { ParsedLine, ParsedWord } from '../syntax/parsed-file.ts';
import { isSnippetHead } from '../syntax/snippet-definition.ts';
import { everyLine, type FileRange, kindOfTopLevel, type TextSyntax } from './text-syntax.ts';
import type { Workspace } from './workspace.ts';

export type NameKind = 'snippet' | 'parameter' | 'let' | 'matcher' | 'upstream' | 'route';

/** An occurrence of a name in a text. */
export interface NameUse extends FileRange {
	readonly kind: NameKind;
	/** The name, without `@`, parentheses or a prefix such as `let.`. */
	readonly name: string;
	/** A key that all occurrences of the same snippet, constant, matcher, upstream or other named object have in common. */
	readonly key: string;
	readonly role: 'definition' | 'use';
	/** The line in which the name occurs. */
	readonly line: ParsedLine;
}

const REFERENCE_PATTERN = /\{(let|param)\.([A-Za-z_][\w-]*)/g;
const UPSTREAM_SCHEME = 'upstream://';

const namesBySyntax = new WeakMap<TextSyntax, readonly NameUse[]>();

/** Returns all occurrences of names in a text, in order. The result is cached. */
export function namesIn(syntax: TextSyntax): readonly NameUse[] {
	let names = namesBySyntax.get(syntax);
	if (!names) {
		names = new NameCollector(syntax).collectNames();
		namesBySyntax.set(syntax, names);
	}
	return names;
}

/** Returns all occurrences of names in the files that belong to the same configurations as a file. */
export function namesAround(workspace: Workspace, path: string): readonly NameUse[] {
	return workspace.relatedFiles(path).flatMap(file => {
		const syntax = workspace.syntaxOf(file);
		return syntax ? namesIn(syntax) : [];
	});
}

class NameCollector {
	readonly #syntax: TextSyntax;
	readonly #occurrences: NameUse[] = [];
	/** The offsets of the blocks that define a matcher, by the name of the matcher. */
	readonly #matcherScopes = new Map<string, Set<number>>();
	/** The offsets of the sites that define a constant, by the name of the constant. */
	readonly #constantScopes = new Map<string, Set<number>>();

	constructor(syntax: TextSyntax) {
		this.#syntax = syntax;
	}

	collectNames(): readonly NameUse[] {
		const { lines } = this.#syntax;
		for (const { line, enclosingLines } of everyLine(lines)) this.#recordScope(line, enclosingLines);
		for (const { line, enclosingLines } of everyLine(lines)) this.#collectLine(line, enclosingLines);
		return this.#occurrences;
	}

	/** If a line defines a matcher or constant, records the block that contains the line. */
	#recordScope({ words }: ParsedLine, enclosingLines: readonly ParsedLine[]): void {
		const [firstWord, secondWord] = words;
		const blockStart = enclosingLines.at(-1)?.block?.open.start;
		if (firstWord?.quote !== 'none' || blockStart === undefined) return;
		const isShared = enclosingLines.length === 1 && this.#isInsertedElsewhere(enclosingLines[0]!);
		if (isShared) return;
		if (firstWord.text.startsWith('@') && words.length > 0)
			addToSet(this.#matcherScopes, firstWord.text.slice(1), blockStart);
		else if (firstWord.text === 'let' && secondWord && enclosingLines.length === 1)
			addToSet(this.#constantScopes, secondWord.text, blockStart);
	}

	/** Reports whether a top-level line is a snippet, whose lines may be inserted in several places. */
	#isInsertedElsewhere(topLine: ParsedLine): boolean {
		return isSnippetHead(topLine.words[0]?.text ?? '');
	}

	#collectLine(line: ParsedLine, enclosingLines: readonly ParsedLine[]): void {
		const { words } = line;
		const [firstWord, secondWord] = words;
		if (firstWord && enclosingLines.length === 0) this.#collectTopLevel(line, firstWord, secondWord);
		if (firstWord?.quote === 'none' && secondWord) {
			const isConfigfile = this.#syntax.dialect === 'configfile';
			if (firstWord.text === 'import' || (isConfigfile && firstWord.text === 'use')) {
				if (secondWord.quote === 'none' && !/[{}/*]/.test(secondWord.text))
					this.#addOccurrence('snippet', secondWord.text, secondWord.span.start, line, 'use', secondWord.text);
				if (firstWord.text === 'use') this.#collectArguments(line, secondWord.text);
			} else if (isConfigfile && firstWord.text === 'let') {
				this.#addOccurrence(
					'let',
					secondWord.text,
					secondWord.span.start,
					line,
					'definition',
					this.#constantKey(secondWord.text, enclosingLines),
				);
			} else if (firstWord.text === 'upstream' && isConfigfile && enclosingLines.length === 1 && line.block) {
				this.#addOccurrence('upstream', secondWord.text, secondWord.span.start, line, 'definition', secondWord.text);
			} else if (firstWord.text === 'invoke') {
				const name = words.at(-1)!;
				this.#addOccurrence('route', name.text, name.span.start, line, 'use', name.text);
			}
		}
		for (const [index, word] of words.entries()) this.#collectWord(word, index, line, enclosingLines);
	}

	#collectTopLevel(line: ParsedLine, firstWord: ParsedWord, secondWord: ParsedWord | undefined): void {
		const kind = kindOfTopLevel(line, this.#syntax.dialect, registryOf(this.#syntax.dialect).directives);
		if (kind === 'snippet') {
			const name = firstWord.text.slice(1, -1);
			this.#addOccurrence('snippet', name, firstWord.span.start + 1, line, 'definition', name);
			for (const parameter of line.words.slice(1)) {
				const parameterName = parameter.text.split('=')[0]!;
				this.#addOccurrence(
					'parameter',
					parameterName,
					parameter.span.start,
					line,
					'definition',
					`${name} ${parameterName}`,
				);
			}
		} else if (kind === 'route') {
			const name = firstWord.text.slice(2, -1);
			this.#addOccurrence('route', name, firstWord.span.start + 2, line, 'definition', name);
		} else if (kind === 'upstream' && secondWord) {
			this.#addOccurrence('upstream', secondWord.text, secondWord.span.start, line, 'definition', secondWord.text);
		}
	}

	#collectArguments(line: ParsedLine, snippetName: string): void {
		for (const { text, span } of line.words.slice(2)) {
			const equalsIndex = text.indexOf('=');
			if (equalsIndex < 1) continue;
			const name = text.slice(0, equalsIndex);
			this.#addOccurrence('parameter', name, span.start, line, 'use', `${snippetName} ${name}`);
		}
	}

	#collectWord(
		{ text, quote, span }: ParsedWord,
		index: number,
		line: ParsedLine,
		enclosingLines: readonly ParsedLine[],
	): void {
		if (quote === 'none' && text.startsWith('@') && text.length > 1 && enclosingLines.length + index > 0) {
			const name = text.slice(1);
			const key = this.#matcherKey(name, enclosingLines);
			this.#addOccurrence('matcher', name, span.start + 1, line, index === 0 ? 'definition' : 'use', key);
		} else if (text.startsWith(UPSTREAM_SCHEME)) {
			const name = text.slice(UPSTREAM_SCHEME.length);
			const nameStart = this.#syntax.text.indexOf(UPSTREAM_SCHEME, span.start) + UPSTREAM_SCHEME.length;
			this.#addOccurrence('upstream', name, nameStart, line, 'use', name);
		}
		if (this.#syntax.dialect !== 'configfile' || !text.includes('{')) return;
		for (const { 1: kind, 2: name, index: matchIndex } of this.#syntax.text
			.slice(span.start, span.end)
			.matchAll(REFERENCE_PATTERN)) {
			const start = span.start + matchIndex + kind!.length + 2;
			if (kind === 'let')
				this.#addOccurrence('let', name!, start, line, 'use', this.#constantKey(name!, enclosingLines));
			else {
				const head = (enclosingLines[0] ?? line).words[0]?.text ?? '';
				if (isSnippetHead(head))
					this.#addOccurrence('parameter', name!, start, line, 'use', `${head.slice(1, -1)} ${name}`);
			}
		}
	}

	#matcherKey(name: string, enclosingLines: readonly ParsedLine[]): string {
		const scopes = this.#matcherScopes.get(name);
		const scopeLine = enclosingLines.findLast(({ block }) => block && scopes?.has(block.open.start));
		return scopeLine ? `${name} ${this.#syntax.path} ${scopeLine.block!.open.start}` : name;
	}

	#constantKey(name: string, enclosingLines: readonly ParsedLine[]): string {
		const siteStart = enclosingLines[0]?.block?.open.start;
		const isSiteConstant = siteStart !== undefined && this.#constantScopes.get(name)?.has(siteStart);
		return isSiteConstant ? `${name} ${this.#syntax.path} ${siteStart}` : name;
	}

	#addOccurrence(
		kind: NameKind,
		name: string,
		start: number,
		line: ParsedLine,
		role: NameUse['role'],
		key: string,
	): void {
		if (name === '') return;
		// The offset of a quoted or escaped name may differ from the one computed from its value. Such a name is left out.
		if (!this.#syntax.text.startsWith(name, start)) return;
		const { path } = this.#syntax;
		this.#occurrences.push({ kind, name, path, start, end: start + name.length, key: `${kind} ${key}`, role, line });
	}
}

function addToSet(map: Map<string, Set<number>>, name: string, value: number): void {
	const values = map.get(name);
	if (values) values.add(value);
	else map.set(name, new Set([value]));
}

/** Returns the name at an offset; undefined if there is none. */
export function nameAt(syntax: TextSyntax, offset: number): NameUse | undefined {
	return namesIn(syntax).find(({ start, end }) => start <= offset && offset <= end);
}

/** Returns all occurrences of the name at an offset that refer to the same thing. */
export function occurrencesAt(workspace: Workspace, syntax: TextSyntax, offset: number): readonly NameUse[] {
	const name = nameAt(syntax, offset);
	if (!name) return [];
	const occurrences = namesAround(workspace, syntax.path).filter(({ key }) => key === name.key);
	// The argument of `import` is a file rather than a name, unless a snippet has this name.
	return name.kind === 'snippet' && !occurrences.some(({ role }) => role === 'definition') ? [] : occurrences;
}

/** The reason why a name cannot be changed. */
export interface RenameProblem {
	readonly problem: string;
}

/** Returns the occurrences that must be replaced to rename the name at an offset, or the reason why it cannot be renamed. */
export function renameAt(
	workspace: Workspace,
	syntax: TextSyntax,
	offset: number,
	newName: string,
): readonly NameUse[] | RenameProblem {
	const uses = occurrencesAt(workspace, syntax, offset);
	const [use] = uses;
	if (!use) return { problem: 'This is not a name that the configuration defines.' };
	const bareName = newName.replace(use.kind === 'matcher' ? /^@/ : /^$/, '');
	if (!(use.kind === 'let' || use.kind === 'parameter' ? /^[A-Za-z_][\w-]*$/ : /^[\w.:-]+$/).test(bareName))
		return { problem: `\`${newName}\` is not a name. Use letters, digits, \`_\` and \`-\`, beginning with a letter.` };
	if (!uses.some(({ role }) => role === 'definition'))
		return { problem: `\`${use.name}\` is not defined in this workspace.` };
	const scopeSuffix = use.key.slice(`${use.kind} ${use.kind === 'parameter' ? '' : use.name}`.length);
	const isUsed = namesAround(workspace, syntax.path).some(
		other =>
			other.kind === use.kind &&
			other.name === bareName &&
			other.name !== use.name &&
			collides(other, use, scopeSuffix),
	);
	return isUsed ? { problem: `There is already a ${use.kind} \`${bareName}\`.` } : uses;
}

/**
 * Reports whether `otherUse`, which already has the new name, would collide with the renamed `use`. Names in nested scopes
 * collide as well, because the inner one would hide the outer one.
 */
function collides(otherUse: NameUse, use: NameUse, scopeSuffix: string): boolean {
	if (use.kind === 'parameter') return otherUse.key.split(' ')[1] === use.key.split(' ')[1];
	if (use.kind !== 'matcher' && use.kind !== 'let') return true;
	return (
		scopeSuffix === '' || otherUse.key === `${otherUse.kind} ${otherUse.name}` || otherUse.key.endsWith(scopeSuffix)
	);
}
