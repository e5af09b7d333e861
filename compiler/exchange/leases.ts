/** Interfaces to the runtime that handlers need. They are declared by the compiler and implemented by the runtime or a test. */

import type { Duplex } from 'node:stream';
import type { Body } from './body.ts';
import type { Exchange } from './exchange.ts';
import type { HeaderList } from './header-list.ts';
import type { MetricsFormat } from './metrics-format.ts';
import type { PageWork } from './page-work.ts';
import type { CacheSettings, ResponseCache } from './response-cache.ts';

/** One upstream of a pool. */
export interface Upstream {
	/** The configured address, after its placeholders have been replaced. */
	readonly address: string;
	readonly host: string;
	readonly port: number;
	/** Number of requests in flight to the upstream, in the whole process. */
	readonly active: number;
	/** Number of recent failures that passive health checks remember. */
	readonly fails: number;
}

/** A request to an upstream. */
export interface UpstreamRequest {
	readonly method: string;
	/** Path and query, as sent in the request line. */
	readonly target: string;
	/** All fields except framing fields (`Content-Length`, `Transfer-Encoding`, `Connection`, …), including `Host`. */
	readonly headers: HeaderList;
	readonly body: Body;
	/** Requested upgrade protocol (such as `websocket`), or undefined. */
	readonly upgrade: string | undefined;
	/** True to decode a gzip response, because the client did not request the coding (RFC 9110 §12.5.3). */
	readonly decodeGzip?: boolean;
	/** Values that the transport needs from the exchange, if any. */
	readonly transport?: TransportValues | undefined;
}

/** Per-request values for a transport. */
export interface TransportValues {
	/** Server name for TLS, if the settings contain placeholders. */
	readonly serverName: string | undefined;
	/** The client's addresses, for the PROXY protocol. */
	readonly client: ClientAddresses | undefined;
	/** FastCGI parameters as alternating names and values. */
	readonly params: readonly string[] | undefined;
}

/** A client's addresses; '' and 0 if unknown. */
export interface ClientAddresses {
	readonly address: string;
	readonly port: number;
	readonly localAddress: string;
	readonly localPort: number;
}

/** An upstream's response. `body` is a stream; `upgradedStream` is the byte stream after a 101. */
export interface UpstreamResponse {
	readonly status: number;
	/** Reason phrase, if it differs from the registered phrase for the status. */
	readonly reason?: string | undefined;
	readonly headers: HeaderList;
	readonly body: Body;
	readonly protocol: string;
	readonly upgradedStream: Duplex | undefined;
}

/** The phase in which an exchange with an upstream failed. */
export type UpstreamPhase = 'connect' | 'request' | 'response' | 'timeout';

/** The failure of an exchange with an upstream; `unsent` and `phase` decide whether it may be retried. */
export class UpstreamError extends Error {
	/**
	 * `connect`: nothing was sent; `request`: sending failed; `response`: the head was missing or invalid; `timeout`: a time limit
	 * was exceeded.
	 */
	readonly phase: UpstreamPhase;
	/** True if the upstream cannot have processed any byte of the request, so that any method may be sent elsewhere. */
	readonly unsent: boolean;

	constructor(phase: UpstreamPhase, message: string, cause?: unknown, unsent: boolean = phase === 'connect') {
		super(message, cause === undefined ? undefined : { cause });
		this.name = 'UpstreamError';
		this.phase = phase;
		this.unsent = unsent;
	}
}

/** Receives the outcome of a request to an upstream. Either `onResponse` or `onError` is called, exactly once. */
export interface UpstreamOutcome {
	/**
	 * Reports whether a complete body of this length may be in memory that is reused after `onResponse` has returned. If omitted or
	 * false, the body's memory belongs to the receiver.
	 */
	mayReuseBody?(length: number): boolean;
	/** Receives a 1xx response other than 101. */
	onInterim(status: number, headers: HeaderList): void;
	/** Receives the response. If `canWriteNow`, the response to the client can be written within this call. */
	onResponse(response: UpstreamResponse, canWriteNow?: boolean): void;
	onError(error: UpstreamError): void;
}

/** The time of a file's last modification. */
export interface FileTime {
	/** Number of whole seconds since the epoch, rounded down. */
	readonly seconds: number;
	/**
	 * Number of additional nanoseconds, from 0 to 999,999,999. They are separate because one number could not hold both precisely.
	 */
	readonly nanoseconds: number;
}

