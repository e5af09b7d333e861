/** Parses hosts and authorities to a canonical form: the `Host` field, `:authority`, and host names in a configuration. */
import { domainToASCII } from 'node:url';
import { formatIp, parseIp } from './ip-address.ts';

/** The host and port of a request's authority (RFC 3986 §3.2). */
export interface Authority {
	/** Lower-case host without a trailing dot; an IPv6 address is in canonical form without brackets. Never empty. */
	readonly host: string;
	/** The port; undefined if it is missing or empty. */
	readonly port: number | undefined;
}

/**
 * For each character code: 1 if a host may contain the character as it is (unreserved and sub-delims of RFC 3986 §3.2.2), 2 for an
 * upper-case letter, and 0 for any other character.
 */
const HOST_CHAR_KINDS = new Uint8Array(128);
for (const c of "abcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,;=") HOST_CHAR_KINDS[c.charCodeAt(0)] = 1;
for (const c of 'ABCDEFGHIJKLMNOPQRSTUVWXYZ') HOST_CHAR_KINDS[c.charCodeAt(0)] = 2;

const MAX_HOST_CHARS = 255;

/**
 * Parses `host`, `host:port`, `[v6]` and `[v6]:port` (RFC 9110 §7.2). Returns undefined if the authority is empty or invalid,
 * which should be answered with 400. All spellings of a host give the same result, so that no site or matcher can be evaded by
 * case, a trailing dot, a port or another spelling of an IPv6 address. For the same reason, percent-encoded hosts and user
 * information are invalid.
 */
export function parseAuthority(text: string): Authority | undefined {
	if (text.charCodeAt(0) === 91) return parseBracketedIp(text);
	let hostEnd = text.length;
	let hasUpperCase = false;
	for (let i = 0; i < hostEnd; i++) {
		const c = text.charCodeAt(i);
		const charKind = c < 128 ? HOST_CHAR_KINDS[c] : 0;
		if (charKind === 1) continue;
		if (charKind === 2) hasUpperCase = true;
		else if (c === 58) hostEnd = i;
		else return undefined;
	}
	if (hostEnd === 0) return undefined;
	let port: number | undefined;
	if (hostEnd < text.length - 1) {
		port = parsePort(text, hostEnd + 1);
		if (port < 0) return undefined;
	}
	let host = hostEnd === text.length ? text : text.slice(0, hostEnd);
	if (hasUpperCase) host = host.toLowerCase();
	if (host.length > 1 && host.charCodeAt(host.length - 1) === 46) host = host.slice(0, -1);
	if (host.length > MAX_HOST_CHARS) return undefined;
	return { host, port };
}

/**
 * Returns the host of a valid authority as it was sent, including its case and trailing dot. An IPv6 address without a port keeps
 * its brackets, as in Caddy.
 */
export function hostAsSent(authority: string): string {
	if (authority.charCodeAt(0) === 91)
		return authority.endsWith(']') ? authority : authority.slice(1, authority.indexOf(']'));
	const colon = authority.indexOf(':');
	return colon === -1 ? authority : authority.slice(0, colon);
}

function parseBracketedIp(text: string): Authority | undefined {
	const closingBracket = text.indexOf(']');
	if (closingBracket === -1) return undefined;
	const ipText = text.slice(1, closingBracket);
	const ip = ipText.includes(':') && !ipText.includes('%') ? parseIp(ipText) : undefined;
	if (!ip) return undefined;
	let port: number | undefined;
	if (closingBracket + 1 < text.length) {
		if (text.charCodeAt(closingBracket + 1) !== 58) return undefined;
		if (closingBracket + 2 < text.length) {
			port = parsePort(text, closingBracket + 2);
			if (port < 0) return undefined;
		}
	}
	return { host: formatIp(ip), port };
}

function parsePort(text: string, start: number): number {
	let port = 0;
	for (let i = start; i < text.length; i++) {
		const c = text.charCodeAt(i);
		if (c < 48 || c > 57) return -1;
		port = port * 10 + c - 48;
		if (port > 65535) return -1;
	}
	return port;
}

/**
 * Returns a configured host in the form that requests have: in lower case, internationalized names as ASCII (UTS 46), without a
 * trailing dot, and IPv6 addresses in canonical form without brackets. Labels `*` are kept. Returns undefined if the host is
 * invalid.
 */
export function canonicalHost(text: string): string | undefined {
	if (text.startsWith('[') || text.includes(':')) {
		const ip = parseIp(text.startsWith('[') && text.endsWith(']') ? text.slice(1, -1) : text);
		return ip && ip.zone === '' ? formatIp(ip) : undefined;
	}
	let host = text.toLowerCase();
	if (host.length > 1 && host.endsWith('.')) host = host.slice(0, -1);
	if (/[\u0080-\uffff]/.test(host)) {
		// `*` is not valid in a domain name, so each label is converted on its own.
		const labels = host.split('.').map(label => (label === '*' ? label : domainToASCII(label)));
		if (labels.some(label => label === '')) return undefined;
		host = labels.join('.');
	}
	for (let i = 0; i < host.length; i++) if (HOST_CHAR_KINDS[host.charCodeAt(i)] !== 1) return undefined;
	return host.length <= MAX_HOST_CHARS ? host : undefined;
}

/** Reports whether a host matches a pattern in which each `*` label matches exactly one label. Both must be canonical. */
export function hostMatches(host: string, pattern: string): boolean {
	let hostStart = 0;
	let patternStart = 0;
	for (;;) {
		let hostEnd = host.indexOf('.', hostStart);
		let patternEnd = pattern.indexOf('.', patternStart);
		if ((hostEnd === -1) !== (patternEnd === -1)) return false;
		const isLastLabel = hostEnd === -1;
		if (isLastLabel) {
			hostEnd = host.length;
			patternEnd = pattern.length;
		}
		if (hostEnd === hostStart) return false;
		const isWildcard = patternEnd - patternStart === 1 && pattern.charCodeAt(patternStart) === 42;
		if (
			!isWildcard &&
			(hostEnd - hostStart !== patternEnd - patternStart ||
				!host.startsWith(pattern.slice(patternStart, patternEnd), hostStart))
		)
			return false;
		if (isLastLabel) return true;
		hostStart = hostEnd + 1;
		patternStart = patternEnd + 1;
	}
}
