/** Completion: the words that may be written at an offset. */
import { dirname, join } from 'node:path';
import { placeholders } from '../codegen/placeholders/index.ts';
import { shorthandNames } from '../codegen/placeholders/shorthands.ts';
import { STATUS_CODES } from '../exchange/status-codes.ts';
import { lintRules } from '../lint/index.ts';
import { registryOf } from '../lower/registry.ts';
import { ReadError } from '../source/reader.ts';
import { scanComments } from '../syntax/scan-comments.ts';
import { EXPECTATIONS } from '../testing/expectations.ts';
import { STEP_WORDS, UPSTREAM_BEHAVIORS } from '../testing/lower-tests.ts';
import { REQUEST_FIELDS, RESPONSE_FIELDS } from './header-fields.ts';
import {
	directiveManual,
	keywordManual,
	type Manual,
	manualText,
	matcherManual,
	optionManual,
	placeholderManual,
	ruleManual,
	subdirectiveManual,
} from './manual.ts';
import { type NameKind, type NameUse, namesAround } from './names.ts';
import { type Expected, expectedAt } from './probe.ts';
import { type Place, placeAt, type TextRange, type TextSyntax } from './text-syntax.ts';
import { usageArguments } from './usage.ts';
import type { Workspace } from './workspace.ts';

/** What a completion is. */
export type CompletionKind =
	| 'directive'
	| 'subdirective'
	| 'option'
	| 'matcher'
	| 'keyword'
	| 'value'
	| 'placeholder'
	| 'file'
	| 'folder'
	| 'field'
	| 'rule'
	| NameKind;

/** A word that may be written. */
export interface Completion {
	readonly label: string;
	readonly kind: CompletionKind;
	/** One line. */
	readonly detail?: string | undefined;
	/** Markdown. */
	readonly documentation?: string | undefined;
	readonly insert: string;
	/** True if {@link insert} has places to fill in: `$0`. */
	readonly snippet?: boolean;
	/** What it replaces. */
	readonly range: TextRange;
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

/** Returns the words that may be written at an offset. */
export function completionsAt(workspace: Workspace, syntax: TextSyntax, offset: number): readonly Completion[] {
	const { text } = syntax;
	const lineStart = text.lastIndexOf('\n', offset - 1) + 1;
	const before = text.slice(lineStart, offset);
	if (before.includes('#')) {
		const comment = scanComments(text, syntax.dialect).find(({ start, end }) => start < offset && offset <= end);
		if (comment) return rules(text.slice(comment.start, offset), offset);
	}
	const place = placeAt(syntax, offset);
	return new Completer(workspace, syntax, place, offset).complete(before);
}

/** Completes the names of rules in a comment that silences some. */
function rules(comment: string, offset: number): Completion[] {
	const typed = /^#\s*lint:\s*(?:off|off-file)\s(?:\S+\s+)*(\S*)$/.exec(comment);
	if (!typed) return [];
	const range = { start: offset - typed[1]!.length, end: offset };
	return lintRules.map(({ name, summary }) => ({
		...{ label: name, kind: 'rule' as const, detail: summary, insert: name, range },
		documentation: manualText(ruleManual(name)!),
	}));
}

class Completer {
	readonly #workspace: Workspace;
	readonly #syntax: TextSyntax;
	readonly #place: Place;
	readonly #offset: number;
	/** The word at the offset, up to its end. */
	readonly #range: TextRange;
	#names: readonly NameUse[] | undefined;
	readonly #found: Completion[] = [];
	readonly #seen = new Set<string>();

	constructor(workspace: Workspace, syntax: TextSyntax, place: Place, offset: number) {
		this.#workspace = workspace;
		this.#syntax = syntax;
		this.#place = place;
		this.#offset = offset;
		const { word } = place;
		this.#range =
			word && word.quote === 'none' ? { start: word.span.start, end: word.span.end } : { start: offset, end: offset };
	}

