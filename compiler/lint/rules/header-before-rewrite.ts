/** `header/before-rewrite`. */
import type { Matcher } from '../../document/document.ts';
import { MATCHERS } from '../../modules/matchers/index.ts';
import { traitsOf } from '../answering.ts';
import { editsOf, type FieldEdit, isLong } from '../header-fields.ts';
import { laterStep } from '../later-step.ts';
import type { LintContext } from '../lint-context.ts';
import type { LintRule } from '../lint-rule.ts';
import { asksForFile, everyMatcher } from '../walk-document.ts';

/** Fields that tell of the very file. Other fields are often meant for whatever is answered below a path. */
const OF_FILES = /^(?:content-type|content-encoding|content-disposition|content-language|etag|last-modified)$/i;

/** A field for files of a path is set before a rewrite that answers the path with another file. */
export const headerBeforeRewrite: LintRule = {
	name: 'header/before-rewrite',
	severity: 'warning',
	summary: 'A field for files of a path is set before a rewrite that answers the path with another file.',
	documentation: [
		'`header /assets/* Cache-Control immutable` before `try_files {path} /index.html`: for an asset that is no longer there',
		'the page is answered, and browsers keep it under the name of the asset for as long as the field says. The matcher was',
		'asked before the rewrite. Let it ask for the file, too: `@assets path /assets/* and file`, in a Compatfile a block with',
		'`path` and `file`.',
	].join('\n'),
	check: cx => {
		for (const { edit, when } of fieldsByPath(cx)) {
			if (!OF_FILES.test(edit.name) && !isLong(edit)) continue;
			const rewrite = laterStep(edit.of, when, step => {
				const to = traitsOf(step).rewritesTo?.(step);
				return to !== undefined && !to.startsWith('?');
			});
			if (!rewrite) continue;
			cx.at(edit.pointer, `What is rewritten to another file afterwards gets this \`${edit.name}\`, too.`, {
				words: edit.name,
				related: cx.related(rewrite.pointer, 'rewrites'),
				hint: hintOf(cx),
			});
		}
	},
};

function hintOf({ dialect }: LintContext): string {
	return dialect === 'compatfile'
		? 'Let its matcher ask for the file, too: a block with `path` and `file`.'
		: 'Let its matcher ask for the file, too: `path … and file`.';
}

/** Fields of responses that are set by a path, of which nobody has asked whether there is a file. */
function* fieldsByPath(cx: LintContext): Generator<{ edit: FieldEdit; when: Matcher }> {
	for (const edit of editsOf(cx.walked)) {
		const { when, response } = edit.of.step;
		if (edit.on !== 'response' || edit.removes || edit.of.pipeline.ofErrors || when === undefined) continue;
		// What a response says of itself tells files apart.
		if ((response as { match?: { headers?: unknown } }).match?.headers !== undefined) continue;
		const matcher = when as Matcher;
		if (!everyMatcher(matcher, '').some(({ matcher: { type } }) => MATCHERS.get(type)?.judges === 'path')) continue;
		if (asksForFile(matcher)) continue;
		yield { edit, when: matcher };
	}
}
