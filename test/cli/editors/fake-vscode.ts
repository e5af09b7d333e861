/**
 * A fake of the Visual Studio Code API, limited to the parts that the extension and its language client use. It has no
 * user interface. It records what the extension registers, so that a test can open documents, call the providers, and
 * read what was shown.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import vm from 'node:vm';
import { TextDocument } from 'vscode-languageserver-textdocument';
import { ROOT } from '../../harness.ts';

type Listener = (event: unknown) => unknown;

class EventEmitter {
	readonly listeners = new Set<Listener>();
	event = (listener: Listener, self?: unknown): Disposable => {
		const bound = self === undefined ? listener : listener.bind(self);
		this.listeners.add(bound);
		return new Disposable(() => this.listeners.delete(bound));
	};
	fire(event: unknown): void {
		for (const listener of [...this.listeners]) listener(event);
	}
	dispose(): void {
		this.listeners.clear();
	}
}

class Disposable {
	readonly dispose: () => unknown;
	constructor(dispose: () => unknown) {
		this.dispose = dispose;
	}
	static from(...all: { dispose(): unknown }[]): Disposable {
		return new Disposable(() => all.forEach(one => void one.dispose()));
	}
}

class Uri {
	readonly #url: URL;
	constructor(text: string) {
		this.#url = new URL(text);
	}
	static parse = (text: string): Uri => new Uri(text);
	static file = (file: string): Uri => new Uri(pathToFileURL(file).href);
	get scheme(): string {
		return this.#url.protocol.slice(0, -1);
	}
	get path(): string {
		return decodeURIComponent(this.#url.pathname);
	}
	get fsPath(): string {
		return fileURLToPath(this.#url);
	}
	toString(): string {
		return this.#url.href;
	}
}

class Position {
	readonly line: number;
	readonly character: number;
	constructor(line: number, character: number) {
		this.line = line;
		this.character = character;
	}
}

class Range {
	readonly start: Position;
	readonly end: Position;
	constructor(...given: [Position, Position] | [number, number, number, number]) {
		const [a, b, c, d] = given;
		this.start = typeof a === 'number' ? new Position(a, b as number) : a;
		this.end = typeof a === 'number' ? new Position(c!, d!) : (b as Position);
	}
}

/** A document that the editor has open, in the form that the API gives to extensions. */
export interface FakeDocument {
	readonly uri: Uri;
	readonly languageId: string;
	readonly version: number;
	getText(): string;
	offsetAt(position: Position): number;
	positionAt(offset: number): Position;
}

/** A test item of the test explorer. */
export interface FakeItem {
	readonly id: string;
	readonly label: string;
	readonly uri: Uri;
	range?: Range;
	canResolveChildren: boolean;
	readonly children: FakeItems;
}

/** A collection of test items. */
export class FakeItems {
	readonly #items = new Map<string, FakeItem>();
	get size(): number {
		return this.#items.size;
	}
	get = (id: string): FakeItem | undefined => this.#items.get(id);
	add = (item: FakeItem): unknown => this.#items.set(item.id, item);
	delete = (id: string): unknown => this.#items.delete(id);
	replace(items: readonly FakeItem[]): void {
		this.#items.clear();
		for (const item of items) this.add(item);
	}
	[Symbol.iterator](): Iterator<[string, FakeItem]> {
		return this.#items[Symbol.iterator]();
	}
}

/** A diagnostic, reduced to the properties that tests read. */
export interface FakeDiagnostic {
	readonly range: Range;
	readonly message: string;
	readonly code: { readonly value: string } | string;
}

type Provider = { readonly [method: string]: (...args: unknown[]) => unknown };

/** A cancellation token that is never canceled. */
export const NEVER_CANCELED = {
	isCancellationRequested: false,
	onCancellationRequested: () => new Disposable(() => {}),
};

/** Returns an empty class for every class and enumeration of the real API, so that the extension can refer to all of them. */
function unknownClasses(): { [name: string]: unknown } {
	const types = readFileSync(path.join(ROOT, 'node_modules/@types/vscode/index.d.ts'), 'utf8');
	const names = [...types.matchAll(/^\texport (?:abstract )?(?:class|enum) (\w+)/gm)].map(([, name]) => name!);
	return Object.fromEntries(names.map(name => [name, class {}]));
}