/** An open static file. */
export interface OpenFile {
	/** Absolute path of the opened file, with symbolic links resolved. */
	readonly path: string;
	/** The path relative to the root, with a leading slash; undefined if a followed link leads out of the root. */
	readonly relativePath: string | undefined;
	/** True if no link was followed, so that `path` is the root joined with the requested path; undefined if unknown. */
	readonly noLinkFollowed?: boolean;
	readonly size: number;
	readonly modified: FileTime;
	/** Where the contents come from. A file in memory or held open serves the next request, too, as long as it is unchanged. */
	readonly source: 'memory' | 'held' | 'disk';
	/**
	 * Returns the bytes from `start` up to, but not including, `end`, without opening the file again. The body closes the file
	 * when it ends or is canceled. With `keepOpen` (for several ranges) it does not, and the caller must call `close`. Throws
	 * FileError if the file has shrunk.
	 */
	body(start: number, end: number, keepOpen?: boolean): Body;
	/** Closes the file, for a response without a body (HEAD, 304). Safe to call twice. */
	close(): void;
}

/** Metadata of a file or folder that is not opened. */
export interface FileFacts {
	readonly type: 'file' | 'directory';
	readonly size: number;
	/** Modification time in nanoseconds since the epoch. */
	readonly mtimeNs: bigint;
}

export interface FolderEntry {
	readonly name: string;
	readonly type: 'file' | 'directory';
	/** Size in bytes; 0 for a folder. */
	readonly size: number;
	/** Modification time in nanoseconds since the epoch. */
	readonly mtimeNs: bigint;
	/** Permission bits and type, like `st_mode`. */
	readonly mode: number;
	/** Target of a symbolic link, as stored in the link; undefined for anything else. */
	readonly target: string | undefined;
	/** Absolute path of a symbolic link's target, with all links resolved; undefined for anything else. */
	readonly realPath: string | undefined;
}

/** Reads files below roots. */
export interface FileReader {
	/**
	 * Opens a file below `root`. `path` is decoded, slash-separated and starts with `/`. A byte that is not UTF-8 is represented
	 * by U+DC00 plus the byte (a lone surrogate), so that every name can be expressed. Neither the path nor, unless
	 * `followSymlinks`, a symbolic link can lead out of the root. Throws FileError.
	 */
	open(root: string, path: string, followSymlinks: boolean): OpenFile | Promise<OpenFile>;
	/**
	 * Returns the type of a path below `root` without opening it; undefined if it does not exist. Throws FileError if it cannot
	 * be determined for another reason.
	 */
	kind(root: string, path: string, followSymlinks: boolean): 'file' | 'directory' | undefined;
	/**
	 * Like `kind`, but also returns the size and the modification time. Returns undefined for anything inaccessible. Never throws.
	 */
	stat(root: string, path: string, followSymlinks: boolean): FileFacts | undefined;
	/** Returns the names in a folder below `root`, sorted by code unit; empty if it is not a readable folder. Never throws. */
	list(root: string, path: string, followSymlinks: boolean): readonly string[];
	/**
	 * Returns at most `maxEntries` files and folders of a folder below `root`, unsorted, and the modification time of the folder
	 * itself in nanoseconds. Omits links that lead out of the root (unless followed), inaccessible entries, anything other than
	 * files and folders, and names that are not UTF-8. Throws FileError.
	 */
	entries(
		root: string,
		path: string,
		followSymlinks: boolean,
		maxEntries: number,
	): Promise<{ readonly entries: readonly FolderEntry[]; readonly mtimeNs: bigint }>;
	/** Returns the first `maxBytes` bytes of any regular file, or undefined if it cannot be read. */
	readStart(path: string, maxBytes: number): Uint8Array | undefined;
	/**
	 * Returns the path with all symbolic links resolved, or undefined if it does not exist. Intended for loading a configuration,
	 * not for requests.
	 */
	realPath?(path: string): string | undefined;
}

/** Why a file could not be opened. */
export class FileError extends Error {
	readonly reason: 'not_found' | 'directory' | 'forbidden' | 'invalid' | 'unavailable';

	constructor(
		reason: 'not_found' | 'directory' | 'forbidden' | 'invalid' | 'unavailable',
		message: string,
		cause?: unknown,
	) {
		super(message, cause === undefined ? undefined : { cause });
		this.name = 'FileError';
		this.reason = reason;
	}
}

/** An access log. The runtime formats and writes its entries outside the request path. */
export interface AccessLog {
	/** Records an exchange that has ended. If `logCredentials`, also records the values of fields that contain credentials. */
	record(x: Exchange, logCredentials?: boolean, time?: string): void;
}

/** The metrics of the process. */
export interface MetricsSource {
	/** Returns all process metrics as text. */
	render(format: MetricsFormat): Promise<string>;
}

