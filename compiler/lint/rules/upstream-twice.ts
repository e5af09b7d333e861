/** The lint rule `upstream/twice`, which reports a pool that lists the same address twice. */
import { parseUpstream } from '../../modules/directives/reverse-proxy/upstream-address.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

export const upstreamTwice: LintRule = {
	name: 'upstream/twice',
	severity: 'warning',
	summary: 'A pool lists the same address twice.',
	documentation:
		'The address then gets twice its share of requests and counts twice for health checks. Use weights to say so explicitly.',
	dependsOn: 'site',
	check: cx => {
		const pools: { to: unknown; pointer: string }[] = [];
		for (const { step, pointer } of cx.walkedDocument.steps) {
			const { upstreams } = step as { upstreams?: { to?: unknown } };
			if (upstreams) pools.push({ to: upstreams.to, pointer: `${pointer}/upstreams/to` });
		}
		for (const [name, pool] of Object.entries(cx.scope.document.upstreams ?? {})) {
			pools.push({ to: (pool as { to?: unknown }).to, pointer: `/upstreams/${name}/to` });
		}
		for (const { to, pointer } of pools) {
			if (!Array.isArray(to)) continue;
			const canonicalAddresses = new Set<string>();
			(to as readonly unknown[]).forEach((address, index) => {
				if (typeof address !== 'string') return;
				const sizeBefore = canonicalAddresses.size;
				if (canonicalAddresses.add(canonicalAddress(address)).size > sizeBefore) return;
				cx.reportAt(`${pointer}/${index}`, `\`${address}\` is already in this pool.`, {
					words: address,
					lastOccurrence: true,
				});
			});
		}
	},
};

/** Returns a text that is equal for all spellings of an address, such as `:8080` and `localhost:8080`. */
function canonicalAddress(text: string): string {
	const parsed = parseUpstream(text);
	return parsed.kind === 'static' ? parsed.addresses.map(({ address }) => address).join(' ') : text;
}
