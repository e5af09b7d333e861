/** `auth/in-clear`. */
import { traitsOf } from '../answering.ts';
import type { LintRule } from '../lint-rule.ts';
import { isLoopback } from '../public-host.ts';

/** `basic_auth` asks for a password over plain HTTP. */
export const authInClear: LintRule = {
	name: 'auth/in-clear',
	severity: 'warning',
	summary: '`basic_auth` asks for a password over plain HTTP.',
	documentation: [
		'The password goes over the network with every request, readable by everybody on the way. Serve the site over TLS. What',
		'is bound to loopback, or stands behind proxies that `trusted_proxies` names, is not reported.',
	].join('\n'),
	check: cx => {
		if ((cx.document.settings?.trusted_proxies as unknown) !== undefined) return;
		for (const { step, pointer, pipeline } of cx.walked.steps) {
			if (!traitsOf(step).asksForPasswords || pipeline.site === undefined) continue;
			const open = cx.plan.listeners.find(
				({ scheme, host, sites }) =>
					scheme === 'http' &&
					!(host !== '' && isLoopback(host)) &&
					sites.some(({ site, hosts }) => site === pipeline.site && (hosts.length === 0 || !hosts.every(isLoopback))),
			);
			if (!open) continue;
			cx.at(pointer, `Passwords come in over plain HTTP on port ${open.port}.`, {
				hint: 'Serve the site over TLS, or bind it to loopback.',
			});
		}
	},
};
