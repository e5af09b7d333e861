/**
 * The lint rule `proxy/host-of-upstream`, which reports a `header_up Host` that hides the requested host from an upstream
 * without TLS.
 */
import { fieldEditsOf } from '../inspection/header-fields.ts';
import type { LintRule } from '../inspection/lint-rule.ts';
import { usesTlsToUpstreams } from '../inspection/upstream-transport.ts';

export const requestedHostHidden: LintRule = {
	name: 'proxy/host-of-upstream',
	severity: 'note',
	summary: '`header_up Host` hides the host name that the client requested from an upstream without TLS.',
	documentation: [
		"An application builds its redirects, links and cookies from `Host`. If that is the upstream's address, they point",
		'to a name that only the internal network knows. Setting it is necessary for an upstream over TLS that serves by name; for others,',
		'leave the field unchanged.',
	].join('\n'),
	dependsOn: 'site',
	check: cx => {
		for (const { name, value, pointer, editedMessage, walkedStep, isRemoval } of fieldEditsOf(cx.walkedDocument)) {
			if (editedMessage !== 'upstream_request' || isRemoval || name.toLowerCase() !== 'host') continue;
			const isUpstreamAddress = /^\{http\.reverse_proxy\.upstream\.(?:hostport|host|address)\}$/.test(value);
			if (!isUpstreamAddress || usesTlsToUpstreams(walkedStep.step, cx.document)) continue;
			cx.reportAt(pointer, 'The upstream does not see the host name that the client requested.', {
				words: `header_up ${name}`,
				hint: 'Leave `Host` unchanged, unless the upstream serves by its own name.',
			});
		}
	},
};
