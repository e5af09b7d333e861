/**
 * Decides which fields may be passed on in trailers. A recipient may merge trailers into the head, where a forbidden field would
 * escape every rule that has already examined the head (RFC 9110 §6.5.1).
 */
import type { HeaderList } from './header-list.ts';

/** Fields that are never passed on in trailers, in either direction, grouped by purpose. */
const FORBIDDEN_NAMES: ReadonlySet<string> = new Set([
	// Message framing or hop-by-hop (RFC 9110 §7.6.1).
	...['connection', 'keep-alive', 'transfer-encoding', 'te', 'trailer', 'upgrade', 'http2-settings', 'via'],
	// Request routing.
	...['host', 'forwarded', 'origin', 'referer', 'destination', 'alt-svc', 'alt-used', 'location', 'max-forwards'],
	...['x-original-url', 'x-original-uri', 'x-original-host', 'x-rewrite-url', 'x-host'],
	// Request modifiers.
	...['expect', 'range', 'if', 'cache-control', 'pragma', 'prefer', 'early-data', 'depth', 'overwrite', 'lock-token'],
	...['x-http-method', 'x-http-method-override', 'x-method-override'],
	// Authentication, or state that authenticates.
	...['authorization', 'www-authenticate', 'cookie', 'cookie2', 'set-cookie', 'set-cookie2'],
	// Identity of the client.
	...['x-real-ip', 'x-client-ip', 'client-ip', 'true-client-ip', 'cf-connecting-ip', 'fastly-client-ip', 'from'],
	...['x-cluster-client-ip', 'x-remote-ip', 'x-remote-addr', 'x-originating-ip', 'x-azure-clientip'],
	// Response control.
	...['age', 'date', 'expires', 'retry-after', 'vary', 'warning', 'allow', 'refresh', 'strict-transport-security'],
	...['clear-site-data', 'x-sendfile', 'cdn-cache-control', 'surrogate-control'],
]);

/** Prefixes of the names of fields that are never passed on in trailers. */
const FORBIDDEN_PREFIXES: readonly string[] = [
	...['content-', 'accept', 'if-', 'proxy-', 'sec-', 'access-control-', 'x-forwarded', 'x-accel-'],
];

/** Exceptions to {@link FORBIDDEN_PREFIXES}: fields whose definitions allow them in trailers (RFC 9530 §2, RFC 9110 §14.3). */
const ALLOWED_NAMES: ReadonlySet<string> = new Set(['content-digest', 'accept-ranges']);

/** Prefixes of request fields in which proxies tell applications who the user is. */
const USER_PREFIXES: readonly string[] = ['remote-', 'x-remote-', 'x-auth', 'x-webauth-', 'x-user', 'x-ssl-', 'ssl-'];

/** Reports whether a field may be passed on in the trailers of a message. */
export function isAllowedInTrailers(name: string, messageType: 'request' | 'response'): boolean {
	const lower = name.toLowerCase();
	if (FORBIDDEN_NAMES.has(lower)) return false;
	if (FORBIDDEN_PREFIXES.some(prefix => lower.startsWith(prefix))) return ALLOWED_NAMES.has(lower);
	return messageType === 'response' || !USER_PREFIXES.some(prefix => lower.startsWith(prefix));
}

/**
 * Removes the trailer fields that `Connection` names, as is done in the head (RFC 9110 §7.6.1). Returns undefined if none are left.
 */
export function endToEndTrailers(trailers: HeaderList, connectionOptions: string | undefined): HeaderList | undefined {
	if (connectionOptions === undefined) return trailers;
	for (const option of connectionOptions.toLowerCase().split(',')) trailers.delete(option.trim());
	return trailers.size === 0 ? undefined : trailers;
}
