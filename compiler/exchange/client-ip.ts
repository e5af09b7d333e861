/** Determines the client's address behind trusted proxies, for matchers, placeholders, proxying and logs. */
import type { Exchange } from './exchange.ts';
import { formatIp, parseIp } from './ip-address.ts';
import { IpRanges } from './ip-ranges.ts';

/** The global options that determine which peers are trusted. */
export interface TrustSettings {
	/** Ranges of trusted peers in CIDR notation. */
	readonly trusted_proxies?: readonly string[];
	/** True if clients of Unix sockets are trusted. */
	readonly trusted_proxies_unix?: unknown;
	readonly trusted_proxies_strict?: unknown;
	/** Names of the fields with the client's address, in order of preference; `X-Forwarded-For` if undefined. */
	readonly client_ip_headers?: unknown;
}

/** Variable that holds the client's address once it has been determined. */
export const CLIENT_IP_VARIABLE = 'client_ip';

/**
 * Compiles the trust settings to a function that returns the client's address. This is the peer's address, unless the peer is
 * trusted and a field names another address. The field is `X-Forwarded-For`, or the first of `client_ip_headers` with a valid
 * address. If it lists several addresses, the left-most valid one is used or, with `trusted_proxies_strict`, the right-most one
 * that is not itself trusted. Throws RangeError for an invalid range.
 */
export function compileClientIp(settings: TrustSettings): (x: Exchange) => string {
	const trustedProxies = settings.trusted_proxies;
	if ((!trustedProxies || trustedProxies.length === 0) && settings.trusted_proxies_unix !== true) {
		return x => x.connection.remoteAddress;
	}
	const trustedRanges = new IpRanges(trustedProxies ?? []);
	const configuredFieldNames = settings.client_ip_headers as readonly string[] | undefined;
	const forwardedFieldNames = (configuredFieldNames ?? ['X-Forwarded-For']).map(name => name.toLowerCase());
	const isStrict = settings.trusted_proxies_strict === true;
	const trustsUnixPeers = settings.trusted_proxies_unix === true;
	return x => {
		const cachedAddress = x.variable(CLIENT_IP_VARIABLE);
		if (cachedAddress !== undefined) return cachedAddress as string;
		const peerAddress = x.connection.remoteAddress;
		const isTrusted = peerAddress === '' ? trustsUnixPeers : trustedRanges.contains(peerAddress);
		const address = isTrusted
			? (forwardedAddress(x, forwardedFieldNames, isStrict ? trustedRanges : undefined) ?? peerAddress)
			: peerAddress;
		x.variables.set(CLIENT_IP_VARIABLE, address);
		return address;
	};
}

/**
 * Compiles a function that reports whether a peer's statements about the client are trusted, because the peer is in
 * `settings.trusted_proxies` or in `extraRanges`. Throws RangeError for an invalid range.
 */
export function compilePeerTrust(
	settings: TrustSettings,
	extraRanges: readonly string[] = [],
): (x: Exchange) => boolean {
	const rangeTexts = [...(settings.trusted_proxies ?? []), ...extraRanges];
	const trustsUnixPeers = settings.trusted_proxies_unix === true;
	if (rangeTexts.length === 0 && !trustsUnixPeers) return () => false;
	const trustedRanges = new IpRanges(rangeTexts);
	return ({ connection }) =>
		connection.remoteAddress === '' ? trustsUnixPeers : trustedRanges.contains(connection.remoteAddress);
}

function forwardedAddress(
	x: Exchange,
	fieldNames: readonly string[],
	trustedRanges: IpRanges | undefined,
): string | undefined {
	for (const fieldName of fieldNames) {
		const value = x.request.headers.getCombined(fieldName);
		if (value === undefined) continue;
		const items = value.split(',');
		if (trustedRanges) {
			for (let i = items.length - 1; i >= 0; i--) {
				const address = parseForwardedAddress(items[i]!);
				if (address === undefined) break;
				if (!trustedRanges.contains(address)) return address;
			}
		} else {
			for (const item of items) {
				const address = parseForwardedAddress(item);
				if (address !== undefined) return address;
			}
		}
	}
	return undefined;
}

/** Returns the address in a text such as `1.2.3.4`, `1.2.3.4:80`, `::1`, `[::1]` or `[::1]:80`; undefined if it is invalid. */
function parseForwardedAddress(item: string): string | undefined {
	let text = item.trim();
	if (text.startsWith('[')) text = text.slice(1, text.indexOf(']') === -1 ? undefined : text.indexOf(']'));
	else if (text.indexOf(':') !== -1 && text.indexOf(':') === text.lastIndexOf(':'))
		text = text.slice(0, text.indexOf(':'));
	const ip = parseIp(text);
	return ip && formatIp(ip);
}
