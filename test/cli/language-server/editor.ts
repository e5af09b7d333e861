/** An editor for tests: starts `svc language-server` and speaks its protocol over standard input and output. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { TextDocument } from 'vscode-languageserver-textdocument';
import { SVC } from '../../harness.ts';

/** A message from the server. */
interface Message {
	readonly id?: number | string;
	readonly method?: string;
	readonly params?: unknown;
	readonly result?: unknown;
	readonly error?: { readonly code: number; readonly message: string };
}

/** A `textDocument/publishDiagnostics` notification. */
export interface PublishedDiagnostics {
	readonly uri: string;
	readonly version?: number;
	readonly diagnostics: readonly PublishedDiagnostic[];
}

export interface PublishedDiagnostic {
	readonly range: { readonly start: Position; readonly end: Position };
	readonly code: string;
	readonly message: string;
	readonly severity: number;
}

export interface Position {
	readonly line: number;
	readonly character: number;
}

/** An open text, as the editor sees it. */
interface OpenBuffer {
	text: string;
	version: number;
}

const running = new Set<ChildProcess>();

/** Kills the servers of all editors. The server of a failed case would otherwise keep the test process running. */
export function endEditors(): void {
	for (const server of running) server.kill('SIGKILL');
}

process.on('exit', endEditors);

/** One editor with its server. */
export class Editor {
	readonly folder: string;
	readonly buffers = new Map<string, OpenBuffer>();
	/** The last diagnostics of each file, by its name in the folder. */
	readonly published = new Map<string, PublishedDiagnostics>();
	/** Called for each notification with diagnostics, in order. */
	onPublished: ((file: string, published: PublishedDiagnostics) => void) | undefined;
	/** The requests that the server has sent. Each is answered with null. */
	readonly asked: { readonly method: string; readonly params: unknown }[] = [];
	stderr = '';
	readonly exited: Promise<number | null>;
	readonly #process: ChildProcess;
	#next = 0;
	readonly #waiting = new Map<number, { resolve: (result: unknown) => void; reject: (error: Error) => void }>();
	#input: Buffer = Buffer.alloc(0);
	#changed: (() => void)[] = [];

