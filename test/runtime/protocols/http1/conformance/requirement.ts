/** A row of the conformance table. */

/** A requirement of RFC 9110 or RFC 9112, with bytes that show whether the server meets it. */
export interface Requirement {
	/** `9112 §6.1`. */
	readonly section: string;
	readonly level: 'MUST' | 'MUST NOT' | 'SHOULD' | 'SHOULD NOT' | 'MAY';
	/** The server's role: towards clients, as an intermediary, or towards upstreams. */
	readonly who: 'server' | 'proxy' | 'client';
	/** The requirement, in a few words. */
	readonly says: string;
	/** Bytes that a client sends, as latin1. Each of several pieces is sent when the previous one has been read. */
	readonly send: string | readonly string[];
	/** Bytes with which the upstream answers each request under `/up/`. By default `200 OK` with `ok`. */
	readonly upstream?: string | readonly string[];
	/** The upstream answers 100 to a request that expects it. */
	readonly upstreamContinues?: boolean;
	/** The upstream closes the connection after its response. */
	readonly upstreamCloses?: boolean;
	/** Statuses the client receives until the server closes the connection. */
	readonly statuses?: readonly number[];
	readonly has?: readonly (string | RegExp)[];
	readonly lacks?: readonly (string | RegExp)[];
	/** What the upstream must have received. */
	readonly upstreamHas?: readonly (string | RegExp)[];
	readonly upstreamLacks?: readonly (string | RegExp)[];
	/** Number of requests that must have reached the upstream. */
	readonly upstreamRequests?: number;
}

/** The request line and Host of a request that the server itself answers with `ok`. */
export const GET = 'GET /own HTTP/1.1\r\nHost: a.example\r\n';
/** The same for a request that is proxied to the upstream. */
export const GET_UP = 'GET /up/x HTTP/1.1\r\nHost: a.example\r\n';
/** A POST to the upstream. */
export const POST_UP = 'POST /up/x HTTP/1.1\r\nHost: a.example\r\n';
/** A final request that closes the connection in an orderly way, which shows that the connection was still usable. */
export const LAST = 'GET /own HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n';
/** The field that makes a request the last on its connection. */
export const CLOSE = 'Connection: close\r\n';
