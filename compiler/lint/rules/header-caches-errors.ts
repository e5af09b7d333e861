/**
 * The lint rule `header/caches-errors`, which reports a field for long-lived caching that is also set on the 404 response for a
 * missing file.
 */
import type { Fix } from '../../diagnostics/diagnostic.ts';
import type { Matcher } from '../../document/document.ts';
import { answersIfRun, directiveNameOf, traitsOf } from '../inspection/answering.ts';
import { type FieldEdit, fieldEditsOf, isLongLivedCaching } from '../inspection/header-fields.ts';
import { findLaterStep } from '../inspection/later-step.ts';
import type { LintContext } from '../inspection/lint-context.ts';
import type { LintRule } from '../inspection/lint-rule.ts';
import { requiresFile } from '../inspection/walk-document.ts';

interface ResponseEdits {
	readonly deferred?: boolean;
	readonly match?: unknown;
	readonly [kind: string]: unknown;
}

export const headerCachesErrors: LintRule = {
	name: 'header/caches-errors',
	severity: 'warning',
	summary: 'A long-lived caching field is also set on the 404 for a missing file.',
	documentation: [
		'`header /assets/* Cache-Control immutable` is set before `file_server` looks for the file. If the file is missing, the field',
		'goes on the 404, and a client that asked too early during a deployment keeps that. Written `>Cache-Control`, the field is set',
		'only once the file has been found.',
	].join('\n'),
	dependsOn: 'site',
	check: cx => {
		for (const edit of fieldEditsOf(cx.walkedDocument)) {
			if (edit.editedMessage !== 'response' || edit.walkedStep.pipeline.handlesErrors || !isLongLivedCaching(edit))
				continue;
			const response = edit.walkedStep.step.response as ResponseEdits;
			// An edit in the list `default` is always made after the response is known.
			if (response.deferred === true || response.match !== undefined || edit.pointer.includes('/default/')) continue;
			const when = edit.walkedStep.step.when as Matcher | undefined;
			if (when && requiresFile(when)) continue;
			const fileServer = findLaterStep(
				edit.walkedStep,
				when,
				step => traitsOf(step).servesFiles !== undefined && answersIfRun(step),
			);
			if (!fileServer) continue;
			cx.reportAt(
				edit.pointer,
				`A 404 of the \`${directiveNameOf(fileServer.step)}\` after it also gets this \`${edit.name}\`.`,
				{
					words: edit.name,
					related: cx.relatedEntry(fileServer.pointer, 'answers 404'),
					hint: `Write \`>${edit.name}\` to set the field only when the response is known.`,
					fix: deferralFix(cx, edit, response),
				},
			);
		}
	},
};

/**
 * Returns the fix that inserts `>` before the field name, so that the field is set only when the response is known. Returns
 * undefined if the fix would affect other fields.
 */
function deferralFix(cx: LintContext, { pointer, name }: FieldEdit, response: ResponseEdits): Fix | undefined {
	const editCount = Object.values(response).flat().length;
	const span = cx.span(pointer, name);
	if (editCount !== 1 || !span || span.source.text.slice(span.start, span.end) !== name) return undefined;
	return { safety: 'unsafe', edits: [{ span: { ...span, end: span.start }, text: '>' }] };
}
