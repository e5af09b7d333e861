/** Per-request values for a transport: names with placeholders, the client's address, FastCGI variables. */

import type { Exchange } from '../../../exchange/exchange.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import type { ClientAddresses, TransportValues } from '../../../exchange/leases.ts';
import type { CompileContext } from '../../contract/compile-context.ts';
import { compileCgiVariables } from './cgi-variables.ts';
import type { UpstreamSettings } from './upstream-pool.ts';

/** Computes the values; undefined if the transport needs none. `headers` are the fields sent to the upstream. */
export type TransportValuesMaker = (x: Exchange, headers: HeaderList) => TransportValues;

/** Compiles the values that the settings need. */
export function compileTransportValues(
	settings: UpstreamSettings,
	cx: CompileContext,
): TransportValuesMaker | undefined {
	const { transport } = settings;
	if (transport?.type === 'fastcgi') {
		const variables = compileCgiVariables(transport, cx);
		return (x, headers) => ({ serverName: undefined, client: undefined, params: variables(x, headers) });
	}
	if (!transport) return undefined;
	const name = transport.tls?.server_name;
	const serverName = name?.includes('{') ? cx.template(name, 'empty') : undefined;
	const tellsClient = transport.proxy_protocol !== undefined;
	if (!serverName && !tellsClient) return undefined;
	return x => ({
		serverName: serverName && hostName(serverName.render(x)),
		client: tellsClient ? clientOf(x, cx.clientIp(x)) : undefined,
		params: undefined,
	});
}

/**
 * Returns the name, or '' if it is invalid: the upstream's own name is then used. An invalid TLS name would fail the handshake
 * with an error of the TLS library.
 */
function hostName(text: string): string {
	return /^[A-Za-z0-9._:-]{1,253}$/.test(text) ? text : '';
}

function clientOf({ connection }: Exchange, address: string): ClientAddresses {
	return {
		address,
		// The port of a client behind another proxy is unknown.
		port: address === connection.remoteAddress ? connection.remotePort : 0,
		localAddress: connection.localAddress,
		localPort: connection.localPort,
	};
}
