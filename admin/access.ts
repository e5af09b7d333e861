/**
 * Who may call the Admin API. Every request passes here, `/live` and `/ready` included.
 *
 * | Request | Answer |
 * | --- | --- |
 * | no token is configured and the client is not on this machine | 403 `client_not_allowed` |
 * | its Host is not a name of this API (a page whose name was rebound to it) | 403 `host_not_allowed` |
 * | a token is configured and `Authorization: Bearer` does not carry it | 401 `unauthorized`, `WWW-Authenticate: Bearer` |
 * | its Origin is not allowed; it has none and `enforce_origin` is set; or a browser says that another site made it write | 403 `origin_not_allowed` |
 *
 * Host: loopback names and addresses, the listen address, and the hosts of `origins`. It is not looked at on a Unix
 * socket, nor where a token guards an address that other machines reach under names unknown here. Origin: those of
 * `origins`; without that, the API's own.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { AdminSettings } from '../compiler/document/document.ts';
import type { Exchange } from '../compiler/exchange/exchange.ts';
import { withoutBlanks } from '../compiler/exchange/field-syntax.ts';
import { AdminError } from './errors.ts';
import { type AdminEndpointAddress, isLoopback, isWildcard } from './listen-address.ts';

/** An allowed origin: `scheme` is undefined when the configuration named none. */
interface AllowedOrigin {
	readonly scheme: string | undefined;
	/** Host with its port where it is not the scheme's default, lower case. */
	readonly host: string;
	/** Host alone. */
	readonly hostname: string;
}

/** The checks for one state of the settings. */
export class AdminAccess {
	readonly #token: Buffer | undefined;
	readonly #origins: readonly AllowedOrigin[] | undefined;
	readonly #enforceOrigin: boolean;
	readonly #hosts: ReadonlySet<string>;
	readonly #checksHost: boolean;
	readonly #isUnix: boolean;

	constructor(settings: AdminSettings, address: AdminEndpointAddress) {
		this.#token = settings.token === undefined ? undefined : digest(settings.token);
		this.#origins = settings.origins?.flatMap(origin => parseOrigin(origin) ?? []);
		this.#enforceOrigin = settings.enforce_origin === true;
		this.#isUnix = address.kind === 'unix';
		const hosts = new Set(['localhost', ...(this.#origins ?? []).map(origin => origin.hostname)]);
		if (address.kind === 'tcp' && !isWildcard(address.host)) hosts.add(address.host);
		this.#hosts = hosts;
		this.#checksHost =
			address.kind === 'tcp' && (this.#token === undefined || isLoopback(address.host) || address.host === 'localhost');
	}

	/** True when requests must carry a token. */
	get hasToken(): boolean {
		return this.#token !== undefined;
	}

	/**
	 * Passes a request or throws AdminError. True for a preflight (Fetch standard) of an origin that is configured: it
	 * carries no credentials by design, and is answered without reaching an endpoint.
	 */
	check(x: Exchange): boolean {
		if (this.#token === undefined && !this.#isUnix && !isLoopback(x.connection.remoteAddress)) {
			throw new AdminError(403, 'client_not_allowed', 'Without a token only clients on this machine are admitted.');
		}
		if (this.#checksHost && !this.#hostIsOurs(x)) {
			throw new AdminError(403, 'host_not_allowed', 'The Host of the request is not a name of this API.');
		}
		const origins = x.request.headers.getAll('origin');
		const allowed = origins.length === 0 || (origins.length === 1 && this.#originIsAllowed(origins[0]!, x));
		if (origins.length === 1 && allowed && this.#origins !== undefined) allowOrigin(x, origins[0]!);
		if (
			x.request.method === 'OPTIONS' &&
			x.request.headers.has('access-control-request-method') &&
			origins.length === 1 &&
			allowed &&
			this.#origins !== undefined
		) {
			return true;
		}
		if (this.#token !== undefined && !this.#carriesToken(x)) {
			throw new AdminError(401, 'unauthorized', 'The request does not carry the access token.', {
				headers: [['WWW-Authenticate', 'Bearer']],
			});
		}
		if (!allowed) throw new AdminError(403, 'origin_not_allowed', 'This origin may not call the API.');
		if (origins.length === 0) this.#checkWithoutOrigin(x);
		return false;
	}

	#checkWithoutOrigin(x: Exchange): void {
		if (this.#enforceOrigin) throw new AdminError(403, 'origin_not_allowed', 'The request must name its origin.');
		const site = x.request.headers.get('sec-fetch-site');
		const writes = x.request.method !== 'GET' && x.request.method !== 'HEAD';
		if (writes && (site === 'cross-site' || site === 'same-site')) {
			throw new AdminError(403, 'origin_not_allowed', 'Another site made the browser send this request.');
		}
	}

	/** A client without a Host field (HTTP/1.0) is no browser. An address is no name that could have been rebound, but only our own are ours. */
	#hostIsOurs(x: Exchange): boolean {
		const host = x.request.host;
		return (
			host === '' ||
			this.#hosts.has(host) ||
			isLoopback(host) ||
			(host === x.connection.localAddress && /^[0-9.]+$|:/.test(host))
		);
	}

	#originIsAllowed(text: string, x: Exchange): boolean {
		const origin = parseOrigin(text);
		// `null` is what sandboxed pages and local files send.
		if (origin?.scheme === undefined) return false;
		if (this.#origins === undefined) {
			const own = parseOrigin(`${origin.scheme}://${x.request.authority}`);
			return own !== undefined && own.host === origin.host;
		}
		return this.#origins.some(
			one => one.host === origin.host && (one.scheme === undefined || one.scheme === origin.scheme),
		);
	}

	/** Digests are of one length, so comparing them takes one time whatever was sent. */
	#carriesToken(x: Exchange): boolean {
		const fields = x.request.headers.getAll('authorization');
		const [value = ''] = fields;
		const token = fields.length === 1 && /^bearer /i.test(value) ? withoutBlanks(value.slice('bearer '.length)) : '';
		// Field values are bytes, one a character; the configured token is text.
		return timingSafeEqual(digest(Buffer.from(token, 'latin1')), this.#token!) && token !== '';
	}
}

function digest(token: string | Buffer): Buffer {
	return createHash('sha256').update(token).digest();
}

/** `https://ops.example.com`, `//ops.example.com:8443` or `ops.example.com`; undefined when it is none. */
function parseOrigin(text: string): AllowedOrigin | undefined {
	const match = /^(?:([a-z][a-z0-9+.-]*):)?(?:\/\/)?([^/?#@\s]+)\/?$/i.exec(
		/^[^/:]+:\d+$/.test(text) || /^\[/.test(text) ? `//${text}` : text,
	);
	if (!match) return undefined;
	const scheme = match[1]?.toLowerCase();
	const url = URL.parse(`${scheme === 'https' ? 'https' : 'http'}://${match[2]}`);
	if (url === null) return undefined;
	return { scheme, host: url.host, hostname: url.hostname.replace(/^\[|\]$/g, '') };
}

/** Lets the page of a configured origin read the answer. */
function allowOrigin(x: Exchange, origin: string): void {
	const headers = x.response.headers;
	headers.set('Access-Control-Allow-Origin', origin);
	headers.set('Access-Control-Expose-Headers', 'Etag');
	headers.add('Vary', 'Origin');
}
