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
import { type ExpectedWords, expectedAt } from './probe.ts';
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

/** A word that may be written at an offset. */
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
	readonly #wordRange: TextRange;
	#namesAround: readonly NameUse[] | undefined;
	readonly #completions: Completion[] = [];
	readonly #addedLabels = new Set<string>();

	constructor(workspace: Workspace, syntax: TextSyntax, place: Place, offset: number) {
		this.#workspace = workspace;
		this.#syntax = syntax;
		this.#place = place;
		this.#offset = offset;
		const { word } = place;
		this.#wordRange =
			word && word.quote === 'none' ? { start: word.span.start, end: word.span.end } : { start: offset, end: offset };
	}

	complete(lineBefore: string): readonly Completion[] {
		const openBrace = /\{([^{}\s]*)$/.exec(lineBefore);
		if (openBrace && !lineBefore.endsWith('\\{')) {
			this.#addPlaceholders(openBrace[1]!);
			return this.#completions;
		}
		const { word, wordIndex, line, enclosingLines } = this.#place;
		if (word && word.quote !== 'none') return [];
		const firstWord = line?.words[0];
		const typedText = word ? this.#syntax.text.slice(word.span.start, this.#offset) : '';
		if (firstWord && wordIndex > 0 && firstWord.quote === 'none') {
			if (firstWord.text === 'import') return this.#completeImport(typedText);
			if (firstWord.text === 'use' && this.#syntax.dialect === 'configfile')
				return this.#completeUse(line!.words[1]?.text);
			if (firstWord.text === 'let' && this.#syntax.dialect === 'configfile') return this.#completions;
		}
		const topWord = enclosingLines[0]?.words[0];
		if (topWord?.text === 'test' && this.#syntax.dialect === 'configfile') return this.#completeTest(wordIndex);
		if (typedText.startsWith('upstream://')) {
			this.#addUpstreams();
			return this.#completions;
		}
		const expectedWords = expectedAt(this.#syntax, this.#place);
		if (wordIndex === 0) this.#completeLineStart(expectedWords);
		else this.#completeArgument(expectedWords, typedText);
		return this.#completions;
	}

	#addCompletion(
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
		if (this.#addedLabels.has(label)) return;
		this.#addedLabels.add(label);
		const { manual, detail = manual?.summary, insert = label, range = this.#wordRange, snippet } = details;
		this.#completions.push({
			...{ label, kind, detail, insert, range },
			...(snippet ? { isSnippet: snippet } : {}),
			documentation: manual && manualText(manual),
		});
	}

	#definitionsOf(kind: NameKind): readonly NameUse[] {
		this.#namesAround ??= namesAround(this.#workspace, this.#syntax.path);
		return this.#namesAround.filter(name => name.kind === kind && name.role === 'definition');
	}

	/** Completes the first word of a line. */
	#completeLineStart({ allowsDirective, lineWords, owner, topKind, allowsMatcher }: ExpectedWords): void {
		const { dialect } = this.#syntax;
		const { enclosingLines } = this.#place;
		if (enclosingLines.length === 0) this.#addTopLevelKeywords();
		if (topKind === 'options' && enclosingLines.length === 1) {
			for (const name of registryOf(dialect).options.keys())
				this.#addCompletion('option', name, {
					manual: optionManual(name, dialect),
					...nameInsertion(name, optionManual(name, dialect)),
				});
		}
		for (const word of lineWords) {
			const manual = subdirectiveManual(word, this.#outerManual(), undefined);
			this.#addCompletion('subdirective', word, { manual, ...(manual ? {} : { detail: `of \`${owner}\`` }) });
		}
		if (allowsDirective && enclosingLines.length > 0) this.#addDirectives();
		if (allowsMatcher) this.#addMatchers();
		if (enclosingLines.length > 0 && (lineWords.length > 0 || allowsDirective))
			this.#addInsertingKeywords(allowsDirective);
		const outerLine = enclosingLines.at(-1);
		if (!allowsDirective && outerLine && /^(?:header|request_header)$/.test(outerLine.words[0]?.text ?? ''))
			this.#addFields(outerLine.words[0]!.text);
	}

	#addTopLevelKeywords(): void {
		const { dialect, path } = this.#syntax;
		for (const word of ['import', 'let', 'upstream', 'test']) {
			const manual = keywordManual(word, dialect);
			if (!manual) continue;
			const upstreamInsert = word === 'upstream' ? 'upstream $1 {\n\tto $2\n}' : undefined;
			const testInsert = word === 'test' ? 'test "$1" {\n\tGET $2\n\texpect status $3\n}' : undefined;
			this.#addCompletion('keyword', word, {
				manual,
				insert: upstreamInsert ?? testInsert ?? `${word} `,
				snippet: (upstreamInsert ?? testInsert) !== undefined,
			});
		}
		// Sites may import this file, so its top-level lines may be directives.
		if (this.#workspace.rootsOf(path)[0] !== path || this.#syntax.lines.length === 0) this.#addDirectives();
	}

	#addDirectives(): void {
		const { dialect } = this.#syntax;
		for (const [name, { kind }] of registryOf(dialect).directives) {
			// Directives that change settings of the site are not allowed in nested blocks.
			if (kind === 'site' && this.#place.enclosingLines.length > 1) continue;
			const manual = directiveManual(name, dialect);
			this.#addCompletion('directive', name, { manual, ...nameInsertion(name, manual) });
		}
	}

	/** Adds `import` and the other keywords whose lines are replaced when a configuration is expanded. */
	#addInsertingKeywords(inSite: boolean): void {
		const { dialect } = this.#syntax;
		this.#addCompletion('keyword', 'import', { manual: keywordManual('import', dialect), insert: 'import ' });
		if (dialect === 'compatfile') return;
		this.#addCompletion('keyword', 'use', { manual: keywordManual('use', dialect), insert: 'use ' });
		if (inSite && this.#place.enclosingLines.length === 1)
			this.#addCompletion('keyword', 'let', { manual: keywordManual('let', dialect), insert: 'let ' });
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

	#completeArgument({ choices, values, allowsMatcher, usage, topKind }: ExpectedWords, typedText: string): void {
		const { line, wordIndex } = this.#place;
		const { dialect } = this.#syntax;
		const name = line!.words[0]!.text;
		if (allowsMatcher) {
			this.#addMatchers();
			if (dialect === 'configfile') for (const word of ['not', 'and', 'or']) this.#addCompletion('keyword', word);
		}
		for (const choice of choices) this.#addCompletion('value', choice);
		if (values.has('boolean')) for (const word of ['on', 'off']) this.#addCompletion('value', word);
		if (values.has('route')) for (const route of this.#definitionsOf('route')) this.#addCompletion('route', route.name);
		const directive = registryOf(dialect).directives.get(name);
		const isDirective = directive?.kind === 'handler' && topKind !== 'options';
		const takesMatcher = isDirective && directive.matcherToken !== 'none';
		if (wordIndex === 1 && takesMatcher) this.#addNamedMatchers();
		const hasMatcher = takesMatcher && wordIndex > 1 && /^[@/*]/.test(line!.words[1]!.text);
		const usageLine = usage ?? directive?.usage ?? registryOf(dialect).options.get(name)?.usage;
		const argumentIndex = wordIndex - 1 - (hasMatcher ? 1 : 0);
		const usageParts = usageLine === undefined ? [] : usageArguments(usageLine);
		const currentPart = usageParts[argumentIndex] ?? usageParts.findLast(({ isRepeatable }) => isRepeatable);
		for (const word of currentPart?.words ?? []) this.#addCompletion('value', word);
		const valueKinds = new Set(currentPart?.valueNames.map(value => value.replace(/^.*[-_ ]/, '')));
		if (values.has('status') || valueKinds.has('status')) this.#addStatuses();
		if (valueKinds.has('upstream')) this.#addUpstreams();
		if (valueKinds.has('method')) for (const method of METHODS) this.#addCompletion('value', method);
		if (valueKinds.has('field') || /^header_(?:up|down)$/.test(name)) this.#addFields(name);
		const isFile = ['file', 'path', 'certificate', 'key', 'folder'].some(kind => valueKinds.has(kind));
		if (values.has('file') || (isFile && dialect === 'configfile')) this.#addFiles(typedText);
	}

	#addMatchers(): void {
		const { dialect } = this.#syntax;
		for (const name of registryOf(dialect).matchers.keys())
			this.#addCompletion('matcher', name, { manual: matcherManual(name, dialect) });
		this.#addNamedMatchers();
	}

	#addNamedMatchers(): void {
		const { enclosingLines } = this.#place;
		const { path, text } = this.#syntax;
		for (const { name, key, path: definingPath, line, start } of this.#definitionsOf('matcher')) {
			const scope = /^matcher \S+ (.*) (\d+)$/.exec(key);
			const isVisible = scope
				? scope[1] === path && enclosingLines.some(({ block }) => block?.open.start === Number(scope[2]))
				: true;
			if (!isVisible || (definingPath === path && start > this.#wordRange.start && start <= this.#wordRange.end))
				continue;
			const detail = definingPath === path ? shortLine(text.slice(line.span.start, line.span.end)) : undefined;
			this.#addCompletion('matcher', `@${name}`, detail === undefined ? {} : { detail });
		}
	}

	#addUpstreams(): void {
		for (const { name } of this.#definitionsOf('upstream')) this.#addCompletion('upstream', `upstream://${name}`);
	}

	#addStatuses(): void {
		for (const [status, phrase] of Object.entries(STATUS_CODES))
			this.#addCompletion('value', status, { detail: phrase });
	}

	#addFields(directive: string): void {
		const isRequest = /request|_up$/.test(directive);
		for (const field of isRequest ? REQUEST_FIELDS : RESPONSE_FIELDS) this.#addCompletion('field', field);
	}

	#completeImport(typedText: string): readonly Completion[] {
		for (const { name, line } of this.#definitionsOf('snippet'))
			this.#addCompletion('snippet', name, { detail: joinWords(line.words) });
		this.#addFiles(typedText);
		return this.#completions;
	}

	#completeUse(snippet: string | undefined): readonly Completion[] {
		if (this.#place.wordIndex === 1) {
			for (const { name, line } of this.#definitionsOf('snippet'))
				this.#addCompletion('snippet', name, { detail: joinWords(line.words) });
			return this.#completions;
		}
		const givenNames = new Set(this.#place.line!.words.slice(2).map(({ text }) => text.split('=')[0]));
		const definition = this.#definitionsOf('snippet').find(({ name }) => name === snippet);
		for (const { text } of definition?.line.words.slice(1) ?? []) {
			const [name, value] = text.split(/=(.*)/s) as [string, string | undefined];
			if (givenNames.has(name) && this.#place.word?.text.split('=')[0] !== name) continue;
			this.#addCompletion('parameter', `${name}=`, { detail: value === undefined ? 'required' : `default: ${value}` });
		}
		return this.#completions;
	}

	#completeTest(index: number): readonly Completion[] {
		const firstWord = this.#place.line?.words[0]?.text;
		if (index === 0) {
			for (const method of METHODS) this.#addCompletion('keyword', method);
			for (const word of [...STEP_WORDS, 'cases']) this.#addCompletion('keyword', word);
		} else if (firstWord === 'expect' && index === 1) {
			for (const [word, { usage }] of Object.entries(EXPECTATIONS))
				this.#addCompletion('keyword', word, { detail: usage });
		} else if (firstWord === 'upstream' && (index === 1 || index === 2)) {
			for (const behavior of UPSTREAM_BEHAVIORS)
				this.#addCompletion('keyword', behavior === 'times' ? 'times out' : behavior);
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
	#addFiles(typedText: string): void {
		const nameStart = typedText.lastIndexOf('/') + 1;
		if (/[{}*]/.test(typedText)) return;
		const folder = typedText.startsWith('/')
			? typedText.slice(0, nameStart)
			: join(dirname(this.#syntax.path), typedText.slice(0, nameStart));
		const range = { start: this.#wordRange.start + nameStart, end: this.#wordRange.end };
		let fileNames: readonly string[];
		try {
			fileNames = this.#workspace.reader.list(folder);
		} catch (error) {
			if (error instanceof ReadError) return;
			throw error;
		}
		for (const name of fileNames) {
			if (name.startsWith('.') || /\s/.test(name)) continue;
			const path = join(folder, name);
			const kind = this.#workspace.reader.kind(path);
			if (kind === 'directory') this.#addCompletion('folder', `${name}/`, { range });
			else if (kind === 'file' && path !== this.#syntax.path) this.#addCompletion('file', name, { range });
		}
	}

	#addPlaceholders(typedText: string): void {
		const { dialect, text } = this.#syntax;
		const start = this.#offset - typedText.length;
		const closingPart = /^[^{}\s]*\}/.exec(text.slice(this.#offset));
		const range = { start, end: this.#offset + (closingPart ? closingPart[0].length : 0) };
		const insertionOf = (name: string): { insert: string; snippet: boolean; range: TextRange } => {
			const hasWildcard = name.endsWith('*');
			return { insert: hasWildcard ? `${name.slice(0, -1)}$\{1:NAME}}` : `${name}}`, snippet: hasWildcard, range };
		};
		if (dialect === 'configfile') {
			for (const { name, line } of this.#definitionsOf('let'))
				this.#addCompletion('let', `let.${name}`, {
					...insertionOf(`let.${name}`),
					detail: line.words
						.slice(2)
						.map(word => word.text)
						.join(' '),
				});
			const snippetWords = this.#place.enclosingLines[0]?.words;
			if (snippetWords?.[0]?.text.startsWith('(')) {
				for (const { text: parameter } of snippetWords.slice(1)) {
					const name = `param.${parameter.split('=')[0]}`;
					this.#addCompletion('parameter', name, insertionOf(name));
				}
			}
		}
		if (typedText.startsWith('$')) return;
		for (const name of [...shorthandNames(), ...placeholders.map(placeholder => placeholder.name)])
			this.#addCompletion('placeholder', name, { manual: placeholderManual(name, dialect), ...insertionOf(name) });
	}
}

/** Returns the text that completes a name. For a line that needs a block, the block is included. */
function nameInsertion(name: string, manual: Manual | undefined): { insert: string; snippet: boolean } {
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
