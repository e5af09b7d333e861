/** The requests of the protocol, one handler each: positions in, queries of the compiler, positions out. */
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
import type { Workspace } from '../../compiler/queries/workspace.ts';
import { ACTION_FEATURES, answerActions } from './actions.ts';
import { type Asked, askedDocument } from './asked.ts';
import type { DiagnosticsPublisher } from './diagnostics.ts';
import type { Documents } from './documents.ts';
import { answerLenses, LENS_FEATURES } from './lenses.ts';
import { answerWords, WORD_FEATURES } from './words.ts';

/** What the server tells a client that it can do. */
export const FEATURES: ServerCapabilities = {
	documentFormattingProvider: true,
	documentRangeFormattingProvider: true,
	documentOnTypeFormattingProvider: { firstTriggerCharacter: '}' },
	documentSymbolProvider: true,
	workspaceSymbolProvider: true,
	foldingRangeProvider: true,
	selectionRangeProvider: true,
	documentLinkProvider: {},
	...WORD_FEATURES,
	...ACTION_FEATURES,
	...LENS_FEATURES,
};

/** What handlers need. */
export interface FeatureDeps {
	readonly documents: Documents;
	readonly workspace: () => Workspace;
	readonly publisher: DiagnosticsPublisher;
	/** Reports whether the client can create files. */
	readonly canCreateFiles: () => boolean;
}

const SYMBOLS: { readonly [kind in TextSymbol['kind']]: SymbolKind } = {
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

/** Registers all handlers. */
export function answerFeatures(connection: Connection, deps: FeatureDeps): void {
	const { documents } = deps;
	answerWords(connection, deps);
	answerActions(connection, deps);
	answerLenses(connection, deps);
	const asked = askedDocument(deps);
	const rangeIn = ({ path, syntax }: Asked, range: TextRange) => documents.range(path, syntax.text, range);

	connection.onDocumentFormatting(({ textDocument }) => {
		const at = asked(textDocument.uri);
		return at ? textEdits(at, formattingEdits(at.syntax.text)) : [];
	});
	connection.onDocumentRangeFormatting(({ textDocument, range }) => {
		const at = asked(textDocument.uri);
		if (!at) return [];
		const within = { start: at.document.offsetAt(range.start), end: at.document.offsetAt(range.end) };
		return textEdits(at, formattingEdits(at.syntax.text, within));
	});
	connection.onDocumentOnTypeFormatting(({ textDocument, position }) => {
		const at = asked(textDocument.uri);
		if (!at) return [];
		const offset = at.document.offsetAt(position);
		return textEdits(at, formattingEdits(at.syntax.text, { start: offset, end: offset }));
	});
	const textEdits = (at: Asked, edits: readonly RangeEdit[]): TextEdit[] =>
		edits.map(edit => ({ range: rangeIn(at, edit), newText: edit.text }));

	connection.onDocumentSymbol(({ textDocument }) => {
		const at = asked(textDocument.uri);
		if (!at) return [];
		const convert = ({ name, detail, kind, range, name_range, children }: TextSymbol): DocumentSymbol => ({
			...{ name, detail, kind: SYMBOLS[kind] },
			...{ range: rangeIn(at, range), selectionRange: rangeIn(at, name_range), children: children.map(convert) },
		});
		return symbolsOf(at.syntax).map(convert);
	});
	connection.onWorkspaceSymbol(({ query }) => {
		const workspace = deps.workspace();
		const wanted = query.toLowerCase();
		return workspace.everyFile().flatMap(path => {
			const syntax = workspace.syntax(path);
			if (!syntax) return [];
			return flatSymbols(symbolsOf(syntax))
				.filter(({ symbol }) => symbol.name.toLowerCase().includes(wanted))
				.map(({ symbol, container }) => ({
					name: symbol.name,
					kind: SYMBOLS[symbol.kind],
					location: { uri: documents.uriOf(path), range: documents.range(path, syntax.text, symbol.name_range) },
					...(container === undefined ? {} : { containerName: container }),
				}));
		});
	});
	connection.onFoldingRanges(({ textDocument }) => {
		const at = asked(textDocument.uri);
		if (!at) return [];
		return foldsOf(at.syntax).map(fold => {
			const { start, end } = rangeIn(at, fold);
			const kind =
				fold.kind === 'comment'
					? FoldingRangeKind.Comment
					: fold.kind === 'imports'
						? FoldingRangeKind.Imports
						: undefined;
			// The line of the closing brace stays visible.
			const endLine = fold.kind === 'block' && end.line > start.line ? end.line - 1 : end.line;
			return { startLine: start.line, endLine, ...(kind === undefined ? {} : { kind }) };
		});
	});
	connection.onSelectionRanges(({ textDocument, positions }) => {
		const at = asked(textDocument.uri);
		if (!at) return [];
		return positions.map(position => {
			let selection: SelectionRange | undefined;
			for (const range of enclosingRanges(at.syntax, at.document.offsetAt(position)).toReversed())
				selection = { range: rangeIn(at, range), ...(selection ? { parent: selection } : {}) };
			return selection!;
		});
	});
	connection.onDocumentLinks(({ textDocument }) => {
		const at = asked(textDocument.uri);
		if (!at) return [];
		return linksOf(at.workspace, at.syntax).map(link => ({
			range: rangeIn(at, link),
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
