/** `svc reverse-proxy`. */
import { isSiteAddress, needsTls, parseSiteAddress } from '../../compiler/document/site-address.ts';
import { quoted } from '../arguments.ts';
import { type Command, CommandFailure } from '../command.ts';
import { headerEdits, headerField, serveDocument } from '../quick-server.ts';

/** Passes requests on to upstreams. */
export const reverseProxy: Command = {
	name: 'reverse-proxy',
	summary: 'Pass requests on to upstreams',
	details: [
		'A host without http:// is served over HTTPS, which this build refuses: give --from http://localhost:8080 or --from :8080. A header given once replaces the one that is there; one given several times is added.',
	],
	options: [
		{ name: 'from', value: 'FROM', summary: 'Address to serve', default: 'localhost' },
		{ name: 'to', value: 'TO', required: true, repeatable: true, summary: 'Upstream address' },
		{
			name: 'header-up',
			value: 'HEADERS_UP',
			repeatable: true,
			summary: 'Request header to send upstream, `Field: value`',
		},
		{
			name: 'header-down',
			value: 'HEADERS_DOWN',
			repeatable: true,
			summary: 'Response header to send downstream, `Field: value`',
		},
		{ name: 'change-host-header', short: 'c', summary: 'Set the Host header to the address of the upstream' },
		{ name: 'disable-redirects', summary: 'Listen for no redirects from HTTP to HTTPS; this build never does' },
		{ name: 'insecure', summary: 'Skip verification of upstream certificates', later: true },
		{ name: 'internal-certs', summary: 'Take certificates from the internal authority', later: true },
	],
	run({ flag, value, values, verbose }) {
		const to = values('to');
		const from = value('from') ?? 'localhost';
		checkAddress(from);
		const up = values('header-up').map(headerField);
		if (flag('change-host-header')) up.push({ name: 'Host', value: '{http.reverse_proxy.upstream.hostport}' });
		const down = values('header-down').map(headerField);
		const proxy = {
			handler: 'proxy',
			upstreams: { to },
			...(up.length > 0 ? { header_up: headerEdits(up) } : {}),
			...(down.length > 0 ? { header_down: headerEdits(down) } : {}),
		};
		return serveDocument({ sites: [{ addresses: [from], pipeline: [proxy] }] }, verbose);
	},
};

function checkAddress(text: string): void {
	const address = parseSiteAddress(text);
	if (!isSiteAddress(address))
		throw new CommandFailure(`${quoted(text)} is not an address to serve: ${address.message}`);
	if (needsTls(address, { http: 80, https: 443 })) {
		throw new CommandFailure(
			`${quoted(text)} would be served over HTTPS, which is not part of this build yet; give --from with http:// or a port alone, such as --from :8080.`,
		);
	}
}
