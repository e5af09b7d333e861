/**
 * Access control of the Admin API. Every request passes through it, including `/live` and `/ready`.
 *
 * | Request | Answer |
 * | --- | --- |
 * | no token is configured and the client's address is not a loopback address | 403 `client_not_allowed` |
 * | Host is not a name of this API (DNS rebinding) | 403 `host_not_allowed` |
 * | a token is configured and missing from `Authorization: Bearer` | 401 `unauthorized`, `WWW-Authenticate: Bearer` |
 * | Origin is not allowed; or is missing although `enforce_origin` is set; or the browser marks a write as cross-site | 403 `origin_not_allowed` |
 *
 * Allowed hosts: loopback names and addresses, the listen address, and the hosts of `origins`. Host is not checked on a Unix
 * socket. It is not checked either if a token is configured and the listen address is not a loopback address, because other
 * machines may know the API by any name. Allowed origins: those in `origins`, or by default the API's own.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { AdminSettings } from '../compiler/document/document.ts';
import type { Exchange } from '../compiler/exchange/exchange.ts';
import { trimBlanks } from '../compiler/exchange/field-syntax.ts';
import { AdminError } from './errors.ts';
import { type AdminEndpointAddress, isLoopback, isWildcard } from './listen-address.ts';

/** An allowed origin. `scheme` is undefined if the configuration gives none. */
interface AllowedOrigin {
	readonly scheme: string | undefined;
	/** The host in lower case, with its port unless that is the scheme's default. */
	readonly host: string;
	/** The host without its port. */
	readonly hostname: string;
}

/** Checks whether requests may use the Admin API, according to one version of its settings. */
export class AdminAccess {
	readonly #tokenDigest: Buffer | undefined;
	readonly #allowedOrigins: readonly AllowedOrigin[] | undefined;
	readonly #requiresOrigin: boolean;
	readonly #allowedHosts: ReadonlySet<string>;
	readonly #checksHost: boolean;
	readonly #isUnixSocket: boolean;

