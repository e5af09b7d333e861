/** Which requests a cache has to do with, and by what key: all that an answer could depend on without saying so. */
import type { Exchange, Request } from '../../../exchange/exchange.ts';
import { sameName } from '../../../exchange/header-list.ts';

/** What a cache does with a request. */
export type Role =
	/** Answers it, and keeps what comes. */
	| 'serve'
	/** Answers it if it can, and keeps nothing. */
	| 'look'
	/** Lets it by. */
	| 'pass'
	/** Lets it by, and forgets the URL when it has succeeded. */
	| 'write';

/** Methods that change nothing (RFC 9110 §9.2.1). */
const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PROPFIND', 'REPORT', 'SEARCH', 'QUERY']);

/** Fields by which frameworks take another method or target than the request's. */
const OVERRIDES: ReadonlySet<string> = new Set([
	...['x-http-method', 'x-rewrite-url', 'x-original-url', 'x-original-uri', 'x-override-url'],
	...['x-method-override', 'x-http-method-override'],
]);

/** A name as those read it who make variables of fields, as CGI does: `_` is `-` for them. */
function plainName(name: string): string {
	const lower = name.toLowerCase();
	return lower.includes('_') ? lower.replaceAll('_', '-') : lower;
}

/** Decides by method, body and fields. */
export function roleOf(x: Exchange): Role {
	const { request } = x;
	const { method } = request;
	if (method !== 'GET' && method !== 'HEAD') return SAFE.has(method) ? 'pass' : 'write';
	// A GET with a body may be answered by what the body says, which no key holds.
	if (request.body !== null) return 'pass';
	let role: Role = method === 'GET' ? 'serve' : 'look';
	const { headers } = request;
	for (let i = 0, size = headers.size; i < size; i++) {
		const name = headers.nameAt(i);
		switch (name.length) {
			case 5:
				if (sameName(name, 'range')) role = 'look';
				break;
			case 7:
				if (sameName(name, 'upgrade')) return 'pass';
				break;
			case 8:
				if (sameName(name, 'if-match')) return 'pass';
				break;
			case 13:
			case 14:
			case 17:
			case 22:
				if (OVERRIDES.has(plainName(name))) return 'pass';
				break;
			case 19:
				if (sameName(name, 'if-unmodified-since')) return 'pass';
		}
	}
	return role;
}

/** Fields by which frameworks build links and choose sites: what came in them is part of the key. */
const STEERING: readonly string[] = [
	...['x-forwarded-host', 'x-forwarded-proto', 'x-forwarded-scheme', 'x-forwarded-port', 'x-forwarded-server'],
	...['x-forwarded-prefix', 'x-forwarded-ssl', 'x-host', 'x-original-host', 'front-end-https', 'x-url-scheme'],
	...['x-forwarded-protocol', 'x-forwarded-path', 'x-forwarded-uri', 'x-forwarded-url', 'x-http-host-override'],
	...['x-backend-host', 'x-scheme', 'x-script-name'],
];

/** `host[:port]` as the client wrote it, in lower case. */
export function keyHost(request: Request): string {
	return request.authority.toLowerCase();
}

/**
 * The primary key: the site and the place in it, scheme, authority and target as they came, and the target as it is now
 * where it was rewritten. Nothing is decoded: what an origin could tell apart has different keys.
 */
export function primaryKey(x: Exchange, place: string): string {
	const { request, received } = x;
	let key = `${x.site}${place}${request.scheme}://${keyHost(request)}${received.path}`;
	if (received.query !== undefined) key += `?${received.query}`;
	if (request.path !== received.path || request.query !== received.query) {
		key += ` ${request.query === undefined ? request.path : `${request.path}?${request.query}`}`;
	}
	return steered(x, key);
}

/** A key of the configuration's own. */
export function configuredKey(x: Exchange, place: string, text: string): string {
	// A line ends what the configuration says: a decoded path must not seem to add a field.
	return steered(x, `${x.site}${place}${text.replaceAll('\n', '%0A')}`);
}

function steered(x: Exchange, key: string): string {
	const { headers } = x.request;
	let all = key;
	for (let i = 0, size = headers.size; i < size; i++) {
		const name = headers.nameAt(i);
		const first = name.charCodeAt(0) | 32;
		// x and f: nothing else begins a name of the list.
		if (first !== 120 && first !== 102) continue;
		const lower = plainName(name);
		if (STEERING.includes(lower)) all += `\n${lower}:${headers.valueAt(i)}`;
		else if (lower === 'forwarded') all += `\nforwarded:${steeringParts(headers.valueAt(i))}`;
	}
	return all;
}

/** Host and scheme of a `Forwarded` field; the clients that it names are not part of a key. */
function steeringParts(value: string): string {
	return [...value.matchAll(/(?:^|[;,])[ \t]*((?:host|proto)=[^;,]*)/gi)]
		.map(match => match[1]!.toLowerCase())
		.join(';');
}