/** The health of the process, as the main thread sees it. */
export interface HealthSource {
	/**
	 * Resolves to a sentence that says why the server is not ready, or to undefined if it is. Pending while the main thread does
	 * not respond.
	 */
	notReadyReason(): Promise<string | undefined>;
}

/** The value of a span attribute. */
export type SpanValue = string | number | boolean;

/** A span that has ended. */
export interface SpanRecord {
	readonly name: string;
	/** `server`: the span of a request; `client`: of a request to an upstream; `internal`: of another part of a request. */
	readonly kind: 'server' | 'client' | 'internal';
	readonly traceId: string;
	readonly spanId: string;
	/** Trace flags as in W3C Trace Context. */
	readonly flags: number;
	/** A valid `tracestate`; undefined if there is none. */
	readonly state: string | undefined;
	readonly parentId: string | undefined;
	readonly parentIsRemote: boolean;
	/** Start of the span in milliseconds since 1970. */
	readonly startedAt: number;
	/** Duration of the span in milliseconds. */
	readonly duration: number;
	/** Whether the span's status is an error. */
	readonly isError: boolean;
	readonly attributes: { readonly [name: string]: SpanValue };
}

/** Generates IDs, decides which spans are recorded, and exports spans outside the request path. */
export interface Tracer {
	/** Returns a random trace ID of 32 lower-case hexadecimal digits. */
	newTraceId(): string;
	/** Returns a random span ID of 16 lower-case hexadecimal digits. */
	newSpanId(): string;
	/** Reports whether a span is recorded; `parentSampled` is the caller's decision, undefined for a new trace. */
	isSampled(traceId: string, parentSampled: boolean | undefined): boolean;
	record(span: SpanRecord): void;
}

/** A supported content coding (RFC 9110 §8.4.1; RFC 7932; RFC 8878). */
export type CodingName = 'gzip' | 'br' | 'zstd';

/** A content coding with its compression level. */
export interface Coding {
	readonly name: CodingName;
	/** Level of compression. gzip: 1 to 9 (default 5); br: 0 to 11 (default 4); zstd: 1 to 19 (default 3). */
	readonly level?: number;
	/** For zstd: false omits the checksum from frames. */
	readonly checksum?: false;
}

/** Compresses bodies. Only a limited number is compressed at a time, so that other requests are not starved. */
export interface Compressor {
	/**
	 * Returns the body to send instead of `body`, which must no longer be used. The result is not `encoded` if the body turned
	 * out to have at most `minimum` bytes, or if too many bodies are being compressed. `flush`: send what has been read before
	 * waiting for more. `identity`: the file whose complete content the body is, so that the compressed form may be cached.
	 */
	encode(
		body: Exclude<Body, null>,
		coding: Coding,
		options: { readonly minimum: number; readonly flush: boolean; readonly identity: ServedFile | undefined },
	): EncodedResult | Promise<EncodedResult>;
}

/** The result of compressing a body. */
export interface EncodedResult {
	readonly body: Exclude<Body, null>;
	readonly encoded: boolean;
}

/** Identifies a file in its current state. */
export interface ServedFile {
	/** Absolute path, with symbolic links resolved. */
	readonly path: string;
	readonly size: number;
	readonly modified: FileTime;
}

/** Counts an event in the whole process, across threads and generations. */
export interface EventCounter {
	add(): void;
}

/**
 * All kinds of leases: the settings by which each is identified, and the resource that the handler receives. A module that needs
 * a kind of its own adds it by declaration merging, so that this folder depends on no directives.
 */
export interface LeaseKinds {
	files: { settings: Record<string, never>; lease: FileReader };
	metrics: { settings: Record<string, never>; lease: MetricsSource };
	health: { settings: Record<string, never>; lease: HealthSource };
	tracer: { settings: Record<string, never>; lease: Tracer };
	cache: { settings: CacheSettings; lease: ResponseCache };
	compressor: { settings: Record<string, never>; lease: Compressor };
	/**
	 * The counter of a module's event. Its name is a metric label in lower case with underscores. It is a constant in the code and
	 * never taken from a request.
	 */
	event_counter: { settings: { readonly event: string }; lease: EventCounter };
}

/**
 * Grants leases while a handler graph is built. Calls with equal kind and settings return the same lease, even across generations.
 */
export interface Leases {
	lease<K extends keyof LeaseKinds>(kind: K, settings: LeaseKinds[K]['settings']): LeaseKinds[K]['lease'];
	/**
	 * Performs expensive work for pages; undefined where no such work is done, as when a configuration is checked. Not a lease, so
	 * it is never released.
	 */
	readonly pageWork?: PageWork | undefined;
}