	complete(before: string): readonly Completion[] {
		const brace = /\{([^{}\s]*)$/.exec(before);
		if (brace && !before.endsWith('\\{')) {
			this.#placeholders(brace[1]!);
			return this.#found;
		}
		const { word, index, line, around } = this.#place;
		if (word && word.quote !== 'none') return [];
		const first = line?.words[0];
		const typed = word ? this.#syntax.text.slice(word.span.start, this.#offset) : '';
		if (first && index > 0 && first.quote === 'none') {
			if (first.text === 'import') return this.#import(typed);
			if (first.text === 'use' && this.#syntax.dialect === 'configfile') return this.#use(line!.words[1]?.text);
			if (first.text === 'let' && this.#syntax.dialect === 'configfile') return this.#found;
		}
		const top = around[0]?.words[0];
		if (top?.text === 'test' && this.#syntax.dialect === 'configfile') return this.#test(index);
		if (typed.startsWith('upstream://')) {
			this.#upstreams();
			return this.#found;
		}
		const expected = expectedAt(this.#syntax, this.#place);
		if (index === 0) this.#beginning(expected);
		else this.#argument(expected, typed);
		return this.#found;
	}

	#add(
		kind: CompletionKind,
		label: string,
		more: { manual?: Manual | undefined; detail?: string; insert?: string; snippet?: boolean; range?: TextRange } = {},
	): void {
		if (this.#seen.has(label)) return;
		this.#seen.add(label);
		const { manual, detail = manual?.summary, insert = label, range = this.#range, snippet } = more;
		this.#found.push({
			...{ label, kind, detail, insert, range },
			...(snippet ? { snippet } : {}),
			documentation: manual && manualText(manual),
		});
	}

	#defined(kind: NameKind): readonly NameUse[] {
		this.#names ??= namesAround(this.#workspace, this.#syntax.path);
		return this.#names.filter(one => one.kind === kind && one.role === 'definition');
	}

	/** The first word of a line. */
	#beginning({ directive, words, of, top, matcher }: Expected): void {
		const { dialect } = this.#syntax;
		const { around } = this.#place;
		if (around.length === 0) this.#topLevel();
		if (top === 'options' && around.length === 1) {
			for (const name of registryOf(dialect).options.keys())
				this.#add('option', name, {
					manual: optionManual(name, dialect),
					...blockInsert(name, optionManual(name, dialect)),
				});
		}
		for (const word of words) {
			const manual = subdirectiveManual(word, this.#outerManual(), undefined);
			this.#add('subdirective', word, { manual, ...(manual ? {} : { detail: `of \`${of}\`` }) });
		}
		if (directive && around.length > 0) this.#directives();
		if (matcher) this.#matchers();
		if (around.length > 0 && (words.length > 0 || directive)) this.#inserting(directive);
		const outer = around.at(-1);
		if (!directive && outer && /^(?:header|request_header)$/.test(outer.words[0]?.text ?? ''))
			this.#fields(outer.words[0]!.text);
	}

	#topLevel(): void {
		const { dialect, path } = this.#syntax;
		for (const word of ['import', 'let', 'upstream', 'test']) {
			const manual = keywordManual(word, dialect);
			if (!manual) continue;
			const block = word === 'upstream' ? 'upstream $1 {\n\tto $2\n}' : undefined;
			const test = word === 'test' ? 'test "$1" {\n\tGET $2\n\texpect status $3\n}' : undefined;
			this.#add('keyword', word, {
				manual,
				insert: block ?? test ?? `${word} `,
				snippet: (block ?? test) !== undefined,
			});
		}
		// The text may be inserted into a site.
		if (this.#workspace.rootsOf(path)[0] !== path || this.#syntax.lines.length === 0) this.#directives();
	}

	#directives(): void {
		const { dialect } = this.#syntax;
		for (const [name, { kind }] of registryOf(dialect).directives) {
			// Settings of a site are not allowed in its blocks.
			if (kind === 'site' && this.#place.around.length > 1) continue;
			const manual = directiveManual(name, dialect);
			this.#add('directive', name, { manual, ...blockInsert(name, manual) });
		}
	}

	/** Words that insert other lines. */
	#inserting(directive: boolean): void {
		const { dialect } = this.#syntax;
		this.#add('keyword', 'import', { manual: keywordManual('import', dialect), insert: 'import ' });
		if (dialect === 'compatfile') return;
		this.#add('keyword', 'use', { manual: keywordManual('use', dialect), insert: 'use ' });
		if (directive && this.#place.around.length === 1)
			this.#add('keyword', 'let', { manual: keywordManual('let', dialect), insert: 'let ' });
	}

