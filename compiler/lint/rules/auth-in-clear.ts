/** The lint rule `auth/in-clear`, which reports `basic_auth` that asks for a password over plain HTTP. */
import { traitsOf } from '../inspection/answering.ts';
import type { LintRule } from '../inspection/lint-rule.ts';
import { isLoopback } from '../inspection/public-host.ts';

export const passwordOverPlainHttp: LintRule = {
	name: 'auth/in-clear',
	severity: 'warning',
	summary: '`basic_auth` asks for a password over plain HTTP.',
	documentation: [
		'The password crosses the network with every request and can be read on the way. Serve the site over TLS. Sites that are',
		'bound to loopback or behind proxies listed in `trusted_proxies` are not reported.',
	].join('\n'),
	dependsOn: 'served site',
	check: cx => {
		if ((cx.document.settings?.trusted_proxies as unknown) !== undefined) return;
		for (const { step, pointer, pipeline } of cx.walkedDocument.steps) {
			if (!traitsOf(step).asksForPasswords || pipeline.site === undefined) continue;
			const plainListener = cx.plan.listeners.find(
				({ scheme, host, sites }) =>
					scheme === 'http' &&
					!(host !== '' && isLoopback(host)) &&
					sites.some(({ site, hosts }) => site === pipeline.site && (hosts.length === 0 || !hosts.every(isLoopback))),
			);
			if (!plainListener) continue;
			cx.reportAt(pointer, `Port ${plainListener.port} receives passwords over plain HTTP.`, {
				hint: 'Serve the site over TLS, or bind it to loopback.',
			});
		}
	},
};