/** One editor window with an open folder. */
export class FakeEditor {
	readonly folder: string;
	/** The settings of the section `svc`, by their names without the prefix `svc.`. */
	readonly settings: { [name: string]: unknown };
	readonly commands = new Map<string, (...args: unknown[]) => unknown>();
	readonly providers = new Map<string, Provider>();
	readonly diagnostics = new Map<string, readonly FakeDiagnostic[]>();
	/** Messages that were shown to the user. */
	readonly shown: string[] = [];
	/** The text in each output channel. */
	readonly output = new Map<string, string>();
	/** The text that the user enters in the next input box; undefined to cancel it. */
	entered: string | undefined;
	/** The initial value of the last input box. */
	proposed: string | undefined;
	/** The results of all test runs. */
	readonly results: {
		readonly state: string;
		readonly label: string;
		readonly message?: string;
		readonly line?: number;
	}[] = [];
	/** Edits requested by the server. */
	readonly applied: WorkspaceEdit[] = [];
	readonly tests = new FakeItems();
	runTests: ((request: object, token: object) => Promise<void>) | undefined;
	taskProvider: { provideTasks(): readonly FakeTask[] } | undefined;
	readonly #documents: TextDocument[] = [];
	readonly #events = new Map<string, EventEmitter>();
	readonly #subscriptions: { dispose(): unknown }[] = [];
	/** Called whenever diagnostics or test items may have changed. */
	readonly changed = new EventEmitter();

	constructor(folder: string, settings: { [name: string]: unknown }) {
		this.folder = folder;
		this.settings = settings;
	}

	/** Loads and activates an extension's bundle. */
	async activate(main: string): Promise<void> {
		const require = createRequire(main);
		const api = this.#api();
		const load = (name: string): unknown => (name === 'vscode' ? api : require(name));
		const module = { exports: {} as { activate(context: object): Promise<void> } };
		const run = vm.compileFunction(readFileSync(main, 'utf8'), ['require', 'module', 'exports'], { filename: main });
		run(load, module, module.exports);
		await module.exports.activate({ subscriptions: this.#subscriptions });
	}

	async deactivate(): Promise<void> {
		for (const one of this.#subscriptions.splice(0)) await one.dispose();
	}

	/** Opens a document with the given text. */
	open(file: string, languageId: string, text: string): FakeDocument {
		const document = TextDocument.create(pathToFileURL(path.join(this.folder, file)).href, languageId, 1, text);
		this.#documents.push(document);
		const view = this.#view(document);
		this.#event('workspace.onDidOpenTextDocument').fire(view);
		return view;
	}

	/** Replaces a part of an open document. */
	edit(file: string, before: string, after: string): void {
		const document = this.#documents.find(({ uri }) => uri.endsWith(`/${file}`))!;
		const start = document.getText().indexOf(before);
		const range = new Range(
			document.positionAt(start) as Position,
			document.positionAt(start + before.length) as Position,
		);
		TextDocument.update(document, [{ range, text: after }], document.version + 1);
		const contentChanges = [{ range, rangeOffset: start, rangeLength: before.length, text: after }];
		this.#event('workspace.onDidChangeTextDocument').fire({ document: this.#view(document), contentChanges });
	}

	/** Calls a method of the provider of a feature, such as `Hover`. */
	async ask<T>(feature: string, method: string, ...args: readonly unknown[]): Promise<T> {
		return (await this.providers.get(feature)![method]!(...args, NEVER_CANCELED)) as T;
	}

	/** Runs the given tests, or all tests if none are given. */
	async run(include?: readonly FakeItem[]): Promise<void> {
		await this.runTests!({ include }, NEVER_CANCELED);
	}

	#view(document: TextDocument): FakeDocument {
		return {
			uri: Uri.parse(document.uri),
			...{ fileName: fileURLToPath(document.uri), isClosed: false, isDirty: false, eol: 1, isUntitled: false },
			languageId: document.languageId,
			version: document.version,
			getText: () => document.getText(),
			offsetAt: position => document.offsetAt(position),
			positionAt: offset => document.positionAt(offset) as Position,
		} as FakeDocument;
	}

	#event(name: string): EventEmitter {
		let event = this.#events.get(name);
		if (!event) {
			event = new EventEmitter();
			this.#events.set(name, event);
		}
		return event;
	}

	/**
	 * Returns an object with the given members. Missing members are created on access, as events (`onDid…`) or as functions that
	 * register providers.
	 */
	#open(namespace: string, members: { [name: string]: unknown }): object {
		return new Proxy(members, {
			get: (_, name) => {
				if (typeof name !== 'string' || name in members) return members[name as string];
				if (/^on(Did|Will)/.test(name)) return this.#event(`${namespace}.${name}`).event;
				const feature = /^register(\w+?)Provider$/.exec(name)?.[1];
				if (feature !== undefined)
					return (_selector: unknown, provider: Provider) => {
						this.providers.set(feature, provider);
						return new Disposable(() => this.providers.delete(feature));
					};
				return members[name];
			},
		});
	}

