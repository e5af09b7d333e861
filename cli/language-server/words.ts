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
import { askedDocument } from './asked.ts';
import type { FeatureDeps } from './features.ts';

export const WORD_FEATURES: ServerCapabilities = {
	completionProvider: { triggerCharacters: ['{', '@', '/', '.', '=', ' '] },
	hoverProvider: true,
	signatureHelpProvider: { triggerCharacters: [' '] },
	definitionProvider: true,
	referencesProvider: true,
	documentHighlightProvider: true,
	renameProvider: { prepareProvider: true },
};

const KINDS: { readonly [kind in CompletionKind]: CompletionItemKind } = {
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

/** Registers the handlers. */
export function answerWords(connection: Connection, deps: FeatureDeps): void {
	const { documents } = deps;
	const asked = askedDocument(deps);
	const locations = (ranges: readonly FileRange[]): Location[] =>
		ranges.flatMap(range => documents.location(deps.workspace(), range) ?? []);

	connection.onCompletion(({ textDocument, position }) => {
		const at = asked(textDocument.uri);
		if (!at) return [];
		const found = completionsAt(at.workspace, at.syntax, at.document.offsetAt(position));
		return found.map(({ label, kind, detail, documentation, insert, snippet, range }, index) => ({
			label,
			kind: KINDS[kind],
			...(detail === undefined ? {} : { detail }),
			...(documentation === undefined ? {} : { documentation: { kind: MarkupKind.Markdown, value: documentation } }),
			sortText: String(index).padStart(4, '0'),
			filterText: label,
			insertTextFormat: snippet ? InsertTextFormat.Snippet : InsertTextFormat.PlainText,
			textEdit: { range: documents.range(at.path, at.syntax.text, range), newText: insert },
		}));
	});
	connection.onHover(({ textDocument, position }) => {
		const at = asked(textDocument.uri);
		const hover = at && hoverAt(at.workspace, at.syntax, at.document.offsetAt(position));
		if (!at || !hover) return null;
		return {
			contents: { kind: MarkupKind.Markdown, value: hover.text },
			range: documents.range(at.path, at.syntax.text, hover.range),
		};
	});
	connection.onSignatureHelp(({ textDocument, position }) => {
		const at = asked(textDocument.uri);
		const signature = at && signatureAt(at.syntax, at.document.offsetAt(position));
		if (!signature) return null;
		const { usage, documentation, parameters, active } = signature;
		return {
			signatures: [
				{ label: usage, documentation, parameters: parameters.map(([start, end]) => ({ label: [start, end] })) },
			],
			activeSignature: 0,
			activeParameter: active ?? parameters.length,
		};
	});
	connection.onDefinition(({ textDocument, position }) => {
		const at = asked(textDocument.uri);
		if (!at) return [];
		const offset = at.document.offsetAt(position);
		const uses = occurrencesAt(at.workspace, at.syntax, offset);
		if (uses.length > 0) return locations(uses.filter(({ role }) => role === 'definition'));
		return locations(importedFiles(at.workspace, at.syntax, offset));
	});
	connection.onReferences(({ textDocument, position, context }) => {
		const at = asked(textDocument.uri);
		if (!at) return [];
		const uses = occurrencesAt(at.workspace, at.syntax, at.document.offsetAt(position));
		return locations(uses.filter(({ role }) => context.includeDeclaration || role === 'use'));
	});
	connection.onDocumentHighlight(({ textDocument, position }) => {
		const at = asked(textDocument.uri);
		if (!at) return [];
		return occurrencesAt(at.workspace, at.syntax, at.document.offsetAt(position))
			.filter(({ path }) => path === at.path)
			.map(use => ({ range: documents.range(at.path, at.syntax.text, use), kind: use.role === 'definition' ? 3 : 2 }));
	});
	connection.onPrepareRename(({ textDocument, position }) => {
		const at = asked(textDocument.uri);
		const offset = at?.document.offsetAt(position);
		const name = at && nameAt(at.syntax, offset!);
		if (!at || !name || occurrencesAt(at.workspace, at.syntax, offset!).length === 0) return null;
		return { range: documents.range(at.path, at.syntax.text, name), placeholder: name.name };
	});
	connection.onRenameRequest(({ textDocument, position, newName }): WorkspaceEdit | ResponseError => {
		const at = asked(textDocument.uri);
		if (!at) return { documentChanges: [] };
		const renamed = renameAt(at.workspace, at.syntax, at.document.offsetAt(position), newName);
		// LSP 3.17: RequestFailed.
		if ('problem' in renamed) return new ResponseError(-32803, renamed.problem);
		const wanted = newName.replace(/^@/, '');
		const edits = new Map<string, TextEdit[]>();
		for (const use of renamed) {
			const location = documents.location(at.workspace, use);
			if (!location) continue;
			const list = edits.get(use.path) ?? [];
			list.push({ range: location.range, newText: wanted });
			edits.set(use.path, list);
		}
		return { documentChanges: documents.versioned(edits) };
	});
}
