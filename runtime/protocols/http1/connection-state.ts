/** States of a server's connection; up to BLOCKED, bytes that come in may belong to a further request. Numbers, for a fast switch. */

/** Between exchanges, or within a head. */
export const HEAD = 0;
/** An exchange is under way and its request's body comes in. */
export const BODY = 1;
/** An exchange is under way and its request is whole: what comes now is the next one's. */
export const WAIT = 2;
/** The response is out, the rest of the request's body is thrown away. */
export const DRAIN = 3;
/** No exchange, but the client takes no bytes: nothing more is read into answers. */
export const BLOCKED = 4;
/** Our side is closed; the client's bytes are thrown away so that it can read our last answer (RFC 9112 §9.6). */
export const LINGER = 5;
/** The byte stream belongs to whoever upgraded. */
export const UPGRADED = 6;
/** The socket has closed. */
export const CLOSED = 7;
