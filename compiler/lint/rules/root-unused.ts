/** The lint rule `root/unused`. */
import { matchers } from '../../modules/registry/matchers.ts';
import { traitsOf } from '../inspection/answering.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

/** Reports a site that sets `root` although nothing in it reads files. */
export const rootUnused: LintRule = {
	name: 'root/unused',
	severity: 'warning',
	summary: 'A site sets `root`, and nothing in it reads files.',
	documentation:
		'`root` only says where files are. Nothing serves them without `file_server`, `try_files`, `templates` or the like.',
	check: cx => {
		const readers = new Set<number | undefined>();
		for (const { step, pipeline } of cx.walked.steps) if (traitsOf(step).readsRoot?.(step)) readers.add(pipeline.site);
		for (const {
			step,
			pointer,
			pipeline: { site },
		} of cx.walked.steps) {
			if (!traitsOf(step).setsRoot?.(step) || site === undefined || readers.has(site)) continue;
			if (READS_ROOT.test(JSON.stringify(cx.document.sites![site]))) {
				readers.add(site);
				continue;
			}
			cx.at(pointer, 'Nothing in this site reads files below `root`.', { hint: 'Add `file_server`.' });
		}
	},
};

const OF_FILES = matchers.flatMap(({ id, dependsOn: judges }) => (judges === 'files' ? id : [])).join('|');
/** Matches everything else that reads the variable `root`: matchers, also as functions in expressions, and the placeholder. */
const READS_ROOT = new RegExp(`"type":"(?:${OF_FILES})"|\\b(?:${OF_FILES})\\(|http\\.vars\\.root`);
