/** The lint rule `encode/after-replace`. */
import { encode } from '../../modules/directives/encode/encode.ts';
import { replace } from '../../modules/directives/replace/replace.ts';
import { findLaterStep } from '../inspection/later-step.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

/** Reports an `encode` that runs inside a `replace`, which asks it for an uncompressed response. */
export const encodeAfterReplace: LintRule = {
	name: 'encode/after-replace',
	severity: 'warning',
	summary: 'An `encode` after `replace` compresses nothing.',
	documentation: [
		'`replace` needs uncompressed text, so the directives after it see requests of clients that accept no compression. An',
		'`encode` among them has no effect. Before `replace`, it compresses the result.',
	].join('\n'),
	check: cx => {
		const found = new Set<string>();
		for (const replacing of cx.walked.steps) {
			if (replacing.step.handler !== replace.id) continue;
			const later = findLaterStep(replacing, replacing.step.when, ({ handler }) => handler === encode.id);
			if (!later || found.has(later.pointer)) continue;
			found.add(later.pointer);
			cx.at(later.pointer, 'This `encode` compresses nothing that passes the `replace` before it.', {
				related: cx.related(replacing.pointer, 'asks for uncompressed responses'),
				hint: 'Put `encode` first.',
			});
		}
	},
};
