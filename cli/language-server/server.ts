/**
 * The language server: the connection to the editor and the editor's documents. The queries in compiler/queries/ compute the
 * replies.
 */
import path from 'node:path';
import {
	type Connection,
	createConnection,
	DidChangeWatchedFilesNotification,
	type InitializeParams,
	type InitializeResult,
	TextDocumentSyncKind,
} from 'vscode-languageserver/node';
import { TextDocument } from 'vscode-languageserver-textdocument';
import { Workspace } from '../../compiler/queries/workspace.ts';
import { version } from '../command/version.ts';
import { canCreateFiles } from './conversion.ts';
import { DiagnosticsPublisher } from './diagnostics.ts';
import { Documents, dialectOf } from './documents.ts';
import { registerHandlers, SERVER_CAPABILITIES } from './features.ts';
import { workspaceReader } from './workspace-reader.ts';

/** Serves one editor over standard input and output. Resolves to the exit status. */
export function serveEditor(): Promise<number> {
	// Standard output carries the protocol, so that anything else printed there would break it.
	console.log = console.error;
	const connection = createConnection(process.stdin, process.stdout);
	return new Promise(resolve => {
		const server = new LanguageServer(connection);
		connection.onExit(() => resolve(server.isShutDown ? 0 : 1));
		process.stdin.on('end', () => resolve(server.isShutDown ? 0 : 1));
		connection.listen();
	});
}

class LanguageServer {
	readonly #connection: Connection;
	readonly #documents = new Documents();
	readonly #folders = new Set<string>();
	readonly #publisher: DiagnosticsPublisher;
	#workspace: Workspace;
	#clientCanWatchFiles = false;
	#clientCanCreateFiles = false;
	isShutDown = false;

	constructor(connection: Connection) {
		this.#connection = connection;
		this.#workspace = new Workspace(workspaceReader(this.#folders), []);
		this.#publisher = new DiagnosticsPublisher(connection, this.#documents, () => this.#workspace);
		connection.onInitialize(params => this.#onInitialize(params));
		connection.onInitialized(() => this.#onInitialized());
		connection.onShutdown(() => {
			this.isShutDown = true;
			this.#publisher.stop();
		});
		this.#handleDocumentEvents();
		registerHandlers(connection, {
			documents: this.#documents,
			getWorkspace: () => this.#workspace,
			publisher: this.#publisher,
			canCreateFiles: () => this.#clientCanCreateFiles,
		});
	}

	#onInitialize({ workspaceFolders, rootUri, rootPath, capabilities }: InitializeParams): InitializeResult {
		const folderUris = workspaceFolders?.map(({ uri }) => uri) ?? (rootUri ? [rootUri] : []);
		for (const uri of folderUris) if (uri.startsWith('file:')) this.#folders.add(this.#documents.pathOf(uri));
		if (this.#folders.size === 0 && rootPath) this.#folders.add(path.resolve(rootPath));
		this.#workspace = new Workspace(workspaceReader(this.#folders), [...this.#folders]);
		this.#clientCanWatchFiles = capabilities.workspace?.didChangeWatchedFiles?.dynamicRegistration === true;
		this.#clientCanCreateFiles = canCreateFiles(capabilities);
		return {
			serverInfo: { name: 'svc', version: version() },
			capabilities: {
				textDocumentSync: { openClose: true, change: TextDocumentSyncKind.Incremental, save: false },
				positionEncoding: 'utf-16',
				...SERVER_CAPABILITIES,
			},
		};
	}

	#onInitialized(): void {
		if (!this.#clientCanWatchFiles) return;
		// All files are watched, because imported files can have any name.
		const watchers = [{ globPattern: '**/*' }];
		void this.#connection.client.register(DidChangeWatchedFilesNotification.type, { watchers });
	}

	#handleDocumentEvents(): void {
		const connection = this.#connection;
		connection.onDidOpenTextDocument(({ textDocument: { uri, languageId, version: documentVersion, text } }) => {
			const file = this.#documents.pathOf(uri);
			// For JSON, editors have their own server, which can use the schema that `svc schema` prints.
			if (/^jsonc?$/.test(languageId) || file.toLowerCase().endsWith('.json')) return;
			// The folder of a file that is opened outside of all folders is added to the workspace.
			if (uri.startsWith('file:') && ![...this.#folders].some(folder => isInFolder(file, folder)))
				this.#folders.add(path.dirname(file));
			this.#updateDocument(file, TextDocument.create(uri, languageId, documentVersion, text));
		});
		connection.onDidChangeTextDocument(({ textDocument: { uri, version: documentVersion }, contentChanges }) => {
			const file = this.#documents.pathOf(uri);
			const document = this.#documents.get(file);
			if (document) this.#updateDocument(file, TextDocument.update(document, contentChanges, documentVersion));
		});
		connection.onDidCloseTextDocument(({ textDocument: { uri } }) => {
			const file = this.#documents.pathOf(uri);
			this.#documents.delete(file);
			this.#workspace.closeText(file);
			this.#publisher.scheduleCheck();
		});
		connection.onDidChangeWatchedFiles(() => {
			this.#workspace.forgetFiles();
			this.#publisher.scheduleCheck();
		});
	}

	#updateDocument(file: string, document: TextDocument): void {
		this.#documents.set(file, document);
		this.#workspace.setOpenText(file, { text: document.getText(), dialect: dialectOf(document.languageId, file) });
		this.#publisher.scheduleCheck();
	}
}

function isInFolder(file: string, folder: string): boolean {
	return file.startsWith(folder.endsWith(path.sep) ? folder : folder + path.sep);
}
