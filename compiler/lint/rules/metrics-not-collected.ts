/**
 * The lint rule `metrics/not-collected`, which reports the directive `metrics` on a site if no metrics of requests are
 * collected.
 */
import { metricsEndpoint } from '../../modules/directives/metrics.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

export const metricsNotCollected: LintRule = {
	name: 'metrics/not-collected',
	severity: 'note',
	summary: 'A site serves metrics, but no metrics of requests are collected.',
	documentation: [
		'The directive `metrics` serves what has been collected. Without the global option `metrics`, that is only the state of',
		'the process: memory, threads, connections, certificates and upstreams. Dashboards and alerts on requests stay empty.',
	].join('\n'),
	dependsOn: 'site',
	check: cx => {
		if (cx.document.settings?.metrics !== undefined) return;
		for (const { step, pointer } of cx.walkedDocument.steps) {
			if (step.handler !== metricsEndpoint.id) continue;
			cx.reportAt(pointer, 'No metrics of requests are collected.', {
				hint: 'Add `metrics` to the global options.',
			});
		}
	},
};
