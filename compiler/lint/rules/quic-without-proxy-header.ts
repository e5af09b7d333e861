/**
 * The lint rule `servers/quic-without-proxy-header`, which reports a listener that expects PROXY headers and also serves HTTP/3.
 */
import { http3RequestFor } from '../../codegen/plan/http3-request.ts';
import { readsProxyHeader, type ServerSettings, serverSettingsFor } from '../../document/server-settings.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

export const quicWithoutProxyHeader: LintRule = {
	name: 'servers/quic-without-proxy-header',
	severity: 'warning',
	summary: 'A listener with `proxy_protocol` serves HTTP/3, which has no PROXY header.',
	documentation: [
		'A load balancer cannot put a PROXY header before QUIC packets. Requests over HTTP/3 have the address from which the packets',
		'come, which is the load balancer’s if it forwards them, and `deny` and the policies of `proxy_protocol` do not apply to them.',
		'Without `protocols`, such a listener has no HTTP/3. Write `h3` only if clients send their UDP packets to this server directly.',
	].join('\n'),
	dependsOn: 'listeners',
	check: cx => {
		const { settings = {} } = cx.document;
		const servers = (settings.servers ?? []) as readonly ServerSettings[];
		const reportedServers = new Set<ServerSettings>();
		for (const listener of cx.plan.listeners) {
			const server = serverSettingsFor(settings, listener);
			if (!readsProxyHeader(server) || http3RequestFor(listener, settings) === undefined) continue;
			if (reportedServers.has(server)) continue;
			reportedServers.add(server);
			cx.reportAt(
				`/settings/servers/${servers.indexOf(server)}/listener_wrappers`,
				'This listener also serves HTTP/3 (`h3`), which has no PROXY header.',
				{
					words: 'proxy_protocol',
					hint: 'Write `protocols h1 h2`, unless clients send their UDP packets to this server directly.',
				},
			);
		}
	},
};
