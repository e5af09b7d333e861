/** `root/unused`. */
import type { LintRule } from '../lint-rule.ts';

/** A site sets `root`, and nothing in it reads files. */
export const rootUnused: LintRule = {
	name: 'root/unused',
	severity: 'warning',
	summary: 'A site sets `root`, and nothing in it reads files.',
	documentation:
		'`root` only says where files are. Without `file_server`, `try_files`, `templates` or the like none is served.',
	check: cx => {
		const texts = new Map<number, string>();
		for (const { step, pointer, pipeline } of cx.walked.steps) {
			const { variables } = step as { variables?: { root?: unknown } };
			if (step.handler !== 'set_variables' || variables?.root === undefined || pipeline.site === undefined) continue;
			let text = texts.get(pipeline.site);
			if (text === undefined) {
				text = JSON.stringify(cx.document.sites![pipeline.site]);
				texts.set(pipeline.site, text);
			}
			if (READERS.test(text)) continue;
			cx.at(pointer, 'Nothing in this site reads files below `root`.', { hint: 'Add `file_server`.' });
		}
	},
};

/** What reads the variable: handlers, matchers, expressions, placeholders, and routes that may hold any of them. */
const READERS = /"handler":"(?:files|render|run_route|fastcgi|php)|"type":"file"|file\(|http\.vars\.root/;
