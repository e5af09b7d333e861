/**
 * Decides how the cache treats a request, and computes its key. The key covers everything on which a response could depend
 * without declaring it in `Vary`.
 */
import type { Exchange, Request } from '../../../exchange/exchange.ts';
import { isSameFieldName } from '../../../exchange/header-list.ts';

/** How the cache treats a request. */
export type CacheRole =
	/** The cache answers the request, and stores the response. */
	| 'serve'
	/** The cache answers the request if possible, and stores nothing. */
	| 'look'
	/** The request bypasses the cache. */
	| 'pass'
	/** The request bypasses the cache. If it succeeds, the stored responses of its URL are invalidated. */
	| 'write';

/** Safe methods (RFC 9110 §9.2.1). */
const SAFE_METHODS: ReadonlySet<string> = new Set([
	'GET',
	'HEAD',
	'OPTIONS',
	'TRACE',
	'PROPFIND',
	'REPORT',
	'SEARCH',
	'QUERY',
]);

/** Header fields by which frameworks override the request's method or target. */
const OVERRIDE_FIELDS: ReadonlySet<string> = new Set([
	...['x-http-method', 'x-rewrite-url', 'x-original-url', 'x-original-uri', 'x-override-url'],
	...['x-method-override', 'x-http-method-override'],
]);

/**
 * Returns a field name as seen by programs that turn fields into variables, as CGI does. Such programs cannot distinguish `_` and
 * `-`.
 */
function normalizeFieldName(name: string): string {
	const lowerName = name.toLowerCase();
	return lowerName.includes('_') ? lowerName.replaceAll('_', '-') : lowerName;
}

/** Decides how the cache treats a request, by its method, body and fields. */
export function cacheRoleOf(x: Exchange): CacheRole {
	const { request } = x;
	const { method } = request;
	if (method !== 'GET' && method !== 'HEAD') return SAFE_METHODS.has(method) ? 'pass' : 'write';
	// The response to a GET with a body may depend on the body, which is not part of the key.
	if (request.body !== null) return 'pass';
	let role: CacheRole = method === 'GET' ? 'serve' : 'look';
	const { headers } = request;
	for (let i = 0, size = headers.size; i < size; i++) {
		const name = headers.nameAt(i);
		switch (name.length) {
			case 5:
				if (isSameFieldName(name, 'range')) role = 'look';
				break;
			case 7:
				if (isSameFieldName(name, 'upgrade')) return 'pass';
				break;
			case 8:
				if (isSameFieldName(name, 'if-match')) return 'pass';
				break;
			case 13:
			case 14:
			case 17:
			case 22:
				if (OVERRIDE_FIELDS.has(normalizeFieldName(name))) return 'pass';
				break;
			case 19:
				if (isSameFieldName(name, 'if-unmodified-since')) return 'pass';
		}
	}
	return role;
}

/** Header fields from which frameworks build links and choose sites. Their values are part of the key. */
const ROUTING_FIELDS: readonly string[] = [
	...['x-forwarded-host', 'x-forwarded-proto', 'x-forwarded-scheme', 'x-forwarded-port', 'x-forwarded-server'],
	...['x-forwarded-prefix', 'x-forwarded-ssl', 'x-host', 'x-original-host', 'front-end-https', 'x-url-scheme'],
	...['x-forwarded-protocol', 'x-forwarded-path', 'x-forwarded-uri', 'x-forwarded-url', 'x-http-host-override'],
	...['x-backend-host', 'x-scheme', 'x-script-name'],
];

/** Returns `host[:port]` as sent by the client, in lower case. */
export function cacheKeyHost(request: Request): string {
	return request.authority.toLowerCase();
}

/**
 * Returns the primary key: the site and the step's place in it; scheme, authority and target as received; and the current
 * target if it was rewritten. Nothing is decoded: whatever an origin could distinguish has different keys.
 */
export function primaryKey(x: Exchange, stepPlace: string): string {
	const { request, received } = x;
	let key = `${x.siteName}${stepPlace}${request.scheme}://${cacheKeyHost(request)}${received.path}`;
	if (received.query !== undefined) key += `?${received.query}`;
	if (request.path !== received.path || request.query !== received.query) {
		key += ` ${request.query === undefined ? request.path : `${request.path}?${request.query}`}`;
	}
	return appendRoutingFields(x, key);
}

/** Returns the key for `text`, the rendered template of `key` in the configuration. */
export function configuredKey(x: Exchange, stepPlace: string, text: string): string {
	// The configured text ends at the first newline, so a newline from a decoded path must be escaped.
	return appendRoutingFields(x, `${x.siteName}${stepPlace}${text.replaceAll('\n', '%0A')}`);
}

function appendRoutingFields(x: Exchange, key: string): string {
	const { headers } = x.request;
	let fullKey = key;
	for (let i = 0, size = headers.size; i < size; i++) {
		const name = headers.nameAt(i);
		const firstCode = name.charCodeAt(0) | 32;
		// All names in `ROUTING_FIELDS` begin with `x` (120) or `f` (102).
		if (firstCode !== 120 && firstCode !== 102) continue;
		const fieldName = normalizeFieldName(name);
		if (ROUTING_FIELDS.includes(fieldName)) fullKey += `\n${fieldName}:${headers.valueAt(i)}`;
		else if (fieldName === 'forwarded') fullKey += `\nforwarded:${forwardedHostAndScheme(headers.valueAt(i))}`;
	}
	return fullKey;
}

/** Returns the host and scheme in a `Forwarded` field. Client addresses in the field are not part of the key. */
function forwardedHostAndScheme(value: string): string {
	return [...value.matchAll(/(?:^|[;,])[ \t]*((?:host|proto)=[^;,]*)/gi)]
		.map(match => match[1]!.toLowerCase())
		.join(';');
}
