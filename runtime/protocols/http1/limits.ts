/** Limits of the HTTP/1.1 engine, configurable and fixed. */
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

/** Maximum characters of a method; longer ones are answered with 405. */
export const MAX_METHOD_LENGTH = 32;

/** Bytes of an unread request body at which the socket is paused. */
export const BODY_HIGH_WATER = 65_536;

/** Bytes of pipelined requests held during an exchange at which the socket is paused. */
export const PIPELINE_HIGH_WATER = 65_536;

/** Up to this many bytes, a body is sent as one string with its head. */
export const COALESCE_LIMIT = 4096;

/** Up to this many bytes, a complete body is converted to text for that. */
export const TEXT_LIMIT = 1024;

/** Bytes of responses to pipelined requests that are gathered before they are written. */
export const GATHER_LIMIT = 65_536;

/** Milliseconds without data from the client for which a connection is kept open after its last response (RFC 9112 §9.6). */
export const LINGER_IDLE = 2000;

/** The same, regardless of data. */
export const LINGER_TOTAL = 10_000;

/** Maximum milliseconds between checks of deadlines. */
export const TICK = 500;