	constructor(settings: AdminSettings, address: AdminEndpointAddress) {
		this.#tokenDigest = settings.token === undefined ? undefined : tokenDigest(settings.token);
		this.#allowedOrigins = settings.origins?.flatMap(origin => parseOrigin(origin) ?? []);
		this.#requiresOrigin = settings.enforce_origin === true;
		this.#isUnixSocket = address.kind === 'unix';
		const hosts = new Set(['localhost', ...(this.#allowedOrigins ?? []).map(origin => origin.hostname)]);
		if (address.kind === 'tcp' && !isWildcard(address.host)) hosts.add(address.host);
		this.#allowedHosts = hosts;
		this.#checksHost =
			address.kind === 'tcp' &&
			(this.#tokenDigest === undefined || isLoopback(address.host) || address.host === 'localhost');
	}

	/** True if requests must carry a token. */
	get hasToken(): boolean {
		return this.#tokenDigest !== undefined;
	}

	/**
	 * Admits a request or throws AdminError. Returns true for a preflight (Fetch standard) from a configured origin, which
	 * carries no credentials by design and is answered without reaching an endpoint.
	 */
	check(x: Exchange): boolean {
		if (this.#tokenDigest === undefined && !this.#isUnixSocket && !isLoopback(x.connection.remoteAddress)) {
			throw new AdminError(
				403,
				'client_not_allowed',
				'Without a configured token, only clients with a loopback address are admitted.',
			);
		}
		if (this.#checksHost && !this.#isOwnHost(x)) {
			throw new AdminError(403, 'host_not_allowed', "The request's Host is not a name of this API.");
		}
		const origins = x.request.headers.getAll('origin');
		const isOriginAllowed = origins.length === 0 || (origins.length === 1 && this.#isOriginAllowed(origins[0]!, x));
		if (origins.length === 1 && isOriginAllowed && this.#allowedOrigins !== undefined) allowOrigin(x, origins[0]!);
		if (
			x.request.method === 'OPTIONS' &&
			x.request.headers.has('access-control-request-method') &&
			origins.length === 1 &&
			isOriginAllowed &&
			this.#allowedOrigins !== undefined
		) {
			return true;
		}
		if (this.#tokenDigest !== undefined && !this.#hasValidToken(x)) {
			throw new AdminError(401, 'unauthorized', 'The access token is missing or wrong.', {
				headers: [['WWW-Authenticate', 'Bearer']],
			});
		}
		if (!isOriginAllowed)
			throw new AdminError(403, 'origin_not_allowed', 'This origin is not allowed to call the API.');
		if (origins.length === 0) this.#checkWithoutOrigin(x);
		return false;
	}

	#checkWithoutOrigin(x: Exchange): void {
		if (this.#requiresOrigin) throw new AdminError(403, 'origin_not_allowed', 'The request must have an Origin field.');
		const fetchSite = x.request.headers.get('sec-fetch-site');
		const isWrite = x.request.method !== 'GET' && x.request.method !== 'HEAD';
		if (isWrite && (fetchSite === 'cross-site' || fetchSite === 'same-site')) {
			throw new AdminError(403, 'origin_not_allowed', "The request was sent by another site's page.");
		}
	}

	/**
	 * Reports whether the Host field names this API. A request without the field (HTTP/1.0) is admitted: browsers always send the
	 * field, so DNS rebinding is excluded. An IP address in the field is admitted only if it is an address of this API.
	 */
	#isOwnHost(x: Exchange): boolean {
		const host = x.request.host;
		return (
			host === '' ||
			this.#allowedHosts.has(host) ||
			isLoopback(host) ||
			(host === x.connection.localAddress && /^[0-9.]+$|:/.test(host))
		);
	}

	#isOriginAllowed(originText: string, x: Exchange): boolean {
		const origin = parseOrigin(originText);
		// Browsers send `null` as the origin of sandboxed pages and local files.
		if (origin?.scheme === undefined) return false;
		if (this.#allowedOrigins === undefined) {
			const ownOrigin = parseOrigin(`${origin.scheme}://${x.request.authority}`);
			return ownOrigin !== undefined && ownOrigin.host === origin.host;
		}
		return this.#allowedOrigins.some(
			candidate =>
				candidate.host === origin.host && (candidate.scheme === undefined || candidate.scheme === origin.scheme),
		);
	}

	/**
	 * Reports whether the request has the token. Compares digests, which have equal lengths, so that the time of the comparison
	 * reveals nothing about the token.
	 */
	#hasValidToken(x: Exchange): boolean {
		const authorizationFields = x.request.headers.getAll('authorization');
		const [value = ''] = authorizationFields;
		const token =
			authorizationFields.length === 1 && /^bearer /i.test(value) ? trimBlanks(value.slice('bearer '.length)) : '';
		// Field values are decoded as Latin-1, whereas the configured token is Unicode text.
		return timingSafeEqual(tokenDigest(Buffer.from(token, 'latin1')), this.#tokenDigest!) && token !== '';
	}
}

function tokenDigest(token: string | Buffer): Buffer {
	return createHash('sha256').update(token).digest();
}

/** Parses `https://ops.example.com`, `//ops.example.com:8443` or `ops.example.com`. Returns undefined for anything else. */
function parseOrigin(originText: string): AllowedOrigin | undefined {
	const match = /^(?:([a-z][a-z0-9+.-]*):)?(?:\/\/)?([^/?#@\s]+)\/?$/i.exec(
		/^[^/:]+:\d+$/.test(originText) || /^\[/.test(originText) ? `//${originText}` : originText,
	);
	if (!match) return undefined;
	const scheme = match[1]?.toLowerCase();
	const url = URL.parse(`${scheme === 'https' ? 'https' : 'http'}://${match[2]}`);
	if (url === null) return undefined;
	return { scheme, host: url.host, hostname: url.hostname.replace(/^\[|\]$/g, '') };
}

/** Adds the CORS response fields that let pages of a configured origin read the answer. */
function allowOrigin(x: Exchange, origin: string): void {
	const headers = x.response.headers;
	headers.set('Access-Control-Allow-Origin', origin);
	headers.set('Access-Control-Expose-Headers', 'Etag');
	headers.add('Vary', 'Origin');
}
