/** The values that a transport needs for each request: the server name, the client's address, FastCGI variables. */

import type { Exchange } from '../../../exchange/exchange.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import type { ClientAddresses, TransportValues } from '../../../exchange/leases.ts';
import type { CompileContext } from '../../contract/compile-context.ts';
import { compileCgiVariables } from './cgi-variables.ts';
import type { UpstreamSettings } from './upstream-pool.ts';

/** Computes a transport's values for a request. `headers` are the fields that are sent to the upstream. */
export type TransportValuesMaker = (x: Exchange, headers: HeaderList) => TransportValues;

/** Compiles the computation of a transport's values; undefined if the transport needs no such values. */
export function compileTransportValues(
	settings: UpstreamSettings,
	cx: CompileContext,
): TransportValuesMaker | undefined {
	const { transport } = settings;
	if (transport?.type === 'fastcgi') {
		const cgiVariablesOf = compileCgiVariables(transport, cx);
		return (x, headers) => ({ serverName: undefined, client: undefined, params: cgiVariablesOf(x, headers) });
	}
	if (!transport) return undefined;
	const serverNameText = transport.tls?.server_name;
	const serverNameTemplate = serverNameText?.includes('{') ? cx.template(serverNameText, 'empty') : undefined;
	const sendsClient = transport.proxy_protocol !== undefined;
	if (!serverNameTemplate && !sendsClient) return undefined;
	return x => ({
		serverName: serverNameTemplate && validHostNameOrEmpty(serverNameTemplate.render(x)),
		client: sendsClient ? clientAddresses(x, cx.clientIp(x)) : undefined,
		params: undefined,
	});
}

/**
 * Returns a name for TLS; '' if it is invalid, in which case the upstream's own name is used. An invalid name would make the
 * handshake fail with an obscure error of the TLS library.
 */
function validHostNameOrEmpty(text: string): string {
	return /^[A-Za-z0-9._:-]{1,253}$/.test(text) ? text : '';
}

function clientAddresses({ connection }: Exchange, clientIp: string): ClientAddresses {
	return {
		address: clientIp,
		// The port of a client behind another proxy is unknown.
		port: clientIp === connection.remoteAddress ? connection.remotePort : 0,
		localAddress: connection.localAddress,
		localPort: connection.localPort,
	};
}