	#api(): object {
		const folderUri = Uri.file(this.folder);
		const workspaceFolder = { uri: folderUri, name: 'workspace', index: 0 };
		const editor = this;
		const message = (text: string): Promise<undefined> => {
			this.shown.push(text);
			this.changed.fire(undefined);
			return Promise.resolve(undefined);
		};
		const nothing = (): Disposable => new Disposable(() => {});
		const setting = (section: string | undefined) => ({
			get: (name: string, otherwise?: unknown) =>
				(section === 'svc' ? this.settings[name] : undefined) ?? otherwise ?? undefined,
			has: () => false,
			inspect: () => undefined,
		});
		return {
			...unknownClasses(),
			...{ EventEmitter, Disposable, Uri, Position, Range, version: '1.140.0' },
			...{
				CancellationTokenSource,
				CancellationError,
				Hover,
				Diagnostic,
				Location,
				TextEdit,
				CodeAction,
				CodeActionKind,
			},
			...{
				CodeLens,
				CompletionItem,
				Task,
				ProcessExecution,
				TestMessage,
				DocumentSymbol,
				WorkspaceEdit,
				MarkdownString,
			},
			DiagnosticSeverity: { Error: 0, Warning: 1, Information: 2, Hint: 3 },
			DiagnosticTag: { Unnecessary: 1, Deprecated: 2 },
			LogLevel: { Off: 0, Trace: 1, Debug: 2, Info: 3, Warning: 4, Error: 5 },
			TestRunProfileKind: { Run: 1 },
			TaskGroup: { Test: 'test', Build: 'build' },
			env: { language: 'en', appName: 'fake' },
			commands: {
				registerCommand: (name: string, run: (...args: unknown[]) => unknown) => {
					if (this.commands.has(name)) throw new Error(`command ${name} is registered already`);
					this.commands.set(name, run);
					return new Disposable(() => this.commands.delete(name));
				},
				executeCommand: (name: string, ...args: unknown[]) => this.commands.get(name)?.(...args),
			},
			languages: this.#open('languages', {
				match: (selector: readonly { language: string }[] | { language: string }, document: FakeDocument) =>
					[selector].flat().some(({ language }) => language === document.languageId) ? 10 : 0,
				createDiagnosticCollection: () => ({
					set: (uri: Uri, list: readonly FakeDiagnostic[]) => {
						this.diagnostics.set(uri.toString(), list);
						this.changed.fire(undefined);
					},
					delete: (uri: Uri) => this.diagnostics.delete(uri.toString()),
					clear: () => this.diagnostics.clear(),
					dispose: () => this.diagnostics.clear(),
				}),
			}),
			tasks: {
				registerTaskProvider: (_: string, provider: { provideTasks(): readonly FakeTask[] }) => {
					this.taskProvider = provider;
					return nothing();
				},
				executeTask: (task: FakeTask) => this.shown.push(`task ${task.name}`),
			},
			tests: { createTestController: () => this.#controller() },
			workspace: this.#open('workspace', {
				get textDocuments() {
					return editor.#documents.map(document => editor.#view(document));
				},
				...{ workspaceFolders: [workspaceFolder], notebookDocuments: [] },
				getWorkspaceFolder: () => workspaceFolder,
				getConfiguration: setting,
				createFileSystemWatcher: () => ({
					...{ onDidCreate: nothing, onDidChange: nothing, onDidDelete: nothing, dispose: () => {} },
				}),
				applyEdit: (edit: WorkspaceEdit) => {
					this.applied.push(edit);
					return Promise.resolve(true);
				},
				asRelativePath: (uri: Uri) => path.relative(this.folder, uri.fsPath),
				findFiles: () => Promise.resolve(this.#documents.map(({ uri }) => Uri.parse(uri))),
				openTextDocument: (uri: Uri) =>
					Promise.resolve(this.#view(this.#documents.find(one => one.uri === uri.toString())!)),
			}),
			window: this.#open('window', {
				get activeTextEditor() {
					const document = editor.#documents[0];
					return document && { document: editor.#view(document) };
				},
				...{ visibleTextEditors: [], tabGroups: { all: [], ...{ onDidChangeTabs: nothing } } },
				...{ showErrorMessage: message, showInformationMessage: message, showWarningMessage: message },
				showInputBox: ({ value }: { value: string }) => {
					this.proposed = value;
					return Promise.resolve(this.entered);
				},
				withProgress: (_: unknown, run: (progress: object, token: object) => unknown) =>
					run({ report: () => {} }, NEVER_CANCELED),
				createOutputChannel: (name: string) => {
					const add = (text: unknown): void => void this.output.set(name, `${this.output.get(name) ?? ''}${text}\n`);
					return {
						...{ name, logLevel: 3, onDidChangeLogLevel: nothing, append: add, appendLine: add },
						...{ trace: add, debug: add, info: add, warn: add, error: add },
						...{ show: () => {}, hide: () => {}, clear: () => {}, dispose: () => {} },
						replace: (text: string) => this.output.set(name, text),
					};
				},
			}),
		};
	}

	#controller(): object {
		const note =
			(state: string) =>
			(item: FakeItem, test?: unknown): void => {
				const { message, location } = (test ?? {}) as { message?: string; location?: { range: Range } };
				this.results.push({
					...{ state, label: item.label },
					...(message === undefined ? {} : { message }),
					...(location ? { line: location.range.start.line } : {}),
				});
			};
		return {
			items: this.tests,
			createTestItem: (id: string, label: string, uri: Uri): FakeItem => ({
				...{ id, label, uri, canResolveChildren: false, children: new FakeItems() },
			}),
			createRunProfile: (_name: string, _kind: number, run: (request: object, token: object) => Promise<void>) => {
				this.runTests = run;
				return new Disposable(() => {});
			},
			createTestRun: () => ({
				...{ enqueued: () => {}, started: () => {}, appendOutput: () => {}, end: () => {} },
				...{ passed: note('passed'), failed: note('failed'), errored: note('errored'), skipped: note('skipped') },
			}),
			dispose: () => this.tests.replace([]),
		};
	}
}

