/** The editor's documents: their paths, versions and positions. */
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Range, TextDocumentEdit, TextEdit } from 'vscode-languageserver';
import { TextDocument } from 'vscode-languageserver-textdocument';
import type { Dialect } from '../../compiler/dialects/dialect.ts';
import type { FileRange, TextRange } from '../../compiler/queries/text-syntax.ts';
import type { Workspace } from '../../compiler/queries/workspace.ts';

/** Holds the open documents, by path, and converts offsets in open and closed files to the editor's positions. */
export class Documents {
	readonly #openDocuments = new Map<string, TextDocument>();
	readonly #urisByPath = new Map<string, string>();
	#lastClosed: { readonly path: string; readonly document: TextDocument } | undefined;

	/**
	 * Returns the path of a document. For a URI that does not name a file, makes up a path, so that the compiler can name the
	 * document.
	 */
	pathOf(uri: string): string {
		const file = filePathOf(uri) ?? path.join('/', encodeURIComponent(uri));
		this.#urisByPath.set(file, uri);
		return file;
	}

	/** Returns the URI of a file as the editor spells it; if the editor has not used it, the usual spelling. */
	uriOf(file: string): string {
		return this.#urisByPath.get(file) ?? pathToFileURL(file).href;
	}

	set(file: string, document: TextDocument): void {
		this.#openDocuments.set(file, document);
	}

	delete(file: string): void {
		this.#openDocuments.delete(file);
	}

	/** Returns the open document of a file; undefined if the file is not open. */
	get(file: string): TextDocument | undefined {
		return this.#openDocuments.get(file);
	}

	/** Returns the versions of all open documents, by path. */
	versions(): ReadonlyMap<string, number> {
		return new Map([...this.#openDocuments].map(([file, { version }]) => [file, version]));
	}

	/**
	 * Returns the document with which positions in a file are converted: the open document or, if the file is not open, a document
	 * with the given text.
	 */
	#documentFor(file: string, text: string): TextDocument {
		const document = this.#openDocuments.get(file);
		if (document) return document;
		if (this.#lastClosed?.path !== file || this.#lastClosed.document.getText() !== text)
			this.#lastClosed = { path: file, document: TextDocument.create(this.uriOf(file), '', 0, text) };
		return this.#lastClosed.document;
	}

	/** Converts offsets in a text to positions. */
	toRange(file: string, text: string, { start, end }: TextRange): Range {
		const document = this.#documentFor(file, text);
		return { start: document.positionAt(start), end: document.positionAt(end) };
	}

	/** Converts a range in a file of the workspace to a location; undefined if the file cannot be read. */
	toLocation(workspace: Workspace, { path: file, start, end }: FileRange): { uri: string; range: Range } | undefined {
		const text = this.#openDocuments.get(file)?.getText() ?? workspace.syntaxOf(file)?.text;
		return text === undefined ? undefined : { uri: this.uriOf(file), range: this.toRange(file, text, { start, end }) };
	}

	/** Converts edits by path to edits of documents. The editor refuses edits of open documents that have changed meanwhile. */
	toDocumentEdits(editsByPath: ReadonlyMap<string, TextEdit[]>): TextDocumentEdit[] {
		return [...editsByPath].map(([file, textEdits]) => ({
			textDocument: { uri: this.uriOf(file), version: this.#openDocuments.get(file)?.version ?? null },
			edits: textEdits,
		}));
	}
}

/** Returns the path of a file URI; undefined for other URIs, and for files of other hosts. */
function filePathOf(uri: string): string | undefined {
	try {
		return uri.startsWith('file:') ? fileURLToPath(uri) : undefined;
	} catch {
		return undefined;
	}
}

/** Returns the language of a document: the one that the editor names or, if it names none, the one that the file name implies. */
export function dialectOf(languageId: string, file: string): Dialect {
	const id = languageId.toLowerCase();
	if (id === 'caddyfile' || id === 'compatfile') return 'compatfile';
	if (id === 'configfile') return 'configfile';
	return /^(?:compat|caddy)file|\.(?:compat|caddy)file$/i.test(path.basename(file)) ? 'compatfile' : 'configfile';
}
