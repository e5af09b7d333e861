/** The cookies of a test's client, as a browser keeps them (RFC 6265 §5). */

import type { RequestUrl } from '../dry-run/dry-run-request.ts';
import type { HeaderList } from '../exchange/header-list.ts';

interface Cookie {
	readonly name: string;
	readonly value: string;
	readonly domain: string;
	/** True if hosts below the domain receive the cookie as well. */
	readonly isShared: boolean;
	readonly path: string;
	readonly isSecure: boolean;
	/** The time at which the cookie expires, in milliseconds since 1970. */
	readonly expires: number;
}

/** Stores cookies between the requests of one test. */
export class CookieJar {
	#cookies: Cookie[] = [];

	/** Returns the value of `Cookie` for a request at a time; undefined if no cookie applies. */
	valueFor({ scheme, host, path }: RequestUrl, now: number): string | undefined {
		const matchingCookies = this.#cookies.filter(
			cookie =>
				cookie.expires > now &&
				(cookie.isShared ? isBelow(host, cookie.domain) : host === cookie.domain) &&
				isWithin(path, cookie.path) &&
				(!cookie.isSecure || scheme === 'https'),
		);
		// Cookies for longer paths come first; among those, older ones.
		matchingCookies.sort((a, b) => b.path.length - a.path.length);
		return matchingCookies.length === 0
			? undefined
			: matchingCookies.map(({ name, value }) => `${name}=${value}`).join('; ');
	}

	/** Stores the cookies that a response sets. */
	store(headers: HeaderList, url: RequestUrl, now: number): void {
		for (const text of headers.getAll('set-cookie')) {
			const cookie = parseCookie(text, url, now);
			if (cookie === undefined) continue;
			const existingIndex = this.#cookies.findIndex(
				({ name, domain, path }) => name === cookie.name && domain === cookie.domain && path === cookie.path,
			);
			// A new cookie keeps the age of the cookie that it replaces.
			if (existingIndex === -1) this.#cookies.push(cookie);
			else this.#cookies[existingIndex] = cookie;
		}
		this.#cookies = this.#cookies.filter(({ expires }) => expires > now);
	}
}

/** Parses a value of `Set-Cookie`. Returns undefined if a browser would ignore it. */
function parseCookie(text: string, { scheme, host, path }: RequestUrl, now: number): Cookie | undefined {
	const [pair, ...attributes] = text.split(';') as [string, ...string[]];
	const equals = pair.indexOf('=');
	const name = pair.slice(0, equals).trim();
	if (equals === -1 || name === '') return undefined;
	const attributesByName = new Map(
		attributes.map(attribute => {
			const [key, ...valueParts] = attribute.split('=') as [string, ...string[]];
			return [key.trim().toLowerCase(), valueParts.join('=').trim()];
		}),
	);
	const domain = (attributesByName.get('domain') ?? '').replace(/^\./, '').toLowerCase();
	if (domain !== '' && !isBelow(host, domain)) return undefined;
	const isSecure = attributesByName.has('secure');
	if (isSecure && scheme !== 'https') return undefined;
	const pathAttribute = attributesByName.get('path');
	if (/^__secure-/i.test(name) && !isSecure) return undefined;
	if (/^__host-/i.test(name) && (!isSecure || domain !== '' || pathAttribute !== '/')) return undefined;
	return {
		name,
		value: pair.slice(equals + 1).trim(),
		domain: domain === '' ? host : domain,
		isShared: domain !== '',
		path: pathAttribute?.startsWith('/') ? pathAttribute : folderOf(path),
		isSecure,
		expires: expiryOf(attributesByName, now),
	};
}

/** Returns the expiry time of a cookie, in milliseconds since 1970. `Max-Age` takes precedence over `Expires`. */
function expiryOf(attributes: ReadonlyMap<string, string>, now: number): number {
	const age = attributes.get('max-age');
	if (age !== undefined && /^-?\d+$/.test(age)) return now + Number(age) * 1000;
	const expires = Date.parse(attributes.get('expires') ?? '');
	return Number.isNaN(expires) ? Number.POSITIVE_INFINITY : expires;
}

function isBelow(host: string, domain: string): boolean {
	return host === domain || (host.endsWith(`.${domain}`) && !/^[\d.]+$|:/.test(host));
}

function isWithin(path: string, folder: string): boolean {
	return path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);
}

function folderOf(path: string): string {
	const end = path.lastIndexOf('/');
	return end <= 0 ? '/' : path.slice(0, end);
}
