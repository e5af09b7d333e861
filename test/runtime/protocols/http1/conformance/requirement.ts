/** A row of the conformance table. */

/** A requirement of RFC 9110 or RFC 9112, with bytes that show whether the server meets it. */
export interface Requirement {
	/** The RFC and its section, for example `9112 §6.1`. */
	readonly section: string;
	readonly level: 'MUST' | 'MUST NOT' | 'SHOULD' | 'SHOULD NOT' | 'MAY';
	/** The role in which the server must meet the requirement: towards clients, as an intermediary, or towards upstreams. */
	readonly who: 'server' | 'proxy' | 'client';
	/** A short description of the requirement. */
	readonly says: string;
	/**
	 * Bytes that a client sends, as latin1. If there are several pieces, each is sent after the server has read the previous one.
	 */
	readonly send: string | readonly string[];
	/** Bytes with which the upstream answers each request under `/up/`. The default is `200 OK` with the body `ok`. */
	readonly upstream?: string | readonly string[];
	/** True if the upstream answers 100 to a request with `Expect: 100-continue`. */
	readonly upstreamContinues?: boolean;
	/** True if the upstream closes the connection after its response. */
	readonly upstreamCloses?: boolean;
	/** Statuses that the client receives before the server closes the connection. */
	readonly statuses?: readonly number[];
	readonly has?: readonly (string | RegExp)[];
	readonly lacks?: readonly (string | RegExp)[];
	/** Texts and patterns that must occur in the bytes received by the upstream. */
	readonly upstreamHas?: readonly (string | RegExp)[];
	readonly upstreamLacks?: readonly (string | RegExp)[];
	/** Number of requests that must have reached the upstream. */
	readonly upstreamRequests?: number;
}

/** The request line and Host of a request that the server itself answers with `ok`. */
export const GET = 'GET /own HTTP/1.1\r\nHost: a.example\r\n';
/** The request line and Host of a request that is proxied to the upstream. */
export const PROXIED_GET_HEAD = 'GET /up/x HTTP/1.1\r\nHost: a.example\r\n';
/** The request line and Host of a POST that is proxied to the upstream. */
export const PROXIED_POST_HEAD = 'POST /up/x HTTP/1.1\r\nHost: a.example\r\n';
/** A last request, which closes the connection in an orderly way. Its response shows that the connection was still usable. */
export const FINAL_REQUEST = 'GET /own HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n';
/** The field that makes a request the last on its connection. */
export const CLOSE = 'Connection: close\r\n';
