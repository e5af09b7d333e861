/** The requests about words: completion, hover, signatures, definitions, references and renaming. */
import {
	CompletionItemKind,
	type Connection,
	InsertTextFormat,
	type Location,
	MarkupKind,
	ResponseError,
	type ServerCapabilities,
	type TextEdit,
	type WorkspaceEdit,
} from 'vscode-languageserver';
import { type CompletionKind, completionsAt } from '../../compiler/queries/completion.ts';
import { hoverAt, signatureAt } from '../../compiler/queries/hover.ts';
import { importedFiles } from '../../compiler/queries/links.ts';
import { nameAt, occurrencesAt, renameAt } from '../../compiler/queries/names.ts';
import type { FileRange } from '../../compiler/queries/text-syntax.ts';
import type { FeatureDeps } from './feature-deps.ts';
import { requestedDocument } from './requested-document.ts';

export const WORD_CAPABILITIES: ServerCapabilities = {
	completionProvider: { triggerCharacters: ['{', '@', '/', '.', '=', ' '] },
	hoverProvider: true,
	signatureHelpProvider: { triggerCharacters: [' '] },
	definitionProvider: true,
	referencesProvider: true,
	documentHighlightProvider: true,
	renameProvider: { prepareProvider: true },
};

const COMPLETION_KINDS: { readonly [kind in CompletionKind]: CompletionItemKind } = {
	directive: CompletionItemKind.Function,
	subdirective: CompletionItemKind.Property,
	option: CompletionItemKind.Property,
	matcher: CompletionItemKind.Operator,
	keyword: CompletionItemKind.Keyword,
	value: CompletionItemKind.EnumMember,
	placeholder: CompletionItemKind.Variable,
	file: CompletionItemKind.File,
	folder: CompletionItemKind.Folder,
	field: CompletionItemKind.Field,
	rule: CompletionItemKind.Event,
	snippet: CompletionItemKind.Module,
	parameter: CompletionItemKind.TypeParameter,
	let: CompletionItemKind.Constant,
	upstream: CompletionItemKind.Interface,
	route: CompletionItemKind.Function,
};

/** Registers the handlers of requests about the word at a position, such as completion and hover. */
export function registerWordHandlers(connection: Connection, deps: FeatureDeps): void {
	const { documents } = deps;
	const findDocument = requestedDocument(deps);
	const toLocations = (ranges: readonly FileRange[]): Location[] =>
		ranges.flatMap(range => documents.toLocation(deps.getWorkspace(), range) ?? []);

	connection.onCompletion(({ textDocument, position }) => {
		const requestedDocument = findDocument(textDocument.uri);
		if (!requestedDocument) return [];
		const completions = completionsAt(
			requestedDocument.workspace,
			requestedDocument.syntax,
			requestedDocument.document.offsetAt(position),
		);
		return completions.map(({ label, kind, detail, documentation, insert, isSnippet, range }, index) => ({
			label,
			kind: COMPLETION_KINDS[kind],
			...(detail === undefined ? {} : { detail }),
			...(documentation === undefined ? {} : { documentation: { kind: MarkupKind.Markdown, value: documentation } }),
			sortText: String(index).padStart(4, '0'),
			filterText: label,
			insertTextFormat: isSnippet ? InsertTextFormat.Snippet : InsertTextFormat.PlainText,
			textEdit: {
				range: documents.toRange(requestedDocument.path, requestedDocument.syntax.text, range),
				newText: insert,
			},
		}));
	});
	connection.onHover(({ textDocument, position }) => {
		const requestedDocument = findDocument(textDocument.uri);
		const hover =
			requestedDocument &&
			hoverAt(requestedDocument.workspace, requestedDocument.syntax, requestedDocument.document.offsetAt(position));
		if (!requestedDocument || !hover) return null;
		return {
			contents: { kind: MarkupKind.Markdown, value: hover.text },
			range: documents.toRange(requestedDocument.path, requestedDocument.syntax.text, hover.range),
		};
	});
	connection.onSignatureHelp(({ textDocument, position }) => {
		const requestedDocument = findDocument(textDocument.uri);
		const signature =
			requestedDocument && signatureAt(requestedDocument.syntax, requestedDocument.document.offsetAt(position));
		if (!signature) return null;
		const { usage, documentation, parameters, activeParameter: activeIndex } = signature;
		return {
			signatures: [
				{ label: usage, documentation, parameters: parameters.map(([start, end]) => ({ label: [start, end] })) },
			],
			activeSignature: 0,
			activeParameter: activeIndex ?? parameters.length,
		};
	});
	connection.onDefinition(({ textDocument, position }) => {
		const requestedDocument = findDocument(textDocument.uri);
		if (!requestedDocument) return [];
		const offset = requestedDocument.document.offsetAt(position);
		const occurrences = occurrencesAt(requestedDocument.workspace, requestedDocument.syntax, offset);
		if (occurrences.length > 0) return toLocations(occurrences.filter(({ role }) => role === 'definition'));
		return toLocations(importedFiles(requestedDocument.workspace, requestedDocument.syntax, offset));
	});
	connection.onReferences(({ textDocument, position, context }) => {
		const requestedDocument = findDocument(textDocument.uri);
		if (!requestedDocument) return [];
		const occurrences = occurrencesAt(
			requestedDocument.workspace,
			requestedDocument.syntax,
			requestedDocument.document.offsetAt(position),
		);
		return toLocations(occurrences.filter(({ role }) => context.includeDeclaration || role === 'use'));
	});
	connection.onDocumentHighlight(({ textDocument, position }) => {
		const requestedDocument = findDocument(textDocument.uri);
		if (!requestedDocument) return [];
		return occurrencesAt(
			requestedDocument.workspace,
			requestedDocument.syntax,
			requestedDocument.document.offsetAt(position),
		)
			.filter(({ path }) => path === requestedDocument.path)
			.map(occurrence => ({
				range: documents.toRange(requestedDocument.path, requestedDocument.syntax.text, occurrence),
				kind: occurrence.role === 'definition' ? 3 : 2,
			}));
	});
	connection.onPrepareRename(({ textDocument, position }) => {
		const requestedDocument = findDocument(textDocument.uri);
		const offset = requestedDocument?.document.offsetAt(position);
		const name = requestedDocument && nameAt(requestedDocument.syntax, offset!);
		if (
			!requestedDocument ||
			!name ||
			occurrencesAt(requestedDocument.workspace, requestedDocument.syntax, offset!).length === 0
		)
			return null;
		return {
			range: documents.toRange(requestedDocument.path, requestedDocument.syntax.text, name),
			placeholder: name.name,
		};
	});
	connection.onRenameRequest(({ textDocument, position, newName }): WorkspaceEdit | ResponseError => {
		const requestedDocument = findDocument(textDocument.uri);
		if (!requestedDocument) return { documentChanges: [] };
		const renameResult = renameAt(
			requestedDocument.workspace,
			requestedDocument.syntax,
			requestedDocument.document.offsetAt(position),
			newName,
		);
		// The error code RequestFailed of LSP 3.17.
		if ('problem' in renameResult) return new ResponseError(-32803, renameResult.problem);
		const newText = newName.replace(/^@/, '');
		const editsByPath = new Map<string, TextEdit[]>();
		for (const occurrence of renameResult) {
			const location = documents.toLocation(requestedDocument.workspace, occurrence);
			if (!location) continue;
			const fileEdits = editsByPath.get(occurrence.path) ?? [];
			fileEdits.push({ range: location.range, newText });
			editsByPath.set(occurrence.path, fileEdits);
		}
		return { documentChanges: documents.toDocumentEdits(editsByPath) };
	});
}
