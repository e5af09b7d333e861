/** `upstream/twice`. */
import type { LintRule } from '../lint-rule.ts';

/** A pool names the same address twice. */
export const upstreamTwice: LintRule = {
	name: 'upstream/twice',
	severity: 'warning',
	summary: 'A pool names the same address twice.',
	documentation:
		'The address then gets twice the share of requests and counts twice for health. Weights say so plainly.',
	check: cx => {
		const pools: { to: unknown; pointer: string }[] = [];
		for (const { step, pointer } of cx.walked.steps) {
			const { upstreams } = step as { upstreams?: { to?: unknown } };
			if (upstreams) pools.push({ to: upstreams.to, pointer: `${pointer}/upstreams/to` });
		}
		for (const [name, pool] of Object.entries(cx.document.upstreams ?? {})) {
			pools.push({ to: (pool as { to?: unknown }).to, pointer: `/upstreams/${name}/to` });
		}
		for (const { to, pointer } of pools) {
			if (!Array.isArray(to)) continue;
			(to as readonly unknown[]).forEach((address, index) => {
				if (typeof address !== 'string' || to.indexOf(address) === index) return;
				cx.at(`${pointer}/${index}`, `\`${address}\` is in this pool already.`, { words: address, last: true });
			});
		}
	},
};
