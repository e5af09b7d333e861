/** The lint rule `rate-limit/no-burst`, which reports a zone whose whole limit may be used at once, because it has no `burst`. */
import { rateLimit } from '../../modules/directives/rate-limit/rate-limit.ts';
import type { RateLimitStep } from '../../modules/directives/rate-limit/rate-limit-handler.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

/** Limits of at most this many requests are not reported: five login attempts, for example, may well come in one burst. */
const MAX_SMALL_LIMIT = 20;
/** Shorter windows, in milliseconds, are not reported: bursts in them hardly differ from evenly distributed requests. */
const MIN_LONG_WINDOW_MS = 10_000;

export const limitWithoutBurst: LintRule = {
	name: 'rate-limit/no-burst',
	severity: 'note',
	summary: 'A client may use the whole limit of a long window at once.',
	documentation: [
		'Without `burst`, all requests of a window may come at the same moment, and the next ones as fast as the limit allows: up to twice',
		'the limit in the first window. A `burst` bounds how many may come at once. Write it even if it is the whole limit, to say that this',
		'is meant. Limits of up to 20 requests and windows shorter than 10 seconds are not reported.',
	].join('\n'),
	dependsOn: 'site',
	check: cx => {
		for (const { step, pointer } of cx.walkedDocument.steps) {
			if (step.handler !== rateLimit.id) continue;
			(step as RateLimitStep).zones.forEach(({ name, requests, window, burst }, index) => {
				if (burst !== undefined || requests <= MAX_SMALL_LIMIT || window < MIN_LONG_WINDOW_MS) return;
				const message = `All ${requests} requests of the zone \`${name}\` may come at once.`;
				cx.reportAt(`${pointer}/zones/${index}`, message, {
					hint: `Write \`burst <n>\`; \`burst ${requests}\` if this is meant.`,
				});
			});
		}
	},
};
