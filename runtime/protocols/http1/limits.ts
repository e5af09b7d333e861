/** Bounds of the HTTP/1.1 engine: what the configuration can set, and what is fixed. */
import type { ProtocolLimits } from '../protocol.ts';

/** The bounds of a server whose configuration sets none. */
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

/** Characters of a method; a longer one is answered 405. */
export const MAX_METHOD_LENGTH = 32;

/** Bytes of a request's body that are held while nobody pulls; then the socket is paused. */
export const BODY_HIGH_WATER = 65_536;

/** Bytes of further requests that are held while an exchange is under way; then the socket is paused. */
export const PIPELINE_HIGH_WATER = 65_536;

/** A body of at most this many bytes goes out in one string with its head. */
export const COALESCE_LIMIT = 4096;

/** Bytes of a whole body up to which they are made text for that. */
export const TEXT_LIMIT = 1024;

/** Bytes of answers to pipelined requests that are gathered before they are written. */
export const GATHER_LIMIT = 65_536;

/** Milliseconds that a connection is kept after its last answer without a byte from the client (RFC 9112 §9.6). */
export const LINGER_IDLE = 2000;

/** The same, whatever the client sends. */
export const LINGER_TOTAL = 10_000;

/** Milliseconds between two looks at the connections' deadlines, at most. */
export const TICK = 500;
