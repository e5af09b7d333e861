/**
 * Handles the requests of the protocol: converts positions to offsets, calls a query of the compiler, and converts its result
 * back.
 */
import {
	type Connection,
	type DocumentSymbol,
	FoldingRangeKind,
	type SelectionRange,
	type ServerCapabilities,
	SymbolKind,
	type TextEdit,
} from 'vscode-languageserver';
import { formattingEdits, type RangeEdit } from '../../compiler/queries/formatting.ts';
import { linksOf } from '../../compiler/queries/links.ts';
import { enclosingRanges, foldsOf, symbolsOf, type TextSymbol } from '../../compiler/queries/outline.ts';
import type { TextRange } from '../../compiler/queries/text-syntax.ts';
import { ACTION_CAPABILITIES, registerActionHandler } from './actions.ts';
import type { FeatureDeps } from './feature-deps.ts';
import { LENS_CAPABILITIES, registerLensHandlers } from './lenses.ts';
import { type RequestedDocument, requestedDocument } from './requested-document.ts';
import { registerWordHandlers, WORD_CAPABILITIES } from './words.ts';

/** The capabilities that the server announces to a client. */
export const SERVER_CAPABILITIES: ServerCapabilities = {
	documentFormattingProvider: true,
	documentRangeFormattingProvider: true,
	documentOnTypeFormattingProvider: { firstTriggerCharacter: '}' },
	documentSymbolProvider: true,
	workspaceSymbolProvider: true,
	foldingRangeProvider: true,
	selectionRangeProvider: true,
	documentLinkProvider: {},
	...WORD_CAPABILITIES,
	...ACTION_CAPABILITIES,
	...LENS_CAPABILITIES,
};

const SYMBOL_KINDS: { readonly [kind in TextSymbol['kind']]: SymbolKind } = {
	options: SymbolKind.Namespace,
	site: SymbolKind.Class,
	snippet: SymbolKind.Module,
	route: SymbolKind.Function,
	upstream: SymbolKind.Interface,
	test: SymbolKind.Event,
	let: SymbolKind.Constant,
	matcher: SymbolKind.Variable,
	directive: SymbolKind.Method,
};

/** Registers the handlers of all requests. */
export function registerHandlers(connection: Connection, deps: FeatureDeps): void {
	const { documents } = deps;
	registerWordHandlers(connection, deps);
	registerActionHandler(connection, deps);
	registerLensHandlers(connection, deps);
	const findDocument = requestedDocument(deps);
	const rangeIn = ({ path, syntax }: RequestedDocument, range: TextRange) =>
		documents.toRange(path, syntax.text, range);

	connection.onDocumentFormatting(({ textDocument }) => {
		const requestedDocument = findDocument(textDocument.uri);
		return requestedDocument ? toTextEdits(requestedDocument, formattingEdits(requestedDocument.syntax.text)) : [];
	});
	connection.onDocumentRangeFormatting(({ textDocument, range }) => {
		const requestedDocument = findDocument(textDocument.uri);
		if (!requestedDocument) return [];
		const offsets = {
			start: requestedDocument.document.offsetAt(range.start),
			end: requestedDocument.document.offsetAt(range.end),
		};
		return toTextEdits(requestedDocument, formattingEdits(requestedDocument.syntax.text, offsets));
	});
	connection.onDocumentOnTypeFormatting(({ textDocument, position }) => {
		const requestedDocument = findDocument(textDocument.uri);
		if (!requestedDocument) return [];
		const offset = requestedDocument.document.offsetAt(position);
		return toTextEdits(
			requestedDocument,
			formattingEdits(requestedDocument.syntax.text, { start: offset, end: offset }),
		);
	});
	const toTextEdits = (requestedDocument: RequestedDocument, edits: readonly RangeEdit[]): TextEdit[] =>
		edits.map(edit => ({ range: rangeIn(requestedDocument, edit), newText: edit.text }));

	connection.onDocumentSymbol(({ textDocument }) => {
		const requestedDocument = findDocument(textDocument.uri);
		if (!requestedDocument) return [];
		const toDocumentSymbol = ({ name, detail, kind, range, name_range, children }: TextSymbol): DocumentSymbol => ({
			...{ name, detail, kind: SYMBOL_KINDS[kind] },
			...{
				range: rangeIn(requestedDocument, range),
				selectionRange: rangeIn(requestedDocument, name_range),
				children: children.map(toDocumentSymbol),
			},
		});
		return symbolsOf(requestedDocument.syntax).map(toDocumentSymbol);
	});
	connection.onWorkspaceSymbol(({ query }) => {
		const workspace = deps.getWorkspace();
		const lowerQuery = query.toLowerCase();
		return workspace.everyFile().flatMap(path => {
			const syntax = workspace.syntaxOf(path);
			if (!syntax) return [];
			return flatSymbols(symbolsOf(syntax))
				.filter(({ symbol }) => symbol.name.toLowerCase().includes(lowerQuery))
				.map(({ symbol, container }) => ({
					name: symbol.name,
					kind: SYMBOL_KINDS[symbol.kind],
					location: { uri: documents.uriOf(path), range: documents.toRange(path, syntax.text, symbol.name_range) },
					...(container === undefined ? {} : { containerName: container }),
				}));
		});
	});
	connection.onFoldingRanges(({ textDocument }) => {
		const requestedDocument = findDocument(textDocument.uri);
		if (!requestedDocument) return [];
		return foldsOf(requestedDocument.syntax).map(fold => {
			const { start, end } = rangeIn(requestedDocument, fold);
			const kind =
				fold.kind === 'comment'
					? FoldingRangeKind.Comment
					: fold.kind === 'imports'
						? FoldingRangeKind.Imports
						: undefined;
			// The line of the closing brace stays visible when a block is folded.
			const endLine = fold.kind === 'block' && end.line > start.line ? end.line - 1 : end.line;
			return { startLine: start.line, endLine, ...(kind === undefined ? {} : { kind }) };
		});
	});
	connection.onSelectionRanges(({ textDocument, positions }) => {
		const requestedDocument = findDocument(textDocument.uri);
		if (!requestedDocument) return [];
		return positions.map(position => {
			let selection: SelectionRange | undefined;
			for (const range of enclosingRanges(
				requestedDocument.syntax,
				requestedDocument.document.offsetAt(position),
			).toReversed())
				selection = { range: rangeIn(requestedDocument, range), ...(selection ? { parent: selection } : {}) };
			return selection!;
		});
	});
	connection.onDocumentLinks(({ textDocument }) => {
		const requestedDocument = findDocument(textDocument.uri);
		if (!requestedDocument) return [];
		return linksOf(requestedDocument.workspace, requestedDocument.syntax).map(link => ({
			range: rangeIn(requestedDocument, link),
			target: documents.uriOf(link.path),
		}));
	});
}

function* flatten(
	symbols: readonly TextSymbol[],
	container?: string,
): Generator<{ symbol: TextSymbol; container: string | undefined }> {
	for (const symbol of symbols) {
		yield { symbol, container };
		yield* flatten(symbol.children, symbol.name);
	}
}

function flatSymbols(symbols: readonly TextSymbol[]): { symbol: TextSymbol; container: string | undefined }[] {
	return [...flatten(symbols)].filter(({ symbol }) => symbol.kind !== 'directive');
}
