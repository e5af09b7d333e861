/** Parses site addresses, `[scheme://][host][:port][/path]`, and determines the port and scheme of their listeners. */
import { canonicalHost } from '../exchange/authority.ts';
import { parseIp } from '../exchange/ip-address.ts';

export interface SiteAddress {
	/** The address as written, truncated to 4096 characters. */
	readonly text: string;
	readonly scheme: 'http' | 'https' | undefined;
	/**
	 * The host in lower case, except for placeholders; '' for every host. IPv6 addresses are in their shortest form, without
	 * brackets.
	 */
	readonly host: string;
	/** The port as written; undefined if the address has none (see {@link effectivePort}). */
	readonly port: number | undefined;
	/** Deprecated path, with its leading slash; '' if the address has none. */
	readonly path: string;
}

/** The reason why a text is not a site address. */
export interface SiteAddressMistake {
	readonly code: string;
	readonly message: string;
	readonly hint?: string;
}

/** The ports for addresses that name no port, by scheme. */
export interface SchemePorts {
	readonly http: number;
	readonly https: number;
}

/** Maximum length of an address in UTF-16 units. */
export const MAX_ADDRESS_LENGTH = 4096;

/** Parses a site address. A mistake in the port is reported before one in the scheme, as in Caddy. */
export function parseSiteAddress(writtenText: string): SiteAddress | SiteAddressMistake {
	const text = writtenText.trim().slice(0, MAX_ADDRESS_LENGTH);
	if (/^(?:unix|unixgram|unixpacket|fd|fdgram)\//.test(text)) {
		return {
			code: 'address/socket',
			message: `\`${text}\` is a socket, not a site address`,
			hint: "Write the site's name, and bind the socket with `bind`.",
		};
	}
	const schemeEnd = text.indexOf('://');
	const schemeText = schemeEnd === -1 ? '' : text.slice(0, schemeEnd).toLowerCase();
	const remainder = schemeEnd === -1 ? text : text.slice(schemeEnd + 3);
	const slashIndex = indexOutsideBraces(remainder, '/');
	const authority = slashIndex === -1 ? remainder : remainder.slice(0, slashIndex);
	const path = slashIndex === -1 ? '' : remainder.slice(slashIndex);
	const colonIndex = portColonIndex(authority);
	const portText = colonIndex === -1 ? '' : authority.slice(colonIndex + 1);
	const hostText = colonIndex === -1 ? authority : authority.slice(0, colonIndex);
	let port: number | undefined;
	if (colonIndex !== -1) {
		if (!/^[+-]?\d+$/.test(portText)) {
			return {
				code: 'address/invalid-port',
				message: `invalid port '${portText}'`,
				hint: 'Write a number from 0 to 65535.',
			};
		}
		port = Number(portText);
		if (port < 0 || port > 65_535) {
			return {
				code: 'address/invalid-port',
				message: `port ${port} is out of range`,
				hint: 'Write a number from 0 to 65535.',
			};
		}
	}
	if (schemeText === 'ws' || schemeText === 'wss') {
		const replacement = schemeText === 'ws' ? 'http' : 'https';
		return {
			code: 'address/unsupported-scheme',
			message: `the scheme ${schemeText}:// is only supported in browsers; use ${replacement}:// instead`,
		};
	}
	if (schemeEnd !== -1 && schemeText !== 'http' && schemeText !== 'https') {
		return {
			code: 'address/unsupported-scheme',
			message: `unsupported URL scheme ${schemeText}://`,
			hint: 'Write http://, https:// or no scheme.',
		};
	}
	const host = normalizeHost(hostText);
	if (host === undefined) {
		return {
			code: 'address/invalid-host',
			message: `\`${hostText.length > 80 ? `${hostText.slice(0, 80)}…` : hostText}\` is not a host name.`,
		};
	}
	return {
		text,
		scheme: schemeEnd === -1 ? undefined : (schemeText as 'http' | 'https'),
		host,
		port,
		path,
	};
}

export function isSiteAddress(parsed: SiteAddress | SiteAddressMistake): parsed is SiteAddress {
	return 'text' in parsed;
}

/** Returns the port to listen on: the address's own port, otherwise the port of its scheme. The default scheme is HTTPS. */
export function effectivePort(address: SiteAddress, ports: SchemePorts): number {
	if (address.port !== undefined) return address.port;
	return address.scheme === 'http' ? ports.http : ports.https;
}

/**
 * Reports whether an address is served with TLS: because of its scheme or the HTTPS port, or because it names a host and its port
 * is not the HTTP port.
 */
export function needsTls(address: SiteAddress, ports: SchemePorts): boolean {
	if (address.scheme !== undefined) return address.scheme === 'https';
	const port = effectivePort(address, ports);
	if (port === ports.https) return true;
	if (port === ports.http) return false;
	return address.host !== '' && address.host !== '*';
}

/**
 * Reports whether an address combines `http` with the HTTPS port, or `https` with the HTTP port. Such an address is rejected as
 * misleading.
 */
export function usesOtherSchemesPort(address: SiteAddress, ports: SchemePorts): boolean {
	if (address.port === undefined || ports.http === ports.https) return false;
	if (address.scheme === 'http') return address.port === ports.https;
	return address.scheme === 'https' && address.port === ports.http;
}

/** Formats an address in the form that the document stores. */
export function formatSiteAddress(address: SiteAddress): string {
	const host = address.host.includes(':') && !address.host.includes('{') ? `[${address.host}]` : address.host;
	return `${address.scheme ? `${address.scheme}://` : ''}${host}${address.port === undefined ? '' : `:${address.port}`}${address.path}`;
}

/** Returns a host in the form that requests have; undefined if it is invalid. Placeholders are not changed. */
function normalizeHost(text: string): string | undefined {
	if (text === '' || !text.includes('{')) return text === '' ? '' : canonicalHost(text);
	if (/[\s,]/.test(text.replace(/\{[^}]*\}/g, ''))) return undefined;
	return text.replace(/\{[^}]*\}|[^{]+|\{/g, part => (part.startsWith('{') ? part : part.toLowerCase()));
}

/**
 * Returns the index of the colon before the port: the last colon outside of brackets and braces; −1 if there is none. An IPv6
 * address without brackets has no port.
 */
function portColonIndex(authority: string): number {
	if (authority.includes('::') || authority.indexOf(':') !== authority.lastIndexOf(':')) {
		if (parseIp(authority)) return -1;
	}
	let colonIndex = -1;
	let depth = 0;
	for (let index = 0; index < authority.length; index++) {
		const character = authority[index];
		if (character === '[' || character === '{') depth++;
		else if (character === ']' || character === '}') depth--;
		else if (character === ':' && depth <= 0) colonIndex = index;
	}
	return colonIndex;
}

function indexOutsideBraces(text: string, searchedCharacter: string): number {
	let depth = 0;
	for (let index = 0; index < text.length; index++) {
		const character = text[index];
		if (character === '{') depth++;
		else if (character === '}') depth--;
		else if (character === searchedCharacter && depth <= 0) return index;
	}
	return -1;
}
