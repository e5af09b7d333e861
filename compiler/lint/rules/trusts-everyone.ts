/** The lint rule `trusted-proxies/everyone`, which reports settings that trust every client to state its own address. */
import type { LintRule } from '../inspection/lint-rule.ts';

export const trustsEveryone: LintRule = {
	name: 'trusted-proxies/everyone',
	severity: 'warning',
	summary: 'Every client is trusted to state its own address.',
	documentation: [
		'With `0.0.0.0/0` or `::/0` among the trusted proxies, anybody can write any address into `X-Forwarded-For`, and `client_ip`,',
		'access logs and rate limits accept it. Name the networks of the proxies.',
	].join('\n'),
	dependsOn: 'site',
	check: cx => {
		const proxyLists = [
			{ pointer: '/settings/trusted_proxies', list: cx.scope.document.settings?.trusted_proxies as unknown },
		];
		for (const { step, pointer } of cx.walkedDocument.steps) {
			proxyLists.push({ pointer: `${pointer}/trusted_proxies`, list: step.trusted_proxies });
		}
		for (const { pointer, list } of proxyLists) {
			const ranges = Array.isArray(list) ? list : ((list as { ranges?: unknown } | undefined)?.ranges as unknown);
			if (!Array.isArray(ranges)) continue;
			ranges.forEach((range: unknown, index) => {
				if (typeof range !== 'string' || !/\/0$/.test(range)) return;
				cx.reportAt(`${pointer}/${index}`, `\`${range}\` includes everybody.`, {
					words: range,
					hint: 'Name the networks of the proxies, or `private_ranges`.',
				});
			});
		}
	},
};
