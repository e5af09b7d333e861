/** The request of a dry run: what a client would send, read from the text that a person writes. */
import { canonicalHost, parseAuthority } from '../exchange/authority.ts';
import { fieldValueKind, isToken } from '../exchange/field-syntax.ts';
import { formatIp, parseIp } from '../exchange/ip-address.ts';

/** A request as it is rehearsed. */
export interface DryRunRequest {
	readonly method: string;
	readonly url: RequestUrl;
	/** Fields as sent, `Host` among them if it differs from the URL's authority. */
	readonly headers: readonly (readonly [name: string, value: string])[];
	readonly body: string | undefined;
	/** Address of the client; `127.0.0.1` if left out. */
	readonly from: string | undefined;
	/** Milliseconds since 1970; the real time if left out. */
	readonly at: number | undefined;
}

/** A URL in the parts that a client makes a request of; the path is not normalized. */
export interface RequestUrl {
	/** As written. */
	readonly text: string;
	readonly scheme: 'http' | 'https';
	/** `example.com:8080`, as the `Host` field carries it. */
	readonly authority: string;
	/** Canonical, IPv6 without brackets. */
	readonly host: string;
	/** Undefined where the URL has none: then it is the scheme's. */
	readonly port: number | undefined;
	/** Percent-encoded, begins with a slash. */
	readonly path: string;
	readonly query: string | undefined;
}

/** Why a text is not what it should be: a sentence, and what to do. */
export interface RequestMistake {
	readonly message: string;
	readonly hint?: string;
}

const URL_PARTS = /^([a-z][a-z0-9+.-]*):\/\/([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#.*)?$/is;

/** Reads an absolute URL with the scheme `http` or `https`. A fragment is left out; bytes that no request line may hold are encoded. */
export function parseRequestUrl(text: string): RequestUrl | RequestMistake {
	const parts = URL_PARTS.exec(text);
	if (!parts) {
		return {
			message: `\`${text}\` is not a whole URL.`,
			hint: 'Write scheme, host and path, such as `http://example.com/path`.',
		};
	}
	const [, schemeText, authorityText, pathText, queryText] = parts as unknown as [
		string,
		string,
		string,
		string,
		string?,
	];
	const scheme = schemeText.toLowerCase();
	if (scheme !== 'http' && scheme !== 'https') {
		return { message: `\`${schemeText}\` is not a scheme that is served.`, hint: 'Write `http://` or `https://`.' };
	}
	const authority = asciiAuthority(authorityText);
	const parsed = authority === undefined ? undefined : parseAuthority(authority);
	if (authority === undefined || !parsed) {
		const message = authorityText === '' ? 'The URL has no host.' : `\`${authorityText}\` is not a host.`;
		return { message, hint: 'Write a name or an IP address, and a port if need be: `http://example.com:8080/`.' };
	}
	const path = sendable(pathText === '' ? '/' : pathText);
	if (/%(?![0-9A-Fa-f]{2})/.test(path)) {
		return {
			message: `The path of \`${text}\` holds an incomplete percent-encoding, which is refused before any site is asked.`,
			hint: 'Write `%25` for a percent sign.',
		};
	}
	const query = queryText === undefined ? undefined : sendable(queryText);
	return { text, scheme, authority, host: parsed.host, port: parsed.port, path, query };
}

/** Tells a URL from the reason why there is none. */
export function isRequestUrl(parsed: RequestUrl | RequestMistake): parsed is RequestUrl {
	return 'authority' in parsed;
}

/** Why a method cannot be rehearsed, or undefined. */
export function methodMistake(method: string): RequestMistake | undefined {
	if (!isToken(method)) return { message: `\`${method}\` is not a method.` };
	if (method !== 'CONNECT') return undefined;
	return { message: '`CONNECT` asks for a tunnel, which has no URL.' };
}

/** Why a field cannot be sent, or undefined. */
export function fieldMistake(name: string, value: string): RequestMistake | undefined {
	if (!isToken(name)) return { message: `\`${name}\` is not a field name.` };
	if (fieldValueKind(value) === 'invalid') {
		return { message: `The value of \`${name}\` holds a control character, which no field can carry.` };
	}
	switch (name.toLowerCase()) {
		case 'host':
			return parseAuthority(value) ? undefined : { message: `\`${value}\` is not a host.` };
		case 'content-length':
		case 'transfer-encoding':
			return { message: `\`${name}\` follows from the body.`, hint: 'Leave it out.' };
		default:
			return undefined;
	}
}

/** A client's address in its canonical form; undefined when the text is none. */
export function clientAddress(text: string): string | undefined {
	const ip = parseIp(text.startsWith('[') && text.endsWith(']') ? text.slice(1, -1) : text);
	return ip && formatIp(ip);
}

const TIME = /^\d{4}-\d{2}-\d{2}(?:[Tt ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:[Zz]|[+-]\d{2}:\d{2}))?$/;

/** Milliseconds since 1970 of `2026-01-31` (midnight UTC) or `2026-01-31T12:00:00Z`; undefined when it is neither. */
export function clockTime(text: string): number | undefined {
	if (!TIME.test(text)) return undefined;
	const time = Date.parse(text.replace(' ', 'T').toUpperCase());
	if (Number.isNaN(time)) return undefined;
	// The 30th of February is read as the 2nd of March.
	const day = new Date(`${text.slice(0, 10)}T00:00:00Z`);
	return Number.isNaN(day.getTime()) || day.toISOString().slice(0, 10) !== text.slice(0, 10) ? undefined : time;
}

/** International names as a client sends them. */
function asciiAuthority(text: string): string | undefined {
	if (!/[\u0080-\uffff]/.test(text)) return text;
	const colon = text.lastIndexOf(':');
	const host = canonicalHost(colon === -1 ? text : text.slice(0, colon));
	return host === undefined ? undefined : host + (colon === -1 ? '' : text.slice(colon));
}

function sendable(text: string): string {
	return text.toWellFormed().replace(/[^\x21-\x7e]/gu, character => encodeURIComponent(character));
}
