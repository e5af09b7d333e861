/** The cookies of a test's client, as a browser keeps them (RFC 6265 §5). */

import type { RequestUrl } from '../dry-run/dry-run-request.ts';
import type { HeaderList } from '../exchange/header-list.ts';

interface Cookie {
	readonly name: string;
	readonly value: string;
	readonly domain: string;
	/** True if subdomains of the domain receive the cookie as well. */
	readonly isShared: boolean;
	readonly path: string;
	readonly isSecure: boolean;
	/** The time at which the cookie expires, in milliseconds since 1970. */
	readonly expiresMs: number;
}

/** Stores cookies between the requests of one test. */
export class CookieJar {
	#cookies: Cookie[] = [];

	/** Returns the value of `Cookie` for a request sent at `nowMs`; undefined if no cookie applies. */
	cookieHeaderFor({ scheme, host, path }: RequestUrl, nowMs: number): string | undefined {
		const matchingCookies = this.#cookies.filter(
			cookie =>
				cookie.expiresMs > nowMs &&
				(cookie.isShared ? isInDomain(host, cookie.domain) : host === cookie.domain) &&
				isInFolder(path, cookie.path) &&
				(!cookie.isSecure || scheme === 'https'),
		);
		// Cookies for longer paths come first; among cookies with equally long paths, older cookies come first.
		matchingCookies.sort((a, b) => b.path.length - a.path.length);
		return matchingCookies.length === 0
			? undefined
			: matchingCookies.map(({ name, value }) => `${name}=${value}`).join('; ');
	}

	/** Stores the cookies that a response sets. */
	storeCookies(headers: HeaderList, url: RequestUrl, nowMs: number): void {
		for (const text of headers.getAll('set-cookie')) {
			const cookie = parseCookie(text, url, nowMs);
			if (cookie === undefined) continue;
			const existingIndex = this.#cookies.findIndex(
				({ name, domain, path }) => name === cookie.name && domain === cookie.domain && path === cookie.path,
			);
			// A new cookie takes the place of the cookie that it replaces in the order of age (RFC 6265 §5.3).
			if (existingIndex === -1) this.#cookies.push(cookie);
			else this.#cookies[existingIndex] = cookie;
		}
		this.#cookies = this.#cookies.filter(({ expiresMs }) => expiresMs > nowMs);
	}
}

/** Parses a value of `Set-Cookie`. Returns undefined if a browser would ignore it. */
function parseCookie(text: string, { scheme, host, path }: RequestUrl, nowMs: number): Cookie | undefined {
	const [pair, ...attributes] = text.split(';') as [string, ...string[]];
	const equalsIndex = pair.indexOf('=');
	const name = pair.slice(0, equalsIndex).trim();
	if (equalsIndex === -1 || name === '') return undefined;
	const attributeByName = new Map(
		attributes.map(attribute => {
			const [key, ...valueParts] = attribute.split('=') as [string, ...string[]];
			return [key.trim().toLowerCase(), valueParts.join('=').trim()];
		}),
	);
	const domain = (attributeByName.get('domain') ?? '').replace(/^\./, '').toLowerCase();
	if (domain !== '' && !isInDomain(host, domain)) return undefined;
	const isSecure = attributeByName.has('secure');
	if (isSecure && scheme !== 'https') return undefined;
	const pathAttribute = attributeByName.get('path');
	if (/^__secure-/i.test(name) && !isSecure) return undefined;
	if (/^__host-/i.test(name) && (!isSecure || domain !== '' || pathAttribute !== '/')) return undefined;
	return {
		name,
		value: pair.slice(equalsIndex + 1).trim(),
		domain: domain === '' ? host : domain,
		isShared: domain !== '',
		path: pathAttribute?.startsWith('/') ? pathAttribute : folderOf(path),
		isSecure,
		expiresMs: expiryOf(attributeByName, nowMs),
	};
}

/** Returns the expiry time of a cookie, in milliseconds since 1970. `Max-Age` takes precedence over `Expires`. */
function expiryOf(attributeByName: ReadonlyMap<string, string>, nowMs: number): number {
	const maxAgeSeconds = attributeByName.get('max-age');
	if (maxAgeSeconds !== undefined && /^-?\d+$/.test(maxAgeSeconds)) return nowMs + Number(maxAgeSeconds) * 1000;
	const expiresMs = Date.parse(attributeByName.get('expires') ?? '');
	return Number.isNaN(expiresMs) ? Number.POSITIVE_INFINITY : expiresMs;
}

function isInDomain(host: string, domain: string): boolean {
	return host === domain || (host.endsWith(`.${domain}`) && !/^[\d.]+$|:/.test(host));
}

function isInFolder(path: string, folder: string): boolean {
	return path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);
}

function folderOf(path: string): string {
	const lastSlash = path.lastIndexOf('/');
	return lastSlash <= 0 ? '/' : path.slice(0, lastSlash);
}
