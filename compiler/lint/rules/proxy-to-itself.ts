/** The lint rule `proxy/to-itself`, which reports an upstream with an address on which this server itself listens. */
import { traitsOf } from '../inspection/answering.ts';
import type { LintRule } from '../inspection/lint-rule.ts';
import { isLoopback } from '../inspection/public-host.ts';

export const proxyToItself: LintRule = {
	name: 'proxy/to-itself',
	severity: 'warning',
	summary: 'An upstream is an address that this server listens on.',
	documentation: [
		'A request proxied to the server itself comes in again. If the same site serves it, it',
		`loops until something runs out; a copy of \`mirror\` arrives once more. Give the application a different port from the site's.`,
	].join('\n'),
	dependsOn: 'served site',
	check: cx => {
		for (const { step, pointer, pipeline } of cx.walkedDocument.steps) {
			for (const { text: address, pointer: addressPointer } of traitsOf(step).upstreamAddressesOf?.(step) ?? []) {
				const parts = /^(?:(https?):\/\/)?(\[[^\]]*\]|[^:/[\]]*)(?::(\d+))?$/.exec(address);
				if (!parts) continue;
				const [, scheme, host, port] = parts as unknown as [string, string?, string?, string?];
				if (host !== '' && !isLoopback(host!)) continue;
				const portNumber = port === undefined ? (scheme === 'https' ? 443 : 80) : Number(port);
				const ownListener = cx.plan.listeners.find(
					listener =>
						listener.port === portNumber &&
						(listener.host === '' ||
							listener.host === '0.0.0.0' ||
							listener.host === '::' ||
							isLoopback(listener.host)) &&
						listener.sites.some(({ site, hosts }) => site === pipeline.site && hosts.length === 0),
				);
				if (!ownListener) continue;
				// `mirror` does not copy a copy again, so each request arrives only twice.
				const effect = traitsOf(step).answers === undefined ? 'each request would arrive twice' : 'requests would loop';
				cx.reportAt(pointer + addressPointer, `\`${address}\` is this very site: ${effect}.`, {
					words: address,
				});
			}
		}
	},
};
