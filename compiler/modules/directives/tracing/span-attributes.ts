/**
 * Computes the attributes of a server span, according to the OpenTelemetry semantic conventions for HTTP (1.23 and later, stable).
 */
import { parseAuthority } from '../../../exchange/authority.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { SpanValue } from '../../../exchange/leases.ts';

/** Methods that are recorded by name. Any other method is recorded as `_OTHER`, so that clients cannot invent values. */
const KNOWN_METHODS: ReadonlySet<string> = new Set([
	...['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH', 'QUERY'],
]);

/** Maximum number of characters of an attribute's value. It bounds the size of exported batches, whatever clients send. */
const MAX_ATTRIBUTE_LENGTH = 4096;

/** Matches query parameters that contain the signature of a URL. It is redacted, because anyone who knows it can use the URL. */
const SIGNATURE_PARAMETERS = /(^|&)(AWSAccessKeyId|Signature|sig|X-Goog-Signature|X-Amz-Signature)=[^&]*/gi;

export function defaultSpanName(method: string): string {
	return KNOWN_METHODS.has(method) ? method : 'HTTP';
}

/** Returns a value, truncated to {@link MAX_ATTRIBUTE_LENGTH} characters. */
export function truncateAttribute(value: string): string {
	return value.length <= MAX_ATTRIBUTE_LENGTH ? value : value.slice(0, MAX_ATTRIBUTE_LENGTH);
}

/** Returns the span attributes of an exchange that has ended. */
export function requestAttributes(x: Exchange, clientIp: string): { [name: string]: SpanValue } {
	const { connection, received, request, response } = x;
	const { method } = received;
	const authority = parseAuthority(received.authority);
	const attributes: { [name: string]: SpanValue } = {
		'http.request.method': KNOWN_METHODS.has(method) ? method : '_OTHER',
		'url.scheme': request.scheme,
		'url.path': truncateAttribute(received.path),
		'server.address': truncateAttribute(authority?.host ?? received.authority),
		'server.port': authority?.port ?? (request.scheme === 'https' ? 443 : 80),
		'client.address': clientIp,
		'network.protocol.version': protocolVersion(x.protocol),
		'http.request.body.size': x.bytesReceived,
		'http.response.body.size': response.bytesSent,
	};
	if (!KNOWN_METHODS.has(method)) attributes['http.request.method_original'] = truncateAttribute(method);
	if (received.query !== undefined && received.query !== '') {
		attributes['url.query'] = truncateAttribute(received.query.replace(SIGNATURE_PARAMETERS, '$1$2=REDACTED'));
	}
	if (connection.remoteAddress !== '') {
		attributes['network.peer.address'] = connection.remoteAddress;
		attributes['network.peer.port'] = connection.remotePort;
	}
	const userAgent = request.headers.get('user-agent');
	if (userAgent !== undefined) attributes['user_agent.original'] = truncateAttribute(userAgent);
	if (x.isAborted) attributes['error.type'] = 'aborted';
	else if (response.status > 0) attributes['http.response.status_code'] = response.status;
	if (response.status >= 500) attributes['error.type'] = String(response.status);
	return attributes;
}

/** Returns the version of HTTP as spans name it: `1.1`, `2` or `3`. */
function protocolVersion(protocol: string): string {
	return protocol.slice('HTTP/'.length).replace(/^([23])\.0$/, '$1');
}
