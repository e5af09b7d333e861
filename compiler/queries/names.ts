/** Names that a configuration defines and uses: snippets and their parameters, constants, matchers, upstreams and named routes. */
import { registryOf } from '../lower/registry.ts';
import type { ParsedLine, ParsedWord } from '../syntax/parsed-file.ts';
import { isSnippetHead } from '../syntax/snippet-definition.ts';
import { everyLine, type FileRange, kindOfTopLevel, type TextSyntax } from './text-syntax.ts';
import type { Workspace } from './workspace.ts';

export type NameKind = 'snippet' | 'parameter' | 'let' | 'matcher' | 'upstream' | 'route';

/** One occurrence of a name. */
export interface NameUse extends FileRange {
	readonly kind: NameKind;
	/** Without `@`, `(…)` or prefix. */
	readonly name: string;
	/** Equal for all occurrences that refer to the same definition. */
	readonly key: string;
	readonly role: 'definition' | 'use';
	/** The line in which the name occurs. */
	readonly line: ParsedLine;
}

const REFERENCE = /\{(let|param)\.([A-Za-z_][\w-]*)/g;
const UPSTREAM_SCHEME = 'upstream://';

const known = new WeakMap<TextSyntax, readonly NameUse[]>();

/** Returns all occurrences of names in one text, in order. */
export function namesIn(syntax: TextSyntax): readonly NameUse[] {
	let names = known.get(syntax);
	if (!names) {
		names = new NameCollector(syntax).collect();
		known.set(syntax, names);
	}
	return names;
}

/** Returns all occurrences of names in the files that belong to a configuration together with a file. */
export function namesAround(workspace: Workspace, path: string): readonly NameUse[] {
	return workspace.related(path).flatMap(file => {
		const syntax = workspace.syntax(file);
		return syntax ? namesIn(syntax) : [];
	});
}

class NameCollector {
	readonly #syntax: TextSyntax;
	readonly #found: NameUse[] = [];
	/** Offsets of the blocks that define each matcher by its name. */
	readonly #matchers = new Map<string, Set<number>>();
	/** Offsets of the sites that define each constant by its name. */
	readonly #constants = new Map<string, Set<number>>();

	constructor(syntax: TextSyntax) {
		this.#syntax = syntax;
	}

	collect(): readonly NameUse[] {
		const { lines } = this.#syntax;
		for (const { line, around } of everyLine(lines)) this.#define(line, around);
		for (const { line, around } of everyLine(lines)) this.#line(line, around);
		return this.#found;
	}

	/** Records the scope of a definition. */
	#define({ words }: ParsedLine, around: readonly ParsedLine[]): void {
		const [first, second] = words;
		const block = around.at(-1)?.block?.open.start;
		if (first?.quote !== 'none' || block === undefined) return;
		const isOpen = around.length === 1 && this.#isShared(around[0]!);
		if (isOpen) return;
		if (first.text.startsWith('@') && words.length > 0) add(this.#matchers, first.text.slice(1), block);
		else if (first.text === 'let' && second && around.length === 1) add(this.#constants, second.text, block);
	}

	/** Reports whether the contents of a top-level line end up in several places. */
	#isShared(top: ParsedLine): boolean {
		return isSnippetHead(top.words[0]?.text ?? '');
	}

	#line(line: ParsedLine, around: readonly ParsedLine[]): void {
		const { words } = line;
		const [first, second] = words;
		if (first && around.length === 0) this.#top(line, first, second);
		if (first?.quote === 'none' && second) {
			const own = this.#syntax.dialect === 'configfile';
			if (first.text === 'import' || (own && first.text === 'use')) {
				if (second.quote === 'none' && !/[{}/*]/.test(second.text))
					this.#add('snippet', second.text, second.span.start, line, 'use', second.text);
				if (first.text === 'use') this.#arguments(line, second.text);
			} else if (own && first.text === 'let') {
				this.#add(
					'let',
					second.text,
					second.span.start,
					line,
					'definition',
					this.#scopeOfConstant(second.text, around),
				);
			} else if (first.text === 'upstream' && own && around.length === 1 && line.block) {
				this.#add('upstream', second.text, second.span.start, line, 'definition', second.text);
			} else if (first.text === 'invoke') {
				const name = words.at(-1)!;
				this.#add('route', name.text, name.span.start, line, 'use', name.text);
			}
		}
		for (const [index, word] of words.entries()) this.#word(word, index, line, around);
	}

	#top(line: ParsedLine, first: ParsedWord, second: ParsedWord | undefined): void {
		const kind = kindOfTopLevel(line, this.#syntax.dialect, registryOf(this.#syntax.dialect).directives);
		if (kind === 'snippet') {
			const name = first.text.slice(1, -1);
			this.#add('snippet', name, first.span.start + 1, line, 'definition', name);
			for (const parameter of line.words.slice(1)) {
				const named = parameter.text.split('=')[0]!;
				this.#add('parameter', named, parameter.span.start, line, 'definition', `${name} ${named}`);
			}
		} else if (kind === 'route') {
			const name = first.text.slice(2, -1);
			this.#add('route', name, first.span.start + 2, line, 'definition', name);
		} else if (kind === 'upstream' && second) {
			this.#add('upstream', second.text, second.span.start, line, 'definition', second.text);
		}
	}

	#arguments(line: ParsedLine, snippet: string): void {
		for (const { text, span } of line.words.slice(2)) {
			const equals = text.indexOf('=');
			if (equals < 1) continue;
			const name = text.slice(0, equals);
			this.#add('parameter', name, span.start, line, 'use', `${snippet} ${name}`);
		}
	}

	#word({ text, quote, span }: ParsedWord, index: number, line: ParsedLine, around: readonly ParsedLine[]): void {
		if (quote === 'none' && text.startsWith('@') && text.length > 1 && around.length + index > 0) {
			const name = text.slice(1);
			const key = this.#scopeOfMatcher(name, around);
			this.#add('matcher', name, span.start + 1, line, index === 0 ? 'definition' : 'use', key);
		} else if (text.startsWith(UPSTREAM_SCHEME)) {
			const name = text.slice(UPSTREAM_SCHEME.length);
			const at = this.#syntax.text.indexOf(UPSTREAM_SCHEME, span.start) + UPSTREAM_SCHEME.length;
			this.#add('upstream', name, at, line, 'use', name);
		}
		if (this.#syntax.dialect !== 'configfile' || !text.includes('{')) return;
		for (const { 1: kind, 2: name, index: at } of this.#syntax.text.slice(span.start, span.end).matchAll(REFERENCE)) {
			const start = span.start + at + kind!.length + 2;
			if (kind === 'let') this.#add('let', name!, start, line, 'use', this.#scopeOfConstant(name!, around));
			else {
				const head = (around[0] ?? line).words[0]?.text ?? '';
				if (isSnippetHead(head)) this.#add('parameter', name!, start, line, 'use', `${head.slice(1, -1)} ${name}`);
			}
		}
	}

	#scopeOfMatcher(name: string, around: readonly ParsedLine[]): string {
		const scopes = this.#matchers.get(name);
		const inner = around.findLast(({ block }) => block && scopes?.has(block.open.start));
		return inner ? `${name} ${this.#syntax.path} ${inner.block!.open.start}` : name;
	}

	#scopeOfConstant(name: string, around: readonly ParsedLine[]): string {
		const site = around[0]?.block?.open.start;
		const isOwn = site !== undefined && this.#constants.get(name)?.has(site);
		return isOwn ? `${name} ${this.#syntax.path} ${site}` : name;
	}

	#add(kind: NameKind, name: string, start: number, line: ParsedLine, role: NameUse['role'], key: string): void {
		if (name === '') return;
		// A quoted or escaped name is not where its text suggests.
		if (!this.#syntax.text.startsWith(name, start)) return;
		const { path } = this.#syntax;
		this.#found.push({ kind, name, path, start, end: start + name.length, key: `${kind} ${key}`, role, line });
	}
}

function add(map: Map<string, Set<number>>, name: string, value: number): void {
	const known = map.get(name);
	if (known) known.add(value);
	else map.set(name, new Set([value]));
}

/** Returns the name at an offset. */
export function nameAt(syntax: TextSyntax, offset: number): NameUse | undefined {
	return namesIn(syntax).find(({ start, end }) => start <= offset && offset <= end);
}

/** Returns all occurrences that refer to the same definition as the name at an offset. */
export function occurrencesAt(workspace: Workspace, syntax: TextSyntax, offset: number): readonly NameUse[] {
	const at = nameAt(syntax, offset);
	if (!at) return [];
	const all = namesAround(workspace, syntax.path).filter(({ key }) => key === at.key);
	// `import NAME` names a file unless there is such a snippet.
	return at.kind === 'snippet' && !all.some(({ role }) => role === 'definition') ? [] : all;
}

/** Why a name cannot be changed as asked. */
export interface RenameProblem {
	readonly problem: string;
}

/** Returns the ranges to replace so that the name at an offset becomes another. */
export function renameAt(
	workspace: Workspace,
	syntax: TextSyntax,
	offset: number,
	wanted: string,
): readonly NameUse[] | RenameProblem {
	const uses = occurrencesAt(workspace, syntax, offset);
	const [use] = uses;
	if (!use) return { problem: 'This is not a name that the configuration defines.' };
	const bare = wanted.replace(use.kind === 'matcher' ? /^@/ : /^$/, '');
	if (!(use.kind === 'let' || use.kind === 'parameter' ? /^[A-Za-z_][\w-]*$/ : /^[\w.:-]+$/).test(bare))
		return { problem: `\`${wanted}\` is not a name. Use letters, digits, \`_\` and \`-\`, beginning with a letter.` };
	if (!uses.some(({ role }) => role === 'definition'))
		return { problem: `\`${use.name}\` is not defined in this workspace.` };
	const scope = use.key.slice(`${use.kind} ${use.kind === 'parameter' ? '' : use.name}`.length);
	const taken = namesAround(workspace, syntax.path).some(
		other => other.kind === use.kind && other.name === bare && other.name !== use.name && sameScope(other, use, scope),
	);
	return taken ? { problem: `There is already a ${use.kind} \`${bare}\`.` } : uses;
}

/** Reports whether two names of a kind would collide. Names of inner scopes hide outer ones, so these collide as well. */
function sameScope(other: NameUse, use: NameUse, scope: string): boolean {
	if (use.kind === 'parameter') return other.key.split(' ')[1] === use.key.split(' ')[1];
	if (use.kind !== 'matcher' && use.kind !== 'let') return true;
	return scope === '' || other.key === `${other.kind} ${other.name}` || other.key.endsWith(scope);
}
