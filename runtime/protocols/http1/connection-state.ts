/**
 * States of a server connection, as numbers for a fast switch. In the states up to BLOCKED, received bytes may belong to further
 * requests.
 */

/** Between exchanges, or in the middle of a request head. */
export const READING_HEAD = 0;
/** An exchange is in progress, and its request body is being received. */
export const READING_BODY = 1;
/** An exchange is in progress, and its request is complete: further bytes belong to the next one. */
export const AWAITING_RESPONSE = 2;
/** The response has been sent, and the rest of the request body is discarded. */
export const DISCARDING_BODY = 3;
/** No exchange is in progress, but the client is not reading responses, so no further requests are processed. */
export const BLOCKED = 4;
/** Our side is closed; received bytes are discarded, so that the client can read our last response (RFC 9112 §9.6). */
export const LINGERING = 5;
/** The handler of an upgrade owns the byte stream. */
export const UPGRADED = 6;
/** The socket has closed. */
export const CLOSED = 7;
