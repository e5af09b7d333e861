/**
 * The lint rule `encode/after-replace`, which reports an `encode` after a `replace`. Such an `encode` has no effect, because
 * `replace` asks the directives after it for an uncompressed response.
 */
import { encode } from '../../modules/directives/encode/encode.ts';
import { replace } from '../../modules/directives/replace/replace.ts';
import { findLaterStep } from '../inspection/later-step.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

export const encodeAfterReplace: LintRule = {
	name: 'encode/after-replace',
	severity: 'warning',
	summary: 'An `encode` after `replace` compresses nothing.',
	documentation: [
		'`replace` needs uncompressed text, so the directives after it see requests of clients that accept no compression. An',
		'`encode` among them has no effect. Before `replace`, it compresses the result.',
	].join('\n'),
	dependsOn: 'site',
	check: cx => {
		const reportedPointers = new Set<string>();
		for (const replaceStep of cx.walkedDocument.steps) {
			if (replaceStep.step.handler !== replace.id) continue;
			const laterEncode = findLaterStep(replaceStep, replaceStep.step.when, ({ handler }) => handler === encode.id);
			if (!laterEncode || reportedPointers.has(laterEncode.pointer)) continue;
			reportedPointers.add(laterEncode.pointer);
			cx.reportAt(laterEncode.pointer, 'This `encode` compresses nothing that passes the `replace` before it.', {
				related: cx.relatedEntry(replaceStep.pointer, 'asks for uncompressed responses'),
				hint: 'Put `encode` first.',
			});
		}
	},
};
