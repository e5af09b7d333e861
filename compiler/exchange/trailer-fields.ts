/**
 * Which fields may stand in trailers. Whoever gets a message may merge its trailers into its head, so that a field there
 * would evade every rule that has looked at the head (RFC 9110 §6.5.1).
 */
import type { HeaderList } from './header-list.ts';

/** Fields that never pass, whichever way, by what they do. */
const FORBIDDEN: ReadonlySet<string> = new Set([
	// They frame the message or belong to one connection (RFC 9110 §7.6.1).
	...['connection', 'keep-alive', 'transfer-encoding', 'te', 'trailer', 'upgrade', 'http2-settings', 'via'],
	// They route the request.
	...['host', 'forwarded', 'origin', 'referer', 'destination', 'alt-svc', 'alt-used', 'location', 'max-forwards'],
	...['x-original-url', 'x-original-uri', 'x-original-host', 'x-rewrite-url', 'x-host'],
	// They change what the request asks for.
	...['expect', 'range', 'if', 'cache-control', 'pragma', 'prefer', 'early-data', 'depth', 'overwrite', 'lock-token'],
	...['x-http-method', 'x-http-method-override', 'x-method-override'],
	// They authenticate, or carry a state that does.
	...['authorization', 'www-authenticate', 'cookie', 'cookie2', 'set-cookie', 'set-cookie2'],
	// They name the client.
	...['x-real-ip', 'x-client-ip', 'client-ip', 'true-client-ip', 'cf-connecting-ip', 'fastly-client-ip', 'from'],
	...['x-cluster-client-ip', 'x-remote-ip', 'x-remote-addr', 'x-originating-ip', 'x-azure-clientip'],
	// They control the response, or what becomes of it.
	...['age', 'date', 'expires', 'retry-after', 'vary', 'warning', 'allow', 'refresh', 'strict-transport-security'],
	...['clear-site-data', 'x-sendfile', 'cdn-cache-control', 'surrogate-control'],
]);

/** Beginnings of names of such fields. */
const FORBIDDEN_PREFIXES: readonly string[] = [
	...['content-', 'accept', 'if-', 'proxy-', 'sec-', 'access-control-', 'x-forwarded', 'x-accel-'],
];

/** Those of the kinds above whose definitions allow them in trailers (RFC 9530 §2, RFC 9110 §14.3). */
const ALLOWED: ReadonlySet<string> = new Set(['content-digest', 'accept-ranges']);

/** Beginnings of names by which proxies tell applications who a request's user is. */
const USER_PREFIXES: readonly string[] = ['remote-', 'x-remote-', 'x-auth', 'x-webauth-', 'x-user', 'x-ssl-', 'ssl-'];

/** True for a field that a message may have in its trailers. */
export function mayTrail(name: string, of: 'request' | 'response'): boolean {
	const lower = name.toLowerCase();
	if (FORBIDDEN.has(lower)) return false;
	if (FORBIDDEN_PREFIXES.some(prefix => lower.startsWith(prefix))) return ALLOWED.has(lower);
	return of === 'response' || !USER_PREFIXES.some(prefix => lower.startsWith(prefix));
}

/** Takes those out that `Connection` names, as it does in the head (RFC 9110 §7.6.1); undefined when none are left. */
export function endToEndTrailers(trailers: HeaderList, connection: string | undefined): HeaderList | undefined {
	if (connection === undefined) return trailers;
	for (const option of connection.toLowerCase().split(',')) trailers.delete(option.trim());
	return trailers.size === 0 ? undefined : trailers;
}
