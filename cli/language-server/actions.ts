/** Answers requests for code actions: fixes, refactorings and conversions. */
import {
	type CodeAction,
	CodeActionKind,
	type Connection,
	type ServerCapabilities,
	type TextEdit,
	type WorkspaceEdit,
} from 'vscode-languageserver';
import { type Action, actionsAt, type FileEdit, safeFixEdits } from '../../compiler/queries/actions.ts';
import { conversionActions } from './conversion.ts';
import type { FeatureDeps } from './feature-deps.ts';
import { type RequestedDocument, requestedDocument } from './requested-document.ts';

const FIX_ALL_KIND = `${CodeActionKind.SourceFixAll}.svc`;

export const ACTION_CAPABILITIES: ServerCapabilities = {
	codeActionProvider: {
		codeActionKinds: [
			...[CodeActionKind.QuickFix, CodeActionKind.RefactorExtract, CodeActionKind.RefactorInline],
			...[CodeActionKind.RefactorRewrite, FIX_ALL_KIND],
		],
	},
};

const ACTION_KINDS: { readonly [kind in Action['kind']]: CodeActionKind } = {
	fix: CodeActionKind.QuickFix,
	'fix-all': CodeActionKind.QuickFix,
	silence: CodeActionKind.QuickFix,
	extract: CodeActionKind.RefactorExtract,
	inline: CodeActionKind.RefactorInline,
};

/** Registers the handler that offers code actions for a range of a document. */
export function registerActionHandler(connection: Connection, deps: FeatureDeps): void {
	const { documents, publisher } = deps;
	const findDocument = requestedDocument(deps);
	const workspaceEdit = (requestedDocument: RequestedDocument, edits: readonly FileEdit[]): WorkspaceEdit => {
		const editsByPath = new Map<string, TextEdit[]>();
		for (const { path, start, end, text } of edits) {
			const location = documents.toLocation(requestedDocument.workspace, { path, start, end });
			if (!location) continue;
			const fileEdits = editsByPath.get(path) ?? [];
			fileEdits.push({ range: location.range, newText: text });
			editsByPath.set(path, fileEdits);
		}
		return { documentChanges: documents.toDocumentEdits(editsByPath) };
	};
	connection.onCodeAction(async ({ textDocument, range, context }): Promise<CodeAction[]> => {
		const path = documents.pathOf(textDocument.uri);
		const version = documents.get(path)?.version;
		const publishedFindings = await publisher.findings(path);
		const requestedDocument = findDocument(textDocument.uri);
		// If the text has changed while the findings were awaited, `range` refers to an older text.
		if (!requestedDocument || requestedDocument.document.version !== version) return [];
		const findings = publishedFindings.map(({ finding }) => finding);
		const offsets = {
			start: requestedDocument.document.offsetAt(range.start),
			end: requestedDocument.document.offsetAt(range.end),
		};
		const isRequestedKind = (kind: CodeActionKind): boolean =>
			!context.only || context.only.some(only => kind === only || kind.startsWith(`${only}.`));
		const actions = actionsAt(requestedDocument.workspace, requestedDocument.syntax, offsets, findings)
			.filter(({ kind }) => isRequestedKind(ACTION_KINDS[kind]))
			.map(({ title, kind, edits, finding, isPreferred }): CodeAction => {
				const diagnostic = finding && publishedFindings.find(entry => entry.finding === finding)?.diagnostic;
				return {
					...{ title, kind: ACTION_KINDS[kind], edit: workspaceEdit(requestedDocument, edits) },
					...(diagnostic ? { diagnostics: [diagnostic] } : {}),
					...(isPreferred ? { isPreferred: true } : {}),
				};
			});
		const allFixes = context.only && isRequestedKind(FIX_ALL_KIND) ? safeFixEdits(findings) : [];
		if (allFixes.length > 0)
			actions.push({
				title: 'Apply all safe fixes',
				kind: FIX_ALL_KIND,
				edit: workspaceEdit(requestedDocument, allFixes),
			});
		if (deps.canCreateFiles() && isRequestedKind(CodeActionKind.RefactorRewrite))
			actions.push(...conversionActions(requestedDocument, range.start));
		return actions;
	});
}
