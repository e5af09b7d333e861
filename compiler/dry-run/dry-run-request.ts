/** The request of a dry run, and functions that parse its parts from the user's input. */
import { canonicalHost, parseAuthority } from '../exchange/authority.ts';
import type { ClientCertificate } from '../exchange/exchange.ts';
import { fieldValueKind, isToken } from '../exchange/field-syntax.ts';
import { formatIp, parseIp } from '../exchange/ip-address.ts';

export interface DryRunRequest {
	readonly method: string;
	readonly url: RequestUrl;
	/** Request fields, including `Host` if it differs from the URL's authority. */
	readonly headers: readonly (readonly [name: string, value: string])[];
	readonly body: string | undefined;
	/** Address of the client. Default: `127.0.0.1`. */
	readonly from: string | undefined;
	/** Time of the request, in milliseconds since 1970. Default: the current time. */
	readonly at: number | undefined;
	/** The protocol of the request. Default: `h1`. */
	readonly protocol?: RequestProtocol | undefined;
	/** The name in the TLS handshake. Default: the host of the URL. */
	readonly sni?: string | undefined;
	/** The certificate that the client presents. Whether it is trusted is not checked. */
	readonly certificate?: ClientCertificate | undefined;
}

/** Returns why a name cannot be sent in a TLS handshake; undefined if it can. */
export function serverNameMistake(text: string): RequestMistake | undefined {
	if (/^(?=.{1,253}$)[\w-]{1,63}(\.[\w-]{1,63})*$/.test(text) && parseIp(text) === undefined) return undefined;
	return { message: `\`${text}\` is not a host name.`, hint: 'Clients send names, not addresses or ports.' };
}

/** HTTP/1.1, HTTP/2 and HTTP/3. Without TLS, `h2` means HTTP/2 with prior knowledge. */
export const REQUEST_PROTOCOLS = ['h1', 'h2', 'h3'] as const;
export type RequestProtocol = (typeof REQUEST_PROTOCOLS)[number];

/** The parts of a URL that a client puts in a request; the path is not normalized. */
export interface RequestUrl {
	/** The URL as written. */
	readonly text: string;
	readonly scheme: 'http' | 'https';
	/** The host and port as in the `Host` field, such as `example.com:8080`. */
	readonly authority: string;
	/** The host in canonical form; IPv6 addresses have no brackets. */
	readonly host: string;
	/** The port; undefined if the URL names none. */
	readonly port: number | undefined;
	/** The path, percent-encoded, with a leading slash. */
	readonly path: string;
	readonly query: string | undefined;
}

/** A mistake in the input: a sentence that describes it, and a hint. */
export interface RequestMistake {
	readonly message: string;
	readonly hint?: string;
}

/** Returns the protocol that the text names, or a mistake if it names none or one that cannot be used with the scheme. */
export function parseRequestProtocol(text: string, scheme: string | undefined): RequestProtocol | RequestMistake {
	const protocol = REQUEST_PROTOCOLS.find(name => name === text);
	if (protocol === undefined) {
		return { message: `\`${text}\` is not a version of HTTP.`, hint: 'Write `h1`, `h2` or `h3`.' };
	}
	if (protocol === 'h3' && scheme === 'http')
		return { message: 'There is no HTTP/3 without TLS.', hint: 'Write a URL with `https://`.' };
	return protocol;
}

