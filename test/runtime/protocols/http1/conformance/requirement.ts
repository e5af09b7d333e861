/** What a row of the conformance table is. */

/** Something that RFC 9110 or RFC 9112 asks of us, with the bytes that show whether we do it. */
export interface Requirement {
	/** `9112 §6.1`. */
	readonly section: string;
	readonly level: 'MUST' | 'MUST NOT' | 'SHOULD' | 'SHOULD NOT' | 'MAY';
	/** In which role it concerns us: towards clients, between the two, towards upstreams. */
	readonly who: 'server' | 'proxy' | 'client';
	/** The requirement, in a few words. */
	readonly says: string;
	/** Bytes that a client sends, as latin1; of several pieces each goes out when the one before has been read. */
	readonly send: string | readonly string[];
	/** Bytes with which the upstream answers each request under `/up/`; `200 OK` with `ok` if left out. */
	readonly upstream?: string | readonly string[];
	/** The upstream answers 100 to a head that expects it. */
	readonly upstreamContinues?: boolean;
	/** The upstream closes after its answer. */
	readonly upstreamCloses?: boolean;
	/** What comes back to the client until our side closes. */
	readonly statuses?: readonly number[];
	readonly has?: readonly (string | RegExp)[];
	readonly lacks?: readonly (string | RegExp)[];
	/** What the upstream received. */
	readonly upstreamHas?: readonly (string | RegExp)[];
	readonly upstreamLacks?: readonly (string | RegExp)[];
	/** Requests that reached the upstream. */
	readonly upstreamRequests?: number;
}

/** A request line and Host for the server's own answer, which is `ok`. */
export const GET = 'GET /own HTTP/1.1\r\nHost: a.example\r\n';
/** The same for what goes to the upstream. */
export const GET_UP = 'GET /up/x HTTP/1.1\r\nHost: a.example\r\n';
/** A POST to the upstream. */
export const POST_UP = 'POST /up/x HTTP/1.1\r\nHost: a.example\r\n';
/** A last request, which ends the connection in an orderly way: it shows that what came before left it usable. */
export const LAST = 'GET /own HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n';
/** The field that makes a request the last one. */
export const CLOSE = 'Connection: close\r\n';
