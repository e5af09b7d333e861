/** Lists the `test` blocks of configurations in the editor's test explorer, and runs them. */
import * as vscode from 'vscode';
import type { DocumentSymbol, Location } from 'vscode-languageclient';
import type { LanguageClient } from 'vscode-languageclient/node';

/** The server's answer after it has run a test. */
interface TestResult {
	readonly passed: boolean;
	readonly text: string;
	readonly location?: Location;
}

/** The kind of symbol that the server gives to tests: SymbolKind.Event of LSP. */
const TEST_SYMBOL_KIND = 24;
const TEST_FILES_PATTERN = '**/{Configfile,*.configfile}';
/** Milliseconds without typing after which tests are listed. */
const LISTING_DEBOUNCE_MS = 400;

/** The tests of all configurations of a workspace. */
export class TestExplorer {
	readonly #client: LanguageClient;
	readonly #controller = vscode.tests.createTestController('svc', 'svc');
	readonly #disposables: vscode.Disposable[];
	readonly #listingTimersById = new Map<string, NodeJS.Timeout>();

	constructor(client: LanguageClient, languages: readonly string[]) {
		this.#client = client;
		const { workspace } = vscode;
		const onChange = (document: vscode.TextDocument): void => {
			if (languages.includes(document.languageId)) this.#scheduleListing(document);
		};
		this.#controller.resolveHandler = async item => {
			if (!item)
				for (const uri of await workspace.findFiles(TEST_FILES_PATTERN, '**/node_modules/**'))
					this.#findOrCreateFileItem(uri);
			else if (item.uri) await this.#listTests(await workspace.openTextDocument(item.uri));
		};
		this.#controller.refreshHandler = () => this.#controller.resolveHandler?.(undefined);
		const handleRun = (request: vscode.TestRunRequest, token: vscode.CancellationToken): Promise<void> =>
			this.#run(request, token);
		this.#disposables = [
			this.#controller,
			this.#controller.createRunProfile('Run', vscode.TestRunProfileKind.Run, handleRun, true),
			workspace.onDidOpenTextDocument(onChange),
			workspace.onDidChangeTextDocument(({ document }) => onChange(document)),
		];
		for (const document of workspace.textDocuments) onChange(document);
	}

	#findOrCreateFileItem(uri: vscode.Uri): vscode.TestItem {
		const id = uri.toString();
		const existing = this.#controller.items.get(id);
		if (existing) return existing;
		const item = this.#controller.createTestItem(id, vscode.workspace.asRelativePath(uri), uri);
		item.canResolveChildren = true;
		this.#controller.items.add(item);
		return item;
	}

	#scheduleListing(document: vscode.TextDocument): void {
		const id = document.uri.toString();
		clearTimeout(this.#listingTimersById.get(id));
		this.#listingTimersById.set(
			id,
			setTimeout(() => void this.#listTests(document), LISTING_DEBOUNCE_MS),
		);
	}

	async #listTests(document: vscode.TextDocument): Promise<void> {
		const { uri } = document;
		const params = { textDocument: { uri: uri.toString() } };
		if (!this.#client.isRunning()) return;
		const symbols = await this.#client.sendRequest<DocumentSymbol[] | null>('textDocument/documentSymbol', params);
		const testSymbols = (symbols ?? []).filter(({ kind }) => kind === TEST_SYMBOL_KIND);
		if (testSymbols.length === 0) return this.#controller.items.delete(uri.toString());
		const fileItem = this.#findOrCreateFileItem(uri);
		fileItem.children.replace(
			testSymbols.map(({ name, range }) => {
				const item = this.#controller.createTestItem(`${fileItem.id}#${name}`, name, uri);
				item.range = this.#client.protocol2CodeConverter.asRange(range);
				return item;
			}),
		);
	}

	async #run(request: vscode.TestRunRequest, token: vscode.CancellationToken): Promise<void> {
		const run = this.#controller.createTestRun(request);
		const excludedItems = new Set(request.exclude);
		const testItems: vscode.TestItem[] = [];
		const collectTests = async (item: vscode.TestItem): Promise<void> => {
			if (excludedItems.has(item)) return;
			if (!item.canResolveChildren) return void testItems.push(item);
			if (item.children.size === 0) await this.#controller.resolveHandler?.(item);
			for (const [, child] of item.children) await collectTests(child);
		};
		try {
			if (request.include) for (const item of request.include) await collectTests(item);
			else for (const [, item] of this.#controller.items) await collectTests(item);
			for (const item of testItems) run.enqueued(item);
			for (const item of testItems) {
				if (token.isCancellationRequested) run.skipped(item);
				else await this.#runTest(run, item);
			}
		} finally {
			run.end();
		}
	}

	async #runTest(run: vscode.TestRun, item: vscode.TestItem): Promise<void> {
		run.started(item);
		const startedAt = performance.now();
		const elapsedMs = (): number => performance.now() - startedAt;
		try {
			const { passed, text, location } = await this.#client.sendRequest<TestResult>('workspace/executeCommand', {
				command: 'svc.runTest',
				arguments: [item.uri!.toString(), item.label, true],
			});
			run.appendOutput(`${text.replaceAll('\n', '\r\n')}\r\n`, undefined, item);
			if (passed) return run.passed(item, elapsedMs());
			const message = new vscode.TestMessage(text);
			if (location) message.location = this.#client.protocol2CodeConverter.asLocation(location);
			run.failed(item, message, elapsedMs());
		} catch (error) {
			// The configuration does not compile, or the test is gone.
			run.errored(item, new vscode.TestMessage(error instanceof Error ? error.message : String(error)), elapsedMs());
		}
	}

	dispose(): void {
		for (const timer of this.#listingTimersById.values()) clearTimeout(timer);
		for (const disposable of this.#disposables) disposable.dispose();
	}
}
