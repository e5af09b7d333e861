/** The authority of a URI or a `Host` field: a host and perhaps a port (RFC 3986 §3.2, RFC 9110 §7.2). */
import { isIPv6 } from 'node:net';

/** A parsed authority. */
export interface Authority {
	/** Lower case, IPv6 without brackets. */
	readonly host: string;
	/** 0 to 65535; undefined when there is none (`example.com`, `example.com:`). */
	readonly port: number | undefined;
}

/** A registered name, percent-encoding left out: no name that a site can have needs it. */
const REG_NAME = /^[A-Za-z0-9\-._~!$&'()*+,;=]+$/;

/** Parses an authority; undefined when it is empty or malformed, or holds user information. */
export function parseAuthority(text: string): Authority | undefined {
	let host: string;
	let rest: string;
	if (text.startsWith('[')) {
		const end = text.indexOf(']');
		if (end < 0) return undefined;
		host = text.slice(1, end);
		rest = text.slice(end + 1);
		// A zone means something on one machine only (RFC 6874 §4).
		if (host.includes('%') || !isIPv6(host)) return undefined;
	} else {
		const colon = text.indexOf(':');
		host = colon < 0 ? text : text.slice(0, colon);
		rest = colon < 0 ? '' : text.slice(colon);
		if (!REG_NAME.test(host)) return undefined;
	}
	if (rest === '' || rest === ':') return { host: host.toLowerCase(), port: undefined };
	if (!/^:[0-9]{1,5}$/.test(rest)) return undefined;
	const port = Number(rest.slice(1));
	return port > 65535 ? undefined : { host: host.toLowerCase(), port };
}