	/** Returns the manual of the line around the place, or of the nearest outer one that has any. */
	#outerManual(): Manual | undefined {
		const { dialect } = this.#syntax;
		for (const { words } of this.#place.around.toReversed()) {
			const name = words[0]?.text ?? '';
			const manual = directiveManual(name, dialect) ?? optionManual(name, dialect) ?? matcherManual(name, dialect);
			if (manual) return manual;
			if (name === 'upstream') return directiveManual('reverse_proxy', dialect);
		}
		return undefined;
	}

	#argument({ choices, values, matcher, usage, top }: Expected, typed: string): void {
		const { line, index } = this.#place;
		const { dialect } = this.#syntax;
		const name = line!.words[0]!.text;
		if (matcher) {
			this.#matchers();
			if (dialect === 'configfile') for (const word of ['not', 'and', 'or']) this.#add('keyword', word);
		}
		for (const choice of choices) this.#add('value', choice);
		if (values.has('boolean')) for (const word of ['on', 'off']) this.#add('value', word);
		if (values.has('route')) for (const route of this.#defined('route')) this.#add('route', route.name);
		const directive = registryOf(dialect).directives.get(name);
		const isDirective = directive?.kind === 'handler' && top !== 'options';
		const takesMatcher = isDirective && directive.matcherToken !== 'none';
		if (index === 1 && takesMatcher) this.#namedMatchers();
		const hasMatcher = takesMatcher && index > 1 && /^[@/*]/.test(line!.words[1]!.text);
		const written = usage ?? directive?.usage ?? registryOf(dialect).options.get(name)?.usage;
		const position = index - 1 - (hasMatcher ? 1 : 0);
		const all = written === undefined ? [] : usageArguments(written);
		const at = all[position] ?? all.findLast(({ repeats }) => repeats);
		for (const word of at?.words ?? []) this.#add('value', word);
		const kinds = new Set(at?.values.map(value => value.replace(/^.*[-_ ]/, '')));
		if (values.has('status') || kinds.has('status')) this.#statuses();
		if (kinds.has('upstream')) this.#upstreams();
		if (kinds.has('method')) for (const method of METHODS) this.#add('value', method);
		if (kinds.has('field') || /^header_(?:up|down)$/.test(name)) this.#fields(name);
		const isFile = ['file', 'path', 'certificate', 'key', 'folder'].some(kind => kinds.has(kind));
		if (values.has('file') || (isFile && dialect === 'configfile')) this.#files(typed);
	}

	#matchers(): void {
		const { dialect } = this.#syntax;
		for (const name of registryOf(dialect).matchers.keys())
			this.#add('matcher', name, { manual: matcherManual(name, dialect) });
		this.#namedMatchers();
	}

	#namedMatchers(): void {
		const { around } = this.#place;
		const { path, text } = this.#syntax;
		for (const { name, key, path: from, line, start } of this.#defined('matcher')) {
			const scope = /^matcher \S+ (.*) (\d+)$/.exec(key);
			const isVisible = scope
				? scope[1] === path && around.some(({ block }) => block?.open.start === Number(scope[2]))
				: true;
			if (!isVisible || (from === path && start > this.#range.start && start <= this.#range.end)) continue;
			const detail = from === path ? oneLine(text.slice(line.span.start, line.span.end)) : undefined;
			this.#add('matcher', `@${name}`, detail === undefined ? {} : { detail });
		}
	}

	#upstreams(): void {
		for (const { name } of this.#defined('upstream')) this.#add('upstream', `upstream://${name}`);
	}

	#statuses(): void {
		for (const [status, phrase] of Object.entries(STATUS_CODES)) this.#add('value', status, { detail: phrase });
	}

	#fields(directive: string): void {
		const isRequest = /request|_up$/.test(directive);
		for (const field of isRequest ? REQUEST_FIELDS : RESPONSE_FIELDS) this.#add('field', field);
	}

	#import(typed: string): readonly Completion[] {
		for (const { name, line } of this.#defined('snippet')) this.#add('snippet', name, { detail: headOf(line.words) });
		this.#files(typed);
		return this.#found;
	}

	#use(snippet: string | undefined): readonly Completion[] {
		if (this.#place.index === 1) {
			for (const { name, line } of this.#defined('snippet')) this.#add('snippet', name, { detail: headOf(line.words) });
			return this.#found;
		}
		const given = new Set(this.#place.line!.words.slice(2).map(({ text }) => text.split('=')[0]));
		const definition = this.#defined('snippet').find(({ name }) => name === snippet);
		for (const { text } of definition?.line.words.slice(1) ?? []) {
			const [name, value] = text.split(/=(.*)/s) as [string, string | undefined];
			if (given.has(name) && this.#place.word?.text.split('=')[0] !== name) continue;
			this.#add('parameter', `${name}=`, { detail: value === undefined ? 'required' : `default: ${value}` });
		}
		return this.#found;
	}

	#test(index: number): readonly Completion[] {
		const first = this.#place.line?.words[0]?.text;
		if (index === 0) {
			for (const method of METHODS) this.#add('keyword', method);
			for (const word of [...STEP_WORDS, 'cases']) this.#add('keyword', word);
		} else if (first === 'expect' && index === 1) {
			for (const [word, { usage }] of Object.entries(EXPECTATIONS)) this.#add('keyword', word, { detail: usage });
		} else if (first === 'upstream' && (index === 1 || index === 2)) {
			for (const behavior of UPSTREAM_BEHAVIORS) this.#add('keyword', behavior === 'times' ? 'times out' : behavior);
		} else if (first === 'expect' && index === 2 && this.#place.line!.words[1]?.text === 'status') this.#statuses();
		else if (first === 'header' || (first === 'expect' && this.#place.line!.words[1]?.text === 'header' && index === 2))
			this.#fields(first === 'header' ? 'request' : 'response');
		return this.#found;
	}

	/** Files and folders that a relative path may name. */
	#files(typed: string): void {
		const slash = typed.lastIndexOf('/') + 1;
		if (/[{}*]/.test(typed)) return;
		const folder = typed.startsWith('/')
			? typed.slice(0, slash)
			: join(dirname(this.#syntax.path), typed.slice(0, slash));
		const range = { start: this.#range.start + slash, end: this.#range.end };
		let names: readonly string[];
		try {
			names = this.#workspace.reader.list(folder);
		} catch (error) {
			if (error instanceof ReadError) return;
			throw error;
		}
		for (const name of names) {
			if (name.startsWith('.') || /\s/.test(name)) continue;
			const path = join(folder, name);
			const kind = this.#workspace.reader.kind(path);
			if (kind === 'directory') this.#add('folder', `${name}/`, { range });
			else if (kind === 'file' && path !== this.#syntax.path) this.#add('file', name, { range });
		}
	}

	#placeholders(typed: string): void {
		const { dialect, text } = this.#syntax;
		const start = this.#offset - typed.length;
		const closed = /^[^{}\s]*\}/.exec(text.slice(this.#offset));
		const range = { start, end: this.#offset + (closed ? closed[0].length : 0) };
		const insert = (name: string): { insert: string; snippet: boolean; range: TextRange } => {
			const open = name.endsWith('*');
			return { insert: open ? `${name.slice(0, -1)}$\{1:NAME}}` : `${name}}`, snippet: open, range };
		};
		if (dialect === 'configfile') {
			for (const { name, line } of this.#defined('let'))
				this.#add('let', `let.${name}`, {
					...insert(`let.${name}`),
					detail: line.words
						.slice(2)
						.map(word => word.text)
						.join(' '),
				});
			const snippet = this.#place.around[0]?.words;
			if (snippet?.[0]?.text.startsWith('(')) {
				for (const { text: parameter } of snippet.slice(1)) {
					const name = `param.${parameter.split('=')[0]}`;
					this.#add('parameter', name, insert(name));
				}
			}
		}
		if (typed.startsWith('$')) return;
		for (const name of [...shorthandNames(), ...placeholders.map(one => one.name)])
			this.#add('placeholder', name, { manual: placeholderManual(name, dialect), ...insert(name) });
	}
}

/** Returns the text to insert for a line that needs a block. */
function blockInsert(name: string, manual: Manual | undefined): { insert: string; snippet: boolean } {
	// With optional arguments, the block is usually left out.
	const hasOptions = /\[(?!matcher\])/.test(manual?.usage?.split('{')[0] ?? '');
	const needs =
		!hasOptions && manual?.usage !== undefined && /[^[] ?\{[^{}]*\}$/.test(manual.usage) && !manual.usage.endsWith(']');
	const args = manual?.usage?.includes('<') === true && !/^\S+ (?:\[matcher\] )?\{/.test(manual.usage);
	if (!needs) return { insert: name, snippet: false };
	return { insert: args ? `${name} $1 {\n\t$0\n}` : `${name} {\n\t$0\n}`, snippet: true };
}

function headOf(words: readonly { readonly text: string }[]): string {
	return words.map(({ text }) => text).join(' ');
}

function oneLine(text: string): string {
	return text.replace(/\s+/g, ' ').slice(0, 100);
}
