/** Limits of the HTTP/1.1 engine: the defaults of configurable limits, and the fixed limits. */
import type { ProtocolLimits } from '../protocol.ts';

/** The limits of a server whose configuration sets none. */
export const DEFAULT_LIMITS: ProtocolLimits = {
	maxHeadSize: 32_768,
	maxHeaderCount: 100,
	headTimeout: 60_000,
	idleTimeout: 300_000,
	bodyTimeout: 0,
	bodyIdleTimeout: 60_000,
	bodyRate: 0,
	writeTimeout: 0,
	writeIdleTimeout: 60_000,
	writeRate: 0,
	writeChunk: 65_536,
	maxChunkExtensions: 4096,
	maxDrain: 262_144,
	maxRequestsPerConnection: 0,
};

/** Maximum characters of a method. Longer ones are answered with 405. */
export const MAX_METHOD_LENGTH = 32;

/** When this many bytes of a request body are unread, the socket is paused. */
export const BODY_HIGH_WATER_BYTES = 65_536;

/** When this many bytes of pipelined requests are held during an exchange, the socket is paused. */
export const PIPELINE_HIGH_WATER_BYTES = 65_536;

/**
 * A text body, or a chunk of a streamed body, of up to this many bytes is sent as one string with the head or framing before it.
 */
export const MAX_COALESCED_BYTES = 4096;

/** A complete body of up to this many bytes is converted to a string, so that it can be sent as one string with its head. */
export const MAX_TEXT_BYTES = 1024;

/** Responses to pipelined requests are gathered until they have this many bytes, then written. */
export const MAX_GATHERED_BYTES = 65_536;

/**
 * After its last response, a connection is closed when the client has sent nothing for this many milliseconds (RFC 9112 §9.6).
 */
export const LINGER_IDLE_MS = 2000;

/** After its last response, a connection is closed after this many milliseconds even if the client keeps sending. */
export const LINGER_TOTAL_MS = 10_000;
