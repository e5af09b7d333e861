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
import type { FeatureDeps } from './features.ts';
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

/** Registers the handlers of requests about words. */
export function registerWordHandlers(connection: Connection, deps: FeatureDeps): void {
	const { documents } = deps;
	const findDocument = requestedDocument(deps);
	const toLocations = (ranges: readonly FileRange[]): Location[] =>
		ranges.flatMap(range => documents.toLocation(deps.getWorkspace(), range) ?? []);

	connection.onCompletion(({ textDocument, position }) => {
		const requested = findDocument(textDocument.uri);
		if (!requested) return [];
		const completions = completionsAt(requested.workspace, requested.syntax, requested.document.offsetAt(position));
		return completions.map(({ label, kind, detail, documentation, insert, isSnippet, range }, index) => ({
			label,
			kind: COMPLETION_KINDS[kind],
			...(detail === undefined ? {} : { detail }),
			...(documentation === undefined ? {} : { documentation: { kind: MarkupKind.Markdown, value: documentation } }),
			sortText: String(index).padStart(4, '0'),
			filterText: label,
			insertTextFormat: isSnippet ? InsertTextFormat.Snippet : InsertTextFormat.PlainText,
			textEdit: { range: documents.toRange(requested.path, requested.syntax.text, range), newText: insert },
		}));
	});
	connection.onHover(({ textDocument, position }) => {
		const requested = findDocument(textDocument.uri);
		const hover = requested && hoverAt(requested.workspace, requested.syntax, requested.document.offsetAt(position));
		if (!requested || !hover) return null;
		return {
			contents: { kind: MarkupKind.Markdown, value: hover.text },
			range: documents.toRange(requested.path, requested.syntax.text, hover.range),
		};
	});
	connection.onSignatureHelp(({ textDocument, position }) => {
		const requested = findDocument(textDocument.uri);
		const signature = requested && signatureAt(requested.syntax, requested.document.offsetAt(position));
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
		const requested = findDocument(textDocument.uri);
		if (!requested) return [];
		const offset = requested.document.offsetAt(position);
		const occurrences = occurrencesAt(requested.workspace, requested.syntax, offset);
		if (occurrences.length > 0) return toLocations(occurrences.filter(({ role }) => role === 'definition'));
		return toLocations(importedFiles(requested.workspace, requested.syntax, offset));
	});
	connection.onReferences(({ textDocument, position, context }) => {
		const requested = findDocument(textDocument.uri);
		if (!requested) return [];
		const occurrences = occurrencesAt(requested.workspace, requested.syntax, requested.document.offsetAt(position));
		return toLocations(occurrences.filter(({ role }) => context.includeDeclaration || role === 'use'));
	});
	connection.onDocumentHighlight(({ textDocument, position }) => {
		const requested = findDocument(textDocument.uri);
		if (!requested) return [];
		return occurrencesAt(requested.workspace, requested.syntax, requested.document.offsetAt(position))
			.filter(({ path }) => path === requested.path)
			.map(occurrence => ({
				range: documents.toRange(requested.path, requested.syntax.text, occurrence),
				kind: occurrence.role === 'definition' ? 3 : 2,
			}));
	});
	connection.onPrepareRename(({ textDocument, position }) => {
		const requested = findDocument(textDocument.uri);
		const offset = requested?.document.offsetAt(position);
		const name = requested && nameAt(requested.syntax, offset!);
		if (!requested || !name || occurrencesAt(requested.workspace, requested.syntax, offset!).length === 0) return null;
		return { range: documents.toRange(requested.path, requested.syntax.text, name), placeholder: name.name };
	});
	connection.onRenameRequest(({ textDocument, position, newName }): WorkspaceEdit | ResponseError => {
		const requested = findDocument(textDocument.uri);
		if (!requested) return { documentChanges: [] };
		const renameResult = renameAt(
			requested.workspace,
			requested.syntax,
			requested.document.offsetAt(position),
			newName,
		);
		// The error code RequestFailed of LSP 3.17.
		if ('problem' in renameResult) return new ResponseError(-32803, renameResult.problem);
		const newText = newName.replace(/^@/, '');
		const editsByPath = new Map<string, TextEdit[]>();
		for (const occurrence of renameResult) {
			const location = documents.toLocation(requested.workspace, occurrence);
			if (!location) continue;
			const fileEdits = editsByPath.get(occurrence.path) ?? [];
			fileEdits.push({ range: location.range, newText });
			editsByPath.set(occurrence.path, fileEdits);
		}
		return { documentChanges: documents.toDocumentEdits(editsByPath) };
	});
}
