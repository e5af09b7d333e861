/** Which responses a shared cache may keep (RFC 9111 §3), and which it had better not. */

import type { Exchange } from '../../../exchange/exchange.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import { contentType } from '../file-server/content-type.ts';
import type { Directives } from './cache-control.ts';
import { isKeptUntold, type Lifetime } from './freshness.ts';
import { MOST_SELECTING } from './selection.ts';

/** Statuses whose caching this server knows: what `must-understand` asks for (RFC 9111 §5.2.2.3). */
const UNDERSTOOD: ReadonlySet<number> = new Set([
	...[200, 203, 204, 300, 301, 302, 303, 307, 308],
	...[401, 403, 404, 405, 410, 414, 451, 500, 501, 502, 503, 504],
]);

/**
 * Statuses that are part of a response or of an exchange; and those that tell of one request's fields, body or pace: who
 * sends a request that the origin refuses must not have everybody refused (RFC 6585 forbids it of 428, 429, 431 and 511).
 */
const NEVER: ReadonlySet<number> = new Set([
	...[101, 206, 304, 416],
	...[400, 408, 411, 412, 413, 415, 417, 421, 422, 425, 426, 428, 429, 431, 511],
]);

/** Whether responses of a status are never kept, whatever is said. */
export function isNeverKept(status: number): boolean {
	return NEVER.has(status);
}

/** Why a response is not kept; undefined when it may be. */
export type Objection =
	| 'no-store'
	| 'private'
	| 'status'
	| 'set-cookie'
	| 'vary'
	| 'authorization'
	| 'cookie'
	| 'deception'
	| 'no-freshness';

/** What is known of the request. */
export interface Asked {
	/** It carried `Authorization`, or `Cookie`: the answer may be for one user only. */
	readonly authorized: boolean;
	readonly cookies: boolean;
	/** The client asked that nothing be kept. */
	readonly noStore: boolean;
}

/** Judges a response to a GET. */
export function objectionTo(
	x: Exchange,
	status: number,
	headers: HeaderList,
	directives: Directives,
	{ source, lifetime }: Lifetime,
	asked: Asked,
	validated: boolean,
): Objection | undefined {
	const understood = directives.has('must-understand');
	if (NEVER.has(status) || status < 200 || (understood && !UNDERSTOOD.has(status))) return 'status';
	if (asked.noStore || (directives.has('no-store') && !understood)) return 'no-store';
	if (directives.get('private') === '') return 'private';
	if (headers.has('set-cookie')) return 'set-cookie';
	if (isForNobody(headers)) return 'vary';
	const told = source === 'explicit';
	const shared = directives.has('public') || directives.has('s-maxage');
	if (asked.authorized && !shared && !directives.has('must-revalidate')) return 'authorization';
	// What a page says of its own age it says to the one who asked with a session, too.
	if (asked.cookies && !shared) return 'cookie';
	if (!told && isDeceptive(x, headers)) return 'deception';
	if (lifetime > 0) return undefined;
	// Without any time it is worth keeping only where validating it is cheaper than sending it.
	const toValidate = told || (directives.has('no-cache') && isKeptUntold(status, directives));
	return toValidate && validated ? undefined : 'no-freshness';
}

/** `Vary: *`: no other request is like this one (RFC 9110 §12.5.5). As little is one where dozens of fields must be alike. */
function isForNobody(headers: HeaderList): boolean {
	const names = headers.combined('vary')?.split(',') ?? [];
	return names.length > MOST_SELECTING || names.some(name => name.trim() === '*');
}

/**
 * Whether the path names another type than the response has, as `/account/x.css` does on a server that takes what follows
 * `/account` for nothing: nobody has said that this page may be kept, and it may be one user's.
 */
function isDeceptive(x: Exchange, headers: HeaderList): boolean {
	const named = contentType(x.received.path);
	if (named === undefined) return false;
	const type = headers.get('content-type');
	if (type === undefined) return true;
	const essence = (text: string): string => text.split(';', 1)[0]!.trim().toLowerCase();
	const a = essence(named);
	const b = essence(type);
	return a !== b && !(isScript(a) && isScript(b)) && !(isXml(a) && isXml(b)) && !(isIcon(a) && isIcon(b));
}

/** Types that servers name in several ways. */
const isScript = (type: string): boolean => /^(?:application|text)\/(?:x-)?(?:java|ecma)script$/.test(type);
const isXml = (type: string): boolean => /[/+]xml$/.test(type);
const isIcon = (type: string): boolean => /^image\/(?:x-icon|vnd\.microsoft\.icon)$/.test(type);
