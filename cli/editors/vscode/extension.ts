/** The extension of Visual Studio Code: starts `svc language-server`, and adds commands, a task and the test explorer. */
import { homedir } from 'node:os';
import * as vscode from 'vscode';
import { LanguageClient } from 'vscode-languageclient/node';
import { findBinary, programFolders } from './find-binary.ts';
import { TestExplorer } from './test-explorer.ts';

/** IDs of the languages for which the language server is used. */
const LANGUAGE_IDS = ['configfile', 'caddyfile'];
const EXPLAIN_COMMAND = 'svc.explainRequest';

/** Starts the extension. Called by the editor when a configuration is opened. */
export async function activate(context: vscode.ExtensionContext): Promise<void> {
	const extension = new Extension();
	context.subscriptions.push(extension);
	await extension.start();
}

class Extension {
	readonly #log = vscode.window.createOutputChannel('svc', { log: true });
	readonly #traces = vscode.window.createOutputChannel('svc: Explained Requests');
	readonly #disposables: vscode.Disposable[] = [this.#log, this.#traces];
	#client: LanguageClient | undefined;
	#testExplorer: TestExplorer | undefined;
	#binaryPath: string | undefined;
	/** Settles when the most recent start or stop has finished. Each operation waits for the previous one. */
	#lastOperation: Promise<void> = Promise.resolve();

	constructor() {
		const { registerCommand } = vscode.commands;
		this.#disposables.push(
			registerCommand('svc.restart', () => this.start()),
			registerCommand('svc.showLog', () => this.#log.show()),
			registerCommand('svc.validate', () => this.#validate()),
			vscode.tasks.registerTaskProvider('svc', {
				provideTasks: () => (vscode.workspace.workspaceFolders ?? []).map(folder => this.#createTask(folder)),
				resolveTask: task => {
					const { scope } = task;
					return typeof scope === 'object' ? this.#createTask(scope, task.definition) : undefined;
				},
			}),
			vscode.workspace.onDidChangeConfiguration(event => {
				if (event.affectsConfiguration('svc.path') || event.affectsConfiguration('svc.testExplorer')) void this.start();
			}),
		);
	}

	/** Starts the language server. If it is running, stops it first. */
	start(): Promise<void> {
		this.#lastOperation = this.#lastOperation.then(async () => {
			await this.#stop();
			try {
				await this.#startClient();
			} catch (error) {
				const reason = error instanceof Error ? error.message : String(error);
				await this.#showProblem(`The language server of svc did not start: ${reason}`);
			}
		});
		return this.#lastOperation;
	}

	async #startClient(): Promise<void> {
		const settings = vscode.workspace.getConfiguration('svc');
		const searchResult = await findBinary({
			pathSetting: settings.get<string>('path', '').trim(),
			home: homedir(),
			folders: programFolders(process.env.PATH ?? '', homedir()),
		});
		if ('problem' in searchResult) return this.#showProblem(searchResult.problem);
		this.#binaryPath = searchResult.path;
		this.#log.info(`starting ${searchResult.path}`);
		const client = new LanguageClient(
			'svc',
			'svc',
			{ command: searchResult.path, args: ['language-server'] },
			{
				documentSelector: LANGUAGE_IDS.map(language => ({ language })),
				outputChannel: this.#log,
				middleware: {
					executeCommand: (command, args, next) => {
						// A command from the palette has no arguments, and refers to the document in the active editor.
						const commandArguments = args.length > 0 ? args : [vscode.window.activeTextEditor?.document.uri.toString()];
						return command === EXPLAIN_COMMAND
							? this.#explain(commandArguments, fullArguments => next(command, fullArguments))
							: next(command, commandArguments);
					},
				},
			},
		);
		this.#client = client;
		await client.start();
		if (settings.get('testExplorer.enabled', true)) this.#testExplorer = new TestExplorer(client, LANGUAGE_IDS);
	}

	async #stop(): Promise<void> {
		const client = this.#client;
		this.#client = undefined;
		this.#testExplorer?.dispose();
		this.#testExplorer = undefined;
		await client?.dispose();
	}

	/** Asks the user for a request, and shows its trace. */
	async #explain(commandArguments: readonly unknown[], executeCommand: (args: unknown[]) => unknown): Promise<void> {
		const [uri, exampleUrl = 'https://example.com/'] = commandArguments as readonly [string?, string?];
		if (uri === undefined) return;
		const request = await vscode.window.showInputBox({
			title: 'Explain a request',
			prompt: 'A URL, after a method if it is not GET',
			value: exampleUrl,
		});
		if (request === undefined) return;
		const answer = (await executeCommand([uri, request, true])) as { readonly text: string } | undefined;
		if (!answer) return;
		this.#traces.replace(answer.text);
		this.#traces.show(true);
	}

	async #validate(): Promise<void> {
		const activeUri = vscode.window.activeTextEditor?.document.uri;
		const folder =
			(activeUri && vscode.workspace.getWorkspaceFolder(activeUri)) ?? vscode.workspace.workspaceFolders?.[0];
		if (folder) await vscode.tasks.executeTask(this.#createTask(folder));
	}

	#createTask(
		folder: vscode.WorkspaceFolder,
		definition: vscode.TaskDefinition = { type: 'svc', command: 'validate' },
	): vscode.Task {
		const command = definition.command === 'test' ? 'test' : 'validate';
		const options = command === 'test' ? [] : ['--lint', '--format', 'unix'];
		const pathArguments = typeof definition.path === 'string' ? [definition.path] : [];
		const execution = new vscode.ProcessExecution(this.#binaryPath ?? 'svc', [command, ...options, ...pathArguments], {
			cwd: folder.uri.fsPath,
		});
		const task = new vscode.Task(definition, folder, command, 'svc', execution, command === 'test' ? [] : ['$svc']);
		task.group = command === 'test' ? vscode.TaskGroup.Test : vscode.TaskGroup.Build;
		return task;
	}

	async #showProblem(problem: string): Promise<void> {
		this.#log.error(problem);
		const openSettings = 'Open Settings';
		// The choice is not awaited, because the user may answer much later.
		void vscode.window.showErrorMessage(problem, openSettings, 'Show Log').then(choice => {
			if (choice === openSettings) void vscode.commands.executeCommand('workbench.action.openSettings', 'svc.path');
			else if (choice) this.#log.show();
		});
	}

	/** Stops the extension. Called by the editor when it ends the extension. */
	async dispose(): Promise<void> {
		await this.#lastOperation;
		await this.#stop();
		for (const disposable of this.#disposables) disposable.dispose();
	}
}