const URL_PATTERN = /^([a-z][a-z0-9+.-]*):\/\/([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#.*)?$/is;

/** Parses an absolute http or https URL. Drops a fragment, and encodes bytes that a request line must not contain. */
export function parseRequestUrl(text: string): RequestUrl | RequestMistake {
	const urlMatch = URL_PATTERN.exec(text);
	if (!urlMatch) {
		return {
			message: `\`${text}\` is not an absolute URL.`,
			hint: 'Write scheme, host and path, such as `http://example.com/path`.',
		};
	}
	const [, schemeText, authorityText, pathText, queryText] = urlMatch as unknown as [
		string,
		string,
		string,
		string,
		string?,
	];
	const scheme = schemeText.toLowerCase();
	if (scheme !== 'http' && scheme !== 'https') {
		return { message: `The scheme \`${schemeText}\` is not supported.`, hint: 'Write `http://` or `https://`.' };
	}
	const authority = asciiAuthority(authorityText);
	const parsedAuthority = authority === undefined ? undefined : parseAuthority(authority);
	if (authority === undefined || !parsedAuthority) {
		const message = authorityText === '' ? 'The URL has no host.' : `\`${authorityText}\` is not a host.`;
		return { message, hint: 'Write a name or an IP address, optionally with a port: `http://example.com:8080/`.' };
	}
	const path = encodeForRequestLine(pathText === '' ? '/' : pathText);
	if (/%(?![0-9A-Fa-f]{2})/.test(path)) {
		return {
			message: `The path of \`${text}\` contains an incomplete percent-encoding, which is rejected before any site is chosen.`,
			hint: 'Write `%25` for a percent sign.',
		};
	}
	const query = queryText === undefined ? undefined : encodeForRequestLine(queryText);
	return { text, scheme, authority, host: parsedAuthority.host, port: parsedAuthority.port, path, query };
}

/** Reports whether a result is a URL rather than a mistake. */
export function isRequestUrl(parsed: RequestUrl | RequestMistake): parsed is RequestUrl {
	return 'authority' in parsed;
}

/** Returns why a method cannot be used; undefined if it can. */
export function methodMistake(method: string): RequestMistake | undefined {
	if (!isToken(method)) return { message: `\`${method}\` is not a method.` };
	if (method !== 'CONNECT') return undefined;
	return { message: '`CONNECT` requests a tunnel, which has no URL.' };
}

/** Returns why a field cannot be sent; undefined if it can. */
export function fieldMistake(name: string, value: string): RequestMistake | undefined {
	if (!isToken(name)) return { message: `\`${name}\` is not a field name.` };
	if (fieldValueKind(value) === 'invalid') {
		return { message: `The value of \`${name}\` contains a control character, which fields cannot contain.` };
	}
	switch (name.toLowerCase()) {
		case 'host':
			return parseAuthority(value) ? undefined : { message: `\`${value}\` is not a host.` };
		case 'content-length':
		case 'transfer-encoding':
			return { message: `\`${name}\` is derived from the body.`, hint: 'Leave it out.' };
		default:
			return undefined;
	}
}

/** Returns a client's IP address in canonical form; undefined if it is invalid. */
export function canonicalClientAddress(text: string): string | undefined {
	const ip = parseIp(text.startsWith('[') && text.endsWith(']') ? text.slice(1, -1) : text);
	return ip && formatIp(ip);
}

const TIME_PATTERN = /^\d{4}-\d{2}-\d{2}(?:[Tt ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:[Zz]|[+-]\d{2}:\d{2}))?$/;

/** Parses `2026-01-31` (midnight UTC) or `2026-01-31T12:00:00Z` to milliseconds since 1970; undefined for anything else. */
export function parseClockTime(text: string): number | undefined {
	if (!TIME_PATTERN.test(text)) return undefined;
	const timeMs = Date.parse(text.replace(' ', 'T').toUpperCase());
	if (Number.isNaN(timeMs)) return undefined;
	// February 30 would be parsed as March 2.
	const day = new Date(`${text.slice(0, 10)}T00:00:00Z`);
	return Number.isNaN(day.getTime()) || day.toISOString().slice(0, 10) !== text.slice(0, 10) ? undefined : timeMs;
}

/** Converts an internationalized host name to ASCII, as clients send it, and keeps the port; undefined if the name is invalid. */
function asciiAuthority(text: string): string | undefined {
	if (!/[\u0080-\uffff]/.test(text)) return text;
	const colon = text.lastIndexOf(':');
	const host = canonicalHost(colon === -1 ? text : text.slice(0, colon));
	return host === undefined ? undefined : host + (colon === -1 ? '' : text.slice(colon));
}

function encodeForRequestLine(text: string): string {
	return text.toWellFormed().replace(/[^\x21-\x7e]/gu, character => encodeURIComponent(character));
}
