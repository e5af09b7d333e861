/** Code actions. */
import {
	type CodeAction,
	CodeActionKind,
	type Connection,
	type ServerCapabilities,
	type TextEdit,
	type WorkspaceEdit,
} from 'vscode-languageserver';
import { type Action, actionsAt, type FileEdit, safeFixes } from '../../compiler/queries/actions.ts';
import { type Asked, askedDocument } from './asked.ts';
import { conversionActions } from './conversion.ts';
import type { FeatureDeps } from './features.ts';

const FIX_ALL = `${CodeActionKind.SourceFixAll}.svc`;

export const ACTION_FEATURES: ServerCapabilities = {
	codeActionProvider: {
		codeActionKinds: [
			...[CodeActionKind.QuickFix, CodeActionKind.RefactorExtract, CodeActionKind.RefactorInline],
			...[CodeActionKind.RefactorRewrite, FIX_ALL],
		],
	},
};

const KINDS: { readonly [kind in Action['kind']]: CodeActionKind } = {
	fix: CodeActionKind.QuickFix,
	'fix-all': CodeActionKind.QuickFix,
	silence: CodeActionKind.QuickFix,
	extract: CodeActionKind.RefactorExtract,
	inline: CodeActionKind.RefactorInline,
};

/** Registers the handler. */
export function answerActions(connection: Connection, deps: FeatureDeps): void {
	const { documents, publisher } = deps;
	const asked = askedDocument(deps);
	const edit = (at: Asked, edits: readonly FileEdit[]): WorkspaceEdit => {
		const byPath = new Map<string, TextEdit[]>();
		for (const { path, start, end, text } of edits) {
			const location = documents.location(at.workspace, { path, start, end });
			if (!location) continue;
			const list = byPath.get(path) ?? [];
			list.push({ range: location.range, newText: text });
			byPath.set(path, list);
		}
		return { documentChanges: documents.versioned(byPath) };
	};
	connection.onCodeAction(async ({ textDocument, range, context }): Promise<CodeAction[]> => {
		const path = documents.pathOf(textDocument.uri);
		const version = documents.get(path)?.version;
		const shown = await publisher.findings(path);
		const at = asked(textDocument.uri);
		// A change while the findings were awaited makes the range meaningless.
		if (!at || at.document.version !== version) return [];
		const findings = shown.map(({ finding }) => finding);
		const within = { start: at.document.offsetAt(range.start), end: at.document.offsetAt(range.end) };
		const wants = (kind: CodeActionKind): boolean =>
			!context.only || context.only.some(only => kind === only || kind.startsWith(`${only}.`));
		const actions = actionsAt(at.workspace, at.syntax, within, findings)
			.filter(({ kind }) => wants(KINDS[kind]))
			.map(({ title, kind, edits, finding, preferred }): CodeAction => {
				const diagnostic = finding && shown.find(one => one.finding === finding)?.diagnostic;
				return {
					...{ title, kind: KINDS[kind], edit: edit(at, edits) },
					...(diagnostic ? { diagnostics: [diagnostic] } : {}),
					...(preferred ? { isPreferred: true } : {}),
				};
			});
		const all = context.only && wants(FIX_ALL) ? safeFixes(findings) : [];
		if (all.length > 0) actions.push({ title: 'Apply all safe fixes', kind: FIX_ALL, edit: edit(at, all) });
		if (deps.canCreateFiles() && wants(CodeActionKind.RefactorRewrite))
			actions.push(...conversionActions(at, range.start));
		return actions;
	});
}
