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

/** The kind of word that a completion inserts. */
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
	/** A description of the word in one line. */
	readonly detail?: string | undefined;
	/** The documentation of the word, in Markdown. */
	readonly documentation?: string | undefined;
	readonly insert: string;
	/** True if `insert` has tab stops for the editor, such as `$0`. */
	readonly isSnippet?: boolean;
	/** The range of text that the completion replaces. */
	readonly range: TextRange;
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

/** Returns the words that may be written at an offset. */
export function completionsAt(workspace: Workspace, syntax: TextSyntax, offset: number): readonly Completion[] {
	const { text } = syntax;
	const lineStart = text.lastIndexOf('\n', offset - 1) + 1;
	const lineBefore = text.slice(lineStart, offset);
	if (lineBefore.includes('#')) {
		const comment = scanComments(text, syntax.dialect).find(({ start, end }) => start < offset && offset <= end);
		if (comment) return completeRules(text.slice(comment.start, offset), offset);
	}
	const place = placeAt(syntax, offset);
	return new Completer(workspace, syntax, place, offset).complete(lineBefore);
}

/** Completes names of rules in a comment that silences findings. */
function completeRules(comment: string, offset: number): Completion[] {
	const typedName = /^#\s*lint:\s*(?:off|off-file)\s(?:\S+\s+)*(\S*)$/.exec(comment);
	if (!typedName) return [];
	const range = { start: offset - typedName[1]!.length, end: offset };
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
	/** The range of the word at the offset; empty if there is none or if it is quoted. */
	readonly #range: TextRange;
	#names: readonly NameUse[] | undefined;
	readonly #completions: Completion[] = [];
	readonly #labels = new Set<string>();

	constructor(workspace: Workspace, syntax: TextSyntax, place: Place, offset: number) {
		this.#workspace = workspace;
		this.#syntax = syntax;
		this.#place = place;
		this.#offset = offset;
		const { word } = place;
		this.#range =
			word && word.quote === 'none' ? { start: word.span.start, end: word.span.end } : { start: offset, end: offset };
	}

	complete(lineBefore: string): readonly Completion[] {
		const openBrace = /\{([^{}\s]*)$/.exec(lineBefore);
		if (openBrace && !lineBefore.endsWith('\\{')) {
			this.#addPlaceholders(openBrace[1]!);
			return this.#completions;
		}
		const { word, index, line, enclosingLines } = this.#place;
		if (word && word.quote !== 'none') return [];
		const firstWord = line?.words[0];
		const typed = word ? this.#syntax.text.slice(word.span.start, this.#offset) : '';
		if (firstWord && index > 0 && firstWord.quote === 'none') {
			if (firstWord.text === 'import') return this.#completeImport(typed);
			if (firstWord.text === 'use' && this.#syntax.dialect === 'configfile')
				return this.#completeUse(line!.words[1]?.text);
			if (firstWord.text === 'let' && this.#syntax.dialect === 'configfile') return this.#completions;
		}
		const topWord = enclosingLines[0]?.words[0];
		if (topWord?.text === 'test' && this.#syntax.dialect === 'configfile') return this.#completeTest(index);
		if (typed.startsWith('upstream://')) {
			this.#addUpstreams();
			return this.#completions;
		}
		const expectedWords = expectedAt(this.#syntax, this.#place);
		if (index === 0) this.#completeLineStart(expectedWords);
		else this.#completeArgument(expectedWords, typed);
		return this.#completions;
	}

	#add(
		kind: CompletionKind,
		label: string,
		details: {
			manual?: Manual | undefined;
			detail?: string;
			insert?: string;
			snippet?: boolean;
			range?: TextRange;
		} = {},
	): void {
		if (this.#labels.has(label)) return;
		this.#labels.add(label);
		const { manual, detail = manual?.summary, insert = label, range = this.#range, snippet } = details;
		this.#completions.push({
			...{ label, kind, detail, insert, range },
			...(snippet ? { isSnippet: snippet } : {}),
			documentation: manual && manualText(manual),
		});
	}

	#definitions(kind: NameKind): readonly NameUse[] {
		this.#names ??= namesAround(this.#workspace, this.#syntax.path);
		return this.#names.filter(name => name.kind === kind && name.role === 'definition');
	}

	/** Completes the first word of a line. */
	#completeLineStart({
		allowsDirective: directive,
		lineWords: words,
		owner,
		top,
		allowsMatcher: matcher,
	}: Expected): void {
		const { dialect } = this.#syntax;
		const { enclosingLines } = this.#place;
		if (enclosingLines.length === 0) this.#addTopLevelKeywords();
		if (top === 'options' && enclosingLines.length === 1) {
			for (const name of registryOf(dialect).options.keys())
				this.#add('option', name, {
					manual: optionManual(name, dialect),
					...blockInsert(name, optionManual(name, dialect)),
				});
		}
		for (const word of words) {
			const manual = subdirectiveManual(word, this.#outerManual(), undefined);
			this.#add('subdirective', word, { manual, ...(manual ? {} : { detail: `of \`${owner}\`` }) });
		}
		if (directive && enclosingLines.length > 0) this.#addDirectives();
		if (matcher) this.#addMatchers();
		if (enclosingLines.length > 0 && (words.length > 0 || directive)) this.#addInsertingKeywords(directive);
		const outerLine = enclosingLines.at(-1);
		if (!directive && outerLine && /^(?:header|request_header)$/.test(outerLine.words[0]?.text ?? ''))
			this.#addFields(outerLine.words[0]!.text);
	}

	#addTopLevelKeywords(): void {
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
		// The file may be one that sites import.
		if (this.#workspace.rootsOf(path)[0] !== path || this.#syntax.lines.length === 0) this.#addDirectives();
	}

	#addDirectives(): void {
		const { dialect } = this.#syntax;
		for (const [name, { kind }] of registryOf(dialect).directives) {
			// Directives that change settings of the site are not allowed in nested blocks.
			if (kind === 'site' && this.#place.enclosingLines.length > 1) continue;
			const manual = directiveManual(name, dialect);
			this.#add('directive', name, { manual, ...blockInsert(name, manual) });
		}
	}

	/** Adds the keywords whose lines are replaced by other lines. */
	#addInsertingKeywords(inSite: boolean): void {
		const { dialect } = this.#syntax;
		this.#add('keyword', 'import', { manual: keywordManual('import', dialect), insert: 'import ' });
		if (dialect === 'compatfile') return;
		this.#add('keyword', 'use', { manual: keywordManual('use', dialect), insert: 'use ' });
		if (inSite && this.#place.enclosingLines.length === 1)
			this.#add('keyword', 'let', { manual: keywordManual('let', dialect), insert: 'let ' });
	}

	/** Returns the manual of the innermost enclosing line that has one. */
	#outerManual(): Manual | undefined {
		const { dialect } = this.#syntax;
		for (const { words } of this.#place.enclosingLines.toReversed()) {
			const name = words[0]?.text ?? '';
			const manual = directiveManual(name, dialect) ?? optionManual(name, dialect) ?? matcherManual(name, dialect);
			if (manual) return manual;
			if (name === 'upstream') return directiveManual('reverse_proxy', dialect);
		}
		return undefined;
	}

	#completeArgument({ choices, values, allowsMatcher: matcher, usage, top }: Expected, typed: string): void {
		const { line, index } = this.#place;
		const { dialect } = this.#syntax;
		const name = line!.words[0]!.text;
		if (matcher) {
			this.#addMatchers();
			if (dialect === 'configfile') for (const word of ['not', 'and', 'or']) this.#add('keyword', word);
		}
		for (const choice of choices) this.#add('value', choice);
		if (values.has('boolean')) for (const word of ['on', 'off']) this.#add('value', word);
		if (values.has('route')) for (const route of this.#definitions('route')) this.#add('route', route.name);
		const directive = registryOf(dialect).directives.get(name);
		const isDirective = directive?.kind === 'handler' && top !== 'options';
		const takesMatcher = isDirective && directive.matcherToken !== 'none';
		if (index === 1 && takesMatcher) this.#addNamedMatchers();
		const hasMatcher = takesMatcher && index > 1 && /^[@/*]/.test(line!.words[1]!.text);
		const usageLine = usage ?? directive?.usage ?? registryOf(dialect).options.get(name)?.usage;
		const position = index - 1 - (hasMatcher ? 1 : 0);
		const usageParts = usageLine === undefined ? [] : usageArguments(usageLine);
		const currentPart = usageParts[position] ?? usageParts.findLast(({ isRepeatable: repeats }) => repeats);
		for (const word of currentPart?.words ?? []) this.#add('value', word);
		const kinds = new Set(currentPart?.valueNames.map(value => value.replace(/^.*[-_ ]/, '')));
		if (values.has('status') || kinds.has('status')) this.#addStatuses();
		if (kinds.has('upstream')) this.#addUpstreams();
		if (kinds.has('method')) for (const method of METHODS) this.#add('value', method);
		if (kinds.has('field') || /^header_(?:up|down)$/.test(name)) this.#addFields(name);
		const isFile = ['file', 'path', 'certificate', 'key', 'folder'].some(kind => kinds.has(kind));
		if (values.has('file') || (isFile && dialect === 'configfile')) this.#addFiles(typed);
	}

	#addMatchers(): void {
		const { dialect } = this.#syntax;
		for (const name of registryOf(dialect).matchers.keys())
			this.#add('matcher', name, { manual: matcherManual(name, dialect) });
		this.#addNamedMatchers();
	}

	#addNamedMatchers(): void {
		const { enclosingLines } = this.#place;
		const { path, text } = this.#syntax;
		for (const { name, key, path: definingPath, line, start } of this.#definitions('matcher')) {
			const scope = /^matcher \S+ (.*) (\d+)$/.exec(key);
			const isVisible = scope
				? scope[1] === path && enclosingLines.some(({ block }) => block?.open.start === Number(scope[2]))
				: true;
			if (!isVisible || (definingPath === path && start > this.#range.start && start <= this.#range.end)) continue;
			const detail = definingPath === path ? shortLine(text.slice(line.span.start, line.span.end)) : undefined;
			this.#add('matcher', `@${name}`, detail === undefined ? {} : { detail });
		}
	}

	#addUpstreams(): void {
		for (const { name } of this.#definitions('upstream')) this.#add('upstream', `upstream://${name}`);
	}

	#addStatuses(): void {
		for (const [status, phrase] of Object.entries(STATUS_CODES)) this.#add('value', status, { detail: phrase });
	}

	#addFields(directive: string): void {
		const isRequest = /request|_up$/.test(directive);
		for (const field of isRequest ? REQUEST_FIELDS : RESPONSE_FIELDS) this.#add('field', field);
	}

	#completeImport(typed: string): readonly Completion[] {
		for (const { name, line } of this.#definitions('snippet'))
			this.#add('snippet', name, { detail: joinWords(line.words) });
		this.#addFiles(typed);
		return this.#completions;
	}

	#completeUse(snippet: string | undefined): readonly Completion[] {
		if (this.#place.index === 1) {
			for (const { name, line } of this.#definitions('snippet'))
				this.#add('snippet', name, { detail: joinWords(line.words) });
			return this.#completions;
		}
		const givenNames = new Set(this.#place.line!.words.slice(2).map(({ text }) => text.split('=')[0]));
		const definition = this.#definitions('snippet').find(({ name }) => name === snippet);
		for (const { text } of definition?.line.words.slice(1) ?? []) {
			const [name, value] = text.split(/=(.*)/s) as [string, string | undefined];
			if (givenNames.has(name) && this.#place.word?.text.split('=')[0] !== name) continue;
			this.#add('parameter', `${name}=`, { detail: value === undefined ? 'required' : `default: ${value}` });
		}
		return this.#completions;
	}

	#completeTest(index: number): readonly Completion[] {
		const firstWord = this.#place.line?.words[0]?.text;
		if (index === 0) {
			for (const method of METHODS) this.#add('keyword', method);
			for (const word of [...STEP_WORDS, 'cases']) this.#add('keyword', word);
		} else if (firstWord === 'expect' && index === 1) {
			for (const [word, { usage }] of Object.entries(EXPECTATIONS)) this.#add('keyword', word, { detail: usage });
		} else if (firstWord === 'upstream' && (index === 1 || index === 2)) {
			for (const behavior of UPSTREAM_BEHAVIORS) this.#add('keyword', behavior === 'times' ? 'times out' : behavior);
		} else if (firstWord === 'expect' && index === 2 && this.#place.line!.words[1]?.text === 'status')
			this.#addStatuses();
		else if (
			firstWord === 'header' ||
			(firstWord === 'expect' && this.#place.line!.words[1]?.text === 'header' && index === 2)
		)
			this.#addFields(firstWord === 'header' ? 'request' : 'response');
		return this.#completions;
	}

	/** Adds the files and subfolders of the folder in the typed path. */
	#addFiles(typed: string): void {
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

	#addPlaceholders(typed: string): void {
		const { dialect, text } = this.#syntax;
		const start = this.#offset - typed.length;
		const closingPart = /^[^{}\s]*\}/.exec(text.slice(this.#offset));
		const range = { start, end: this.#offset + (closingPart ? closingPart[0].length : 0) };
		const insertion = (name: string): { insert: string; snippet: boolean; range: TextRange } => {
			const isOpen = name.endsWith('*');
			return { insert: isOpen ? `${name.slice(0, -1)}$\{1:NAME}}` : `${name}}`, snippet: isOpen, range };
		};
		if (dialect === 'configfile') {
			for (const { name, line } of this.#definitions('let'))
				this.#add('let', `let.${name}`, {
					...insertion(`let.${name}`),
					detail: line.words
						.slice(2)
						.map(word => word.text)
						.join(' '),
				});
			const snippet = this.#place.enclosingLines[0]?.words;
			if (snippet?.[0]?.text.startsWith('(')) {
				for (const { text: parameter } of snippet.slice(1)) {
					const name = `param.${parameter.split('=')[0]}`;
					this.#add('parameter', name, insertion(name));
				}
			}
		}
		if (typed.startsWith('$')) return;
		for (const name of [...shorthandNames(), ...placeholders.map(placeholder => placeholder.name)])
			this.#add('placeholder', name, { manual: placeholderManual(name, dialect), ...insertion(name) });
	}
}

/** Returns the text that completes a name. For a line that needs a block, the block is included. */
function blockInsert(name: string, manual: Manual | undefined): { insert: string; snippet: boolean } {
	// A line with optional arguments is usually written without a block.
	const hasOptions = /\[(?!matcher\])/.test(manual?.usage?.split('{')[0] ?? '');
	const needsBlock =
		!hasOptions && manual?.usage !== undefined && /[^[] ?\{[^{}]*\}$/.test(manual.usage) && !manual.usage.endsWith(']');
	const takesArguments = manual?.usage?.includes('<') === true && !/^\S+ (?:\[matcher\] )?\{/.test(manual.usage);
	if (!needsBlock) return { insert: name, snippet: false };
	return { insert: takesArguments ? `${name} $1 {\n\t$0\n}` : `${name} {\n\t$0\n}`, snippet: true };
}

function joinWords(words: readonly { readonly text: string }[]): string {
	return words.map(({ text }) => text).join(' ');
}

function shortLine(text: string): string {
	return text.replace(/\s+/g, ' ').slice(0, 100);
}
