/**
 * The lint rule `files/root-missing`, which reports a root folder that does not exist, although files are to be served from it.
 */
import { missingRoots, ROOT_MISSING_CODE } from '../inspection/file-roots.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

export const rootMissing: LintRule = {
	name: ROOT_MISSING_CODE,
	severity: 'warning',
	alwaysChecked: true,
	summary: 'The folder from which files are served does not exist.',
	documentation: [
		'Every request would be answered with 404. A relative path is relative to the file that contains it; in a Compatfile,',
		`to the server's working directory. A start and a reload warn about it, too.`,
	].join('\n'),
	check: cx => {
		for (const { pointer, message, hint } of missingRoots(cx.walkedDocument, cx.subject.input.format, cx.reader))
			cx.reportAt(pointer, message, { hint });
	},
};