	/** Starts a server for a folder. `env` has additional variables of its environment. */
	constructor(
		folder: string,
		{
			command = 'language-server',
			bin = SVC,
			env = {},
		}: { command?: string; bin?: string; env?: { readonly [name: string]: string } } = {},
	) {
		this.folder = folder;
		this.#process = spawn(bin, [command], {
			...{ cwd: folder, env: { ...process.env, ...env } },
			stdio: ['pipe', 'pipe', 'pipe'],
		});
		this.#process.stdout!.on('data', (data: Buffer) => this.#receive(data));
		this.#process.stderr!.on('data', (data: Buffer) => {
			this.stderr += data;
		});
		this.exited = new Promise(resolve => this.#process.on('exit', resolve));
		running.add(this.#process);
	}

	get pid(): number {
		return this.#process.pid!;
	}

	/** Initializes the server. Returns its capabilities. */
	async initialize(more: object = {}): Promise<unknown> {
		const uri = pathToFileURL(this.folder).href;
		const result = await this.request('initialize', {
			processId: null,
			rootUri: uri,
			workspaceFolders: [{ uri, name: 'workspace' }],
			capabilities: {
				workspace: {
					applyEdit: true,
					workspaceEdit: { documentChanges: true, resourceOperations: ['create'] },
					didChangeWatchedFiles: { dynamicRegistration: true },
				},
				textDocument: { completion: { completionItem: { snippetSupport: true } } },
			},
			...more,
		});
		this.notify('initialized', {});
		return result;
	}

	uri(file: string): string {
		return pathToFileURL(path.resolve(this.folder, file)).href;
	}

	/** Converts the URI of a file in the folder to a path relative to the folder. */
	file(uri: string): string {
		const root = `${pathToFileURL(this.folder).href}/`;
		return uri.startsWith(root) ? decodeURIComponent(uri.slice(root.length)) : uri;
	}

	/** Opens a file with the given text; by default, with its text on disk. */
	open(
		file: string,
		text: string = readFileSync(path.resolve(this.folder, file), 'utf8'),
		languageId: string = 'plaintext',
	): void {
		this.buffers.set(file, { text, version: 1 });
		this.notify('textDocument/didOpen', { textDocument: { uri: this.uri(file), languageId, version: 1, text } });
	}

	/** Replaces a range of offsets in an open file, by an incremental change. */
	edit(file: string, start: number, end: number, text: string): void {
		const buffer = this.buffers.get(file)!;
		const range = { start: positionIn(buffer.text, start), end: positionIn(buffer.text, end) };
		const [from, to] = [offsetIn(buffer.text, range.start), offsetIn(buffer.text, range.end)];
		buffer.text = buffer.text.slice(0, from) + text + buffer.text.slice(to);
		buffer.version++;
		const textDocument = { uri: this.uri(file), version: buffer.version };
		this.notify('textDocument/didChange', { textDocument, contentChanges: [{ range, text }] });
	}

	/** Replaces the whole text of an open file. */
	replace(file: string, text: string): void {
		const buffer = this.buffers.get(file)!;
		buffer.text = text;
		buffer.version++;
		const textDocument = { uri: this.uri(file), version: buffer.version };
		this.notify('textDocument/didChange', { textDocument, contentChanges: [{ text }] });
	}

	close(file: string): void {
		this.buffers.delete(file);
		this.notify('textDocument/didClose', { textDocument: { uri: this.uri(file) } });
	}

	/**
	 * Resolves once the diagnostics of all files are known, and the diagnostics of every open file belong to the file's current
	 * version.
	 */
	async whenSettled(): Promise<void> {
		await this.whenVersionsShown();
		// A change to one file may change the diagnostics of another. The server publishes the diagnostics of all files together,
		// before it answers this request.
		await this.request('textDocument/foldingRange', { textDocument: { uri: 'untitled:none' } });
	}

	/** Resolves once the diagnostics of every open file belong to the file's current version. */
	async whenVersionsShown(): Promise<void> {
		const isSettled = (): boolean =>
			[...this.buffers].every(([file, { version }]) => this.published.get(file)?.version === version);
		while (!isSettled()) await new Promise<void>(resolve => this.#changed.push(resolve));
	}

	request(method: string, params: unknown): Promise<unknown> {
		const id = ++this.#next;
		this.#send({ jsonrpc: '2.0', id, method, params });
		return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
	}

	notify(method: string, params: unknown): void {
		this.#send({ jsonrpc: '2.0', method, params });
	}

	/** Ends the server as an editor does. Resolves to its exit status. */
	async quit(): Promise<number | null> {
		await this.request('shutdown', null);
		this.notify('exit', null);
		return this.exited;
	}

	/** Ends abruptly, as an editor that crashes does. */
	hangUp(): void {
		this.#process.stdin!.end();
	}

	#send(message: object): void {
		const body = Buffer.from(JSON.stringify(message));
		this.#process.stdin!.write(`Content-Length: ${body.length}\r\n\r\n`);
		this.#process.stdin!.write(body);
	}

	#receive(data: Buffer): void {
		this.#input = Buffer.concat([this.#input, data]);
		for (;;) {
			const end = this.#input.indexOf('\r\n\r\n');
			if (end === -1) return;
			const length = Number(/Content-Length: (\d+)/i.exec(this.#input.toString('latin1', 0, end))?.[1]);
			if (this.#input.length < end + 4 + length) return;
			const message = JSON.parse(this.#input.toString('utf8', end + 4, end + 4 + length)) as Message;
			this.#input = this.#input.subarray(end + 4 + length);
			this.#take(message);
		}
	}

	#take(message: Message): void {
		if (message.method === undefined) {
			const waiting = this.#waiting.get(message.id as number);
			this.#waiting.delete(message.id as number);
			if (message.error) waiting?.reject(new Error(`${message.error.code}: ${message.error.message}`));
			else waiting?.resolve(message.result);
			return;
		}
		if (message.id !== undefined) {
			this.asked.push({ method: message.method, params: message.params });
			this.#send({ jsonrpc: '2.0', id: message.id, result: null });
		}
		if (message.method === 'textDocument/publishDiagnostics') {
			const published = message.params as PublishedDiagnostics;
			const file = this.file(published.uri);
			this.published.set(file, published);
			this.onPublished?.(file, published);
		}
		const changed = this.#changed;
		this.#changed = [];
		for (const resolve of changed) resolve();
	}
}

/** Converts an offset to a position. In the protocol, a lone carriage return also ends a line. */
export function positionIn(text: string, offset: number): Position {
	return TextDocument.create('', '', 0, text).positionAt(offset);
}

/** Converts a position to an offset. */
export function offsetIn(text: string, position: Position): number {
	return TextDocument.create('', '', 0, text).offsetAt(position);
}
