/** Placeholders with parts of the request: method, host, addresses, header fields, cookies, body and times. */
import { hostAsSent } from '../../exchange/authority.ts';
import type { Exchange } from '../../exchange/exchange.ts';
import { maskedAddress } from '../../exchange/ip-ranges.ts';
import { requestBodyBytes } from '../context/request-body.ts';
import { definePlaceholder, definePlaceholderFamily, type Placeholder } from './placeholder.ts';
import { URI_PLACEHOLDERS } from './uri.ts';

/** Variable with the UUID of a request, which is generated when the placeholder is first read. */
export const UUID_VARIABLE = 'http.request.uuid';

function formatHostPort(host: string, port: number): string {
	return host.includes(':') ? `[${host}]:${port}` : host === '' ? '' : `${host}:${port}`;
}

function authorityPort(x: Exchange): string {
	const authority = x.request.authority;
	const colon = authority.lastIndexOf(':');
	return colon > authority.lastIndexOf(']') ? authority.slice(colon + 1) : '';
}

function protocolName(x: Exchange): string {
	return x.protocol.endsWith('.0') && !x.protocol.endsWith('/1.0') ? x.protocol.slice(0, -2) : x.protocol;
}

/** Formats the time since the request arrived, such as `1.25ms` or `2.5s`. */
function elapsedText(x: Exchange): string {
	const elapsedMs = performance.now() - x.startedAt;
	if (elapsedMs >= 1000) return `${Number((elapsedMs / 1000).toFixed(9))}s`;
	if (elapsedMs >= 1) return `${Number(elapsedMs.toFixed(6))}ms`;
	return `${Number((elapsedMs * 1000).toFixed(3))}µs`;
}

/** Returns the first value of a cookie whose name, in lower case, is `lowerName`; undefined if it was not sent. */
export function requestCookie(x: Exchange, lowerName: string): string | undefined {
	for (const field of x.request.headers.getAll('cookie')) {
		for (const pair of field.split(';')) {
			const equals = pair.indexOf('=');
			if (equals === -1 || pair.slice(0, equals).trim().toLowerCase() !== lowerName) continue;
			const value = pair.slice(equals + 1).trim();
			return value.length > 1 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value;
		}
	}
	return undefined;
}

function requestUuid(x: Exchange): string {
	const existingUuid = x.variable(UUID_VARIABLE);
	if (existingUuid !== undefined) return existingUuid as string;
	const newUuid = crypto.randomUUID();
	x.variables.set(UUID_VARIABLE, newUuid);
	return newUuid;
}

/** The placeholders `http.request.*`. */
export const REQUEST_PLACEHOLDERS: readonly Placeholder[] = [
	definePlaceholder('http.request.method', 'Method of the request.', x => x.request.method),
	definePlaceholder('http.request.scheme', '`http` or `https`.', x => x.request.scheme),
	definePlaceholder('http.request.proto', 'Protocol version, such as `HTTP/1.1` or `HTTP/2.0`.', x => x.protocol),
	definePlaceholder('http.request.proto_name', 'Protocol, such as `HTTP/1.1` or `HTTP/2`.', protocolName),
	definePlaceholder('http.request.host', 'Host without port, in lower case.', x => x.request.host),
	definePlaceholder('http.request.sent_host', 'Host without port, as sent: `{host}` in a Compatfile.', x =>
		hostAsSent(x.request.authority),
	),
	definePlaceholder('http.request.hostport', 'Host as sent, with its port.', x => x.request.authority),
	definePlaceholder('http.request.port', 'Port of the host as sent, empty if there was none.', authorityPort),
	definePlaceholderFamily(
		'http.request.host.labels.*',
		'A label of the host, counted from the right; 0 is the last.',
		index => {
			if (!/^\d{1,3}$/.test(index)) return undefined;
			return x => x.request.host.split('.').at(-1 - Number(index)) ?? '';
		},
	),
	definePlaceholder('http.request.local', 'Local address and port of the connection.', x =>
		formatHostPort(x.connection.localAddress, x.connection.localPort),
	),
	definePlaceholder('http.request.local.host', 'Local address of the connection.', x => x.connection.localAddress),
	definePlaceholder('http.request.local.port', 'Local port of the connection.', x => x.connection.localPort),
	definePlaceholder('http.request.remote', 'Address and port of the peer.', x =>
		formatHostPort(x.connection.remoteAddress, x.connection.remotePort),
	),
	definePlaceholder('http.request.remote.host', 'Address of the peer.', x => x.connection.remoteAddress),
	definePlaceholder('http.request.remote.port', 'Port of the peer.', x => x.connection.remotePort),
	definePlaceholderFamily(
		'http.request.remote.host/*',
		'Address of the peer truncated to a prefix: `/24`, or `/24,64` for both families.',
		bits => {
			const lengthsMatch = /^(\d{1,2})(?:,(\d{1,3}))?$/.exec(bits);
			if (!lengthsMatch) return undefined;
			const v4Bits = Number(lengthsMatch[1]);
			const v6Bits = Number(lengthsMatch[2] ?? 128);
			if (v4Bits > 32 || v6Bits > 128) return undefined;
			return x => maskedAddress(x.connection.remoteAddress, v4Bits, v6Bits) ?? '';
		},
	),
	...URI_PLACEHOLDERS,
	definePlaceholderFamily('http.request.header.*', 'A field of the request; several are joined by commas.', name => {
		const lowerName = name.toLowerCase();
		return x => {
			const values = x.request.headers.getAll(lowerName);
			return values.length === 1 ? values[0]! : values.join(',');
		};
	}),
	definePlaceholderFamily('http.request.cookie.*', 'A cookie of the request.', name => {
		const lowerName = name.toLowerCase();
		return x => requestCookie(x, lowerName) ?? '';
	}),
	{
		name: 'http.request.body',
		summary: 'The whole body of the request.',
		compile: (_, scope) => {
			scope.needsBody();
			return x => requestBodyBytes(x);
		},
	},
	{
		name: 'http.request.body_base64',
		summary: 'The whole body of the request in Base64.',
		compile: (_, scope) => {
			scope.needsBody();
			return x => Buffer.from(requestBodyBytes(x)).toString('base64');
		},
	},
	definePlaceholder('http.request.uuid', 'A random UUID, the same for the whole request.', requestUuid),
	definePlaceholder('http.request.duration', 'Time since the request arrived, as text.', elapsedText),
	definePlaceholder(
		'http.request.duration_ms',
		'Milliseconds since the request arrived.',
		x => performance.now() - x.startedAt,
	),
];
