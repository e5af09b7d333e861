/** The command `svc reverse-proxy`: serves one site, which its options describe, without a configuration file. */

import { isSiteAddress, parseSiteAddress } from '../../compiler/document/site-address.ts';
import { applySchemes } from '../../compiler/modules/directives/reverse-proxy/schemes.ts';
import { parseUpstream } from '../../compiler/modules/directives/reverse-proxy/upstream-address.ts';
import type { UpstreamSettings } from '../../compiler/modules/directives/reverse-proxy/upstream-pool.ts';
import { quoteWord } from '../command/arguments.ts';
import { type Command, CommandFailure } from '../command/command.ts';
import { parseHeaderField, serveDocument, toHeaderEdits } from '../serving/quick-server.ts';

export const reverseProxy: Command = {
	name: 'reverse-proxy',
	summary: 'Forward requests to upstreams',
	details: [
		'A host without http:// is served over HTTPS, with redirects from HTTP: public names get certificates from a public authority, localhost and addresses from the internal one. --from :8080 and --from http://localhost:8080 are served over HTTP. An upstream may be host:port, https://host, h2c://host:port or unix//path; all must be of the same kind. A header that is given once replaces existing values; one that is given more than once is appended.',
	],
	options: [
		{ name: 'from', valueName: 'FROM', summary: 'Address to serve', default: 'localhost' },
		{ name: 'to', valueName: 'TO', required: true, repeatable: true, summary: 'Upstream address' },
		{
			name: 'header-up',
			valueName: 'HEADERS_UP',
			repeatable: true,
			summary: 'Request header to send upstream, `Field: value`',
		},
		{
			name: 'header-down',
			valueName: 'HEADERS_DOWN',
			repeatable: true,
			summary: 'Response header to send downstream, `Field: value`',
		},
		{ name: 'change-host-header', short: 'c', summary: 'Set the Host header to the upstream address' },
		{ name: 'disable-redirects', summary: 'Do not redirect HTTP to HTTPS' },
		{ name: 'insecure', summary: 'Skip verification of upstream certificates' },
		{ name: 'internal-certs', summary: 'Use certificates from the internal authority' },
	],
	run({ flag, value, values, verbose }) {
		const from = value('from') ?? 'localhost';
		const address = parseSiteAddress(from);
		if (!isSiteAddress(address)) {
			throw new CommandFailure(`${quoteWord(from)} is not a site address: ${address.message}`);
		}
		const requestFields = values('header-up').map(parseHeaderField);
		if (flag('change-host-header'))
			requestFields.push({ name: 'Host', value: '{http.reverse_proxy.upstream.hostport}' });
		const responseFields = values('header-down').map(parseHeaderField);
		const proxy = {
			handler: 'proxy',
			upstreams: upstreamSettings(values('to'), flag('insecure')),
			...(requestFields.length > 0 ? { header_up: toHeaderEdits(requestFields) } : {}),
			...(responseFields.length > 0 ? { header_down: toHeaderEdits(responseFields) } : {}),
		};
		const tls = flag('internal-certs') ? { tls: { issuers: [{ issuer: 'internal' }] } } : {};
		const settings = flag('disable-redirects') ? { settings: { auto_https: ['disable_redirects'] } } : {};
		return serveDocument({ ...settings, sites: [{ addresses: [from], ...tls, pipeline: [proxy] }] }, verbose);
	},
};

/**
 * Returns the settings of the upstream pool. `insecure` turns off the verification of certificates; without TLS it has no effect.
 */
function upstreamSettings(addresses: readonly string[], insecure: boolean): UpstreamSettings {
	for (const text of addresses) {
		const upstream = parseUpstream(text);
		if (upstream.kind === 'invalid')
			throw new CommandFailure(`${quoteWord(text)} is not an upstream address: ${upstream.message}.`);
	}
	const settings = applySchemes({ to: addresses });
	if (typeof settings === 'string') throw new CommandFailure(settings);
	const { transport } = settings;
	if (!insecure || transport?.type !== 'http' || !transport.tls) return settings;
	return { ...settings, transport: { ...transport, tls: { insecure_skip_verify: true } } };
}