/** A task that the extension offers. */
export interface FakeTask {
	readonly name: string;
	readonly execution: {
		readonly process: string;
		readonly args: readonly string[];
		readonly options: { readonly cwd: string };
	};
	readonly matchers: readonly string[];
}

class CancellationTokenSource {
	token = NEVER_CANCELED;
	cancel(): void {}
	dispose(): void {}
}
class CancellationError extends Error {}
class Hover {
	contents: unknown;
	constructor(contents: unknown) {
		this.contents = contents;
	}
}
class MarkdownString {
	value: string;
	constructor(value: string = '') {
		this.value = value;
	}
}
class Diagnostic {
	range: Range;
	message: string;
	severity: number;
	constructor(range: Range, message: string, severity: number) {
		this.range = range;
		this.message = message;
		this.severity = severity;
	}
}
class Location {
	uri: Uri;
	range: Range;
	constructor(uri: Uri, range: Range) {
		this.uri = uri;
		this.range = range;
	}
}
class TextEdit {
	range: Range;
	newText: string;
	constructor(range: Range, newText: string) {
		this.range = range;
		this.newText = newText;
	}
}
class WorkspaceEdit {
	readonly edits: { readonly uri: Uri; readonly edits: readonly TextEdit[] }[] = [];
	readonly created: Uri[] = [];
	createFile(uri: Uri): void {
		this.created.push(uri);
	}
	set(uri: Uri, edits: readonly (TextEdit | [TextEdit, unknown])[]): void {
		this.edits.push({ uri, edits: edits.map(edit => (Array.isArray(edit) ? edit[0] : edit)) });
	}
}
class CodeActionKind {
	static readonly Empty = new CodeActionKind('');
	static readonly QuickFix = new CodeActionKind('quickfix');
	static readonly Refactor = new CodeActionKind('refactor');
	static readonly RefactorExtract = new CodeActionKind('refactor.extract');
	static readonly RefactorInline = new CodeActionKind('refactor.inline');
	static readonly RefactorRewrite = new CodeActionKind('refactor.rewrite');
	static readonly Source = new CodeActionKind('source');
	static readonly SourceOrganizeImports = new CodeActionKind('source.organizeImports');
	readonly value: string;
	constructor(value: string) {
		this.value = value;
	}
	append(part: string): CodeActionKind {
		return new CodeActionKind(this.value === '' ? part : `${this.value}.${part}`);
	}
}
class CodeAction {
	title: string;
	constructor(title: string) {
		this.title = title;
	}
}
class CodeLens {
	range: Range;
	constructor(range: Range) {
		this.range = range;
	}
}
class CompletionItem {
	label: string;
	constructor(label: string) {
		this.label = label;
	}
}
class DocumentSymbol {
	name: string;
	constructor(name: string) {
		this.name = name;
	}
}
class TestMessage {
	message: string;
	constructor(message: string) {
		this.message = message;
	}
}
class ProcessExecution {
	process: string;
	args: readonly string[];
	options: object;
	constructor(process: string, args: readonly string[], options: object) {
		this.process = process;
		this.args = args;
		this.options = options;
	}
}
class Task {
	name: string;
	execution: unknown;
	matchers: unknown;
	constructor(
		_definition: unknown,
		_scope: unknown,
		name: string,
		_source: string,
		execution: unknown,
		matchers: unknown,
	) {
		this.name = name;
		this.execution = execution;
		this.matchers = matchers;
	}
}
