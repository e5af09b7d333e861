/** Per-request values for a transport: names with placeholders, the client's address, FastCGI variables. */

import type { Exchange } from '../../../exchange/exchange.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import type { ClientAddresses, TransportValues } from '../../../exchange/leases.ts';
import type { CompileContext } from '../../contract/compile-context.ts';
import { compileCgiVariables } from './cgi-variables.ts';
import type { UpstreamSettings } from './upstream-pool.ts';

/** Computes the values for a request. `headers` are the fields sent to the upstream. */
export type TransportValuesMaker = (x: Exchange, headers: HeaderList) => TransportValues;

/** Compiles the values that the transport needs; undefined if it needs none. */
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
	const sendsClient = transport.proxy_protocol !== undefined;
	if (!serverName && !sendsClient) return undefined;
	return x => ({
		serverName: serverName && validHostName(serverName.render(x)),
		client: sendsClient ? clientAddresses(x, cx.clientIp(x)) : undefined,
		params: undefined,
	});
}

/**
 * Returns the name; '' if it is invalid, in which case the upstream's own name is used. An invalid name would make the handshake
 * fail with an obscure error of the TLS library.
 */
function validHostName(text: string): string {
	return /^[A-Za-z0-9._:-]{1,253}$/.test(text) ? text : '';
}

function clientAddresses({ connection }: Exchange, address: string): ClientAddresses {
	return {
		address,
		// The port of a client behind another proxy is unknown.
		port: address === connection.remoteAddress ? connection.remotePort : 0,
		localAddress: connection.localAddress,
		localPort: connection.localPort,
	};
}
