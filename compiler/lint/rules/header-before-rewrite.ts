/**
 * The lint rule `header/before-rewrite`, which reports a header field that is set for the files below a path, although a later
 * rewrite may serve a file from elsewhere.
 */
import type { Matcher } from '../../document/document.ts';
import { MATCHERS_BY_TYPE } from '../../modules/registry/matchers.ts';
import { traitsOf } from '../inspection/answering.ts';
import { type FieldEdit, fieldEditsOf, isLongLivedCaching } from '../inspection/header-fields.ts';
import { findLaterStep } from '../inspection/later-step.ts';
import type { LintContext } from '../inspection/lint-context.ts';
import type { LintRule } from '../inspection/lint-rule.ts';
import { allNestedMatchers, requiresFile } from '../inspection/walk-document.ts';

/** Matches fields that describe a single file. Other fields are often meant for everything below a path. */
const FILE_FIELD = /^(?:content-type|content-encoding|content-disposition|content-language|etag|last-modified)$/i;

export const headerBeforeRewrite: LintRule = {
	name: 'header/before-rewrite',
	severity: 'warning',
	summary: 'A field meant for the files of a path is set before a rewrite that serves another file instead.',
	documentation: [
		'With `header /assets/* Cache-Control immutable` before `try_files {path} /index.html`, a request for a removed asset',
		`gets the page, and browsers keep the page under the asset's name for as long as the field says: the matcher was`,
		'evaluated before the rewrite. Let it test for the file as well: `@assets path /assets/* and file`, in a Compatfile a block with',
		'`path` and `file`.',
	].join('\n'),
	dependsOn: 'site',
	check: cx => {
		for (const { edit, when } of pathDependentEdits(cx)) {
			if (!FILE_FIELD.test(edit.name) && !isLongLivedCaching(edit)) continue;
			const rewrite = findLaterStep(edit.walkedStep, when, step => {
				const target = traitsOf(step).rewritesTo?.(step);
				return target !== undefined && !target.startsWith('?');
			});
			if (!rewrite) continue;
			cx.reportAt(edit.pointer, `Requests that are later rewritten to another file also get this \`${edit.name}\`.`, {
				words: edit.name,
				related: cx.relatedEntry(rewrite.pointer, 'rewrites'),
				hint: fixHint(cx),
			});
		}
	},
};

function fixHint({ dialect }: LintContext): string {
	return dialect === 'compatfile'
		? 'Let its matcher test for the file as well: a block with `path` and `file`.'
		: 'Let its matcher test for the file as well: `path … and file`.';
}

/** Yields the edits of response fields that depend on the path but not on whether a file exists. */
function* pathDependentEdits(cx: LintContext): Generator<{ edit: FieldEdit; when: Matcher }> {
	for (const edit of fieldEditsOf(cx.walkedDocument)) {
		const { when, response } = edit.walkedStep.step;
		if (
			edit.editedMessage !== 'response' ||
			edit.isRemoval ||
			edit.walkedStep.pipeline.handlesErrors ||
			when === undefined
		)
			continue;
		// A condition on fields of the response already distinguishes files.
		if ((response as { match?: { headers?: unknown } }).match?.headers !== undefined) continue;
		const matcher = when as Matcher;
		if (
			!allNestedMatchers(matcher, '').some(({ matcher: { type } }) => MATCHERS_BY_TYPE.get(type)?.dependsOn === 'path')
		)
			continue;
		if (requiresFile(matcher)) continue;
		yield { edit, when: matcher };
	}
}
