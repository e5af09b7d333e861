/** The cookies of a test's client, as a browser keeps them (RFC 6265 §5). */

import type { RequestUrl } from '../dry-run/dry-run-request.ts';
import type { HeaderList } from '../exchange/header-list.ts';

interface Cookie {
	readonly name: string;
	readonly value: string;
	readonly domain: string;
	/** True if other names below the domain get it, too. */
	readonly isShared: boolean;
	readonly path: string;
	readonly isSecure: boolean;
	/** Milliseconds since 1970. */
	readonly expires: number;
}

/** Cookies are kept between the requests of one test. */
export class CookieJar {
	#cookies: Cookie[] = [];

	/** Returns the value of `Cookie` for a request at a time; undefined if no cookie applies. */
	valueFor({ scheme, host, path }: RequestUrl, now: number): string | undefined {
		const sent = this.#cookies.filter(
			cookie =>
				cookie.expires > now &&
				(cookie.isShared ? isBelow(host, cookie.domain) : host === cookie.domain) &&
				isWithin(path, cookie.path) &&
				(!cookie.isSecure || scheme === 'https'),
		);
		// Cookies for longer paths come first; among those, older ones.
		sent.sort((a, b) => b.path.length - a.path.length);
		return sent.length === 0 ? undefined : sent.map(({ name, value }) => `${name}=${value}`).join('; ');
	}

	/** Takes the cookies that a response sets. */
	take(headers: HeaderList, url: RequestUrl, now: number): void {
		for (const text of headers.getAll('set-cookie')) {
			const cookie = parseCookie(text, url, now);
			if (cookie === undefined) continue;
			const at = this.#cookies.findIndex(
				({ name, domain, path }) => name === cookie.name && domain === cookie.domain && path === cookie.path,
			);
			// A cookie that is replaced keeps its place.
			if (at === -1) this.#cookies.push(cookie);
			else this.#cookies[at] = cookie;
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
	const found = new Map(
		attributes.map(attribute => {
			const [key, ...rest] = attribute.split('=') as [string, ...string[]];
			return [key.trim().toLowerCase(), rest.join('=').trim()];
		}),
	);
	const wanted = (found.get('domain') ?? '').replace(/^\./, '').toLowerCase();
	if (wanted !== '' && !isBelow(host, wanted)) return undefined;
	const isSecure = found.has('secure');
	if (isSecure && scheme !== 'https') return undefined;
	const ownPath = found.get('path');
	if (/^__secure-/i.test(name) && !isSecure) return undefined;
	if (/^__host-/i.test(name) && (!isSecure || wanted !== '' || ownPath !== '/')) return undefined;
	return {
		name,
		value: pair.slice(equals + 1).trim(),
		domain: wanted === '' ? host : wanted,
		isShared: wanted !== '',
		path: ownPath?.startsWith('/') ? ownPath : folderOf(path),
		isSecure,
		expires: expiryOf(found, now),
	};
}

/** Returns when a cookie expires, in milliseconds since 1970. `Max-Age` takes precedence over `Expires`. */
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
