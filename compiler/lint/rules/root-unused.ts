/** The lint rule `root/unused`, which reports a site that sets `root` although nothing in it reads files. */
import { matchers } from '../../modules/registry/matchers.ts';
import { traitsOf } from '../inspection/answering.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

export const rootUnused: LintRule = {
	name: 'root/unused',
	severity: 'warning',
	summary: 'A site sets `root`, and nothing in it reads files.',
	documentation:
		'`root` only says where files are. Nothing serves them without `file_server`, `try_files`, `templates` or the like.',
	dependsOn: 'site',
	check: cx => {
		const sitesReadingRoot = new Set<number | undefined>();
		for (const { step, pipeline } of cx.walkedDocument.steps)
			if (traitsOf(step).readsRoot?.(step)) sitesReadingRoot.add(pipeline.site);
		for (const {
			step,
			pointer,
			pipeline: { site },
		} of cx.walkedDocument.steps) {
			if (!traitsOf(step).setsRoot?.(step) || site === undefined || sitesReadingRoot.has(site)) continue;
			if (ROOT_USE_PATTERN.test(JSON.stringify(cx.document.sites![site]))) {
				sitesReadingRoot.add(site);
				continue;
			}
			cx.reportAt(pointer, 'Nothing in this site reads files below `root`.', { hint: 'Add `file_server`.' });
		}
	},
};

const FILE_MATCHER_PATTERN = matchers.flatMap(({ id, dependsOn }) => (dependsOn === 'files' ? id : [])).join('|');
/**
 * Matches the JSON of a site that reads the variable `root` outside of directives: in a matcher, in an expression, or by the
 * placeholder.
 */
const ROOT_USE_PATTERN = new RegExp(
	`"type":"(?:${FILE_MATCHER_PATTERN})"|\\b(?:${FILE_MATCHER_PATTERN})\\(|http\\.vars\\.root`,
);
