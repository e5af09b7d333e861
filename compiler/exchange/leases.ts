/**
 * Interfaces of the resources that handlers need from the runtime. The compiler declares them, and the runtime or a test implements
 * them.
 */

import type { Duplex } from 'node:stream';
import type { Body } from './body.ts';
import type { Exchange } from './exchange.ts';
import type { HeaderList } from './header-list.ts';
import type { MetricsFormat } from './metrics-format.ts';
import type { ModuleEvent } from './module-events.ts';
import type { PageWork } from './page-work.ts';
import type { CacheSettings, ResponseCache } from './response-cache.ts';

/** A server of a pool, with its address and state. */
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

export interface UpstreamRequest {
	readonly method: string;
	/** Path and query, as sent in the request line. */
	readonly target: string;
	/** All fields except framing fields (`Content-Length`, `Transfer-Encoding`, `Connection`, …), including `Host`. */
	readonly headers: HeaderList;
	readonly body: Body;
	/** Requested upgrade protocol (such as `websocket`), or undefined. */
	readonly upgrade: string | undefined;
	/** True if a gzip response must be decoded, because the client did not request the coding (RFC 9110 §12.5.3). */
	readonly decodeGzip?: boolean;
	/** Values that the transport needs from the exchange; undefined if it needs none. */
	readonly transport?: TransportValues | undefined;
}

/** Per-request values for a transport. */
export interface TransportValues {
	/** Server name for TLS; undefined unless the setting contains placeholders. */
	readonly serverName: string | undefined;
	/** The client's addresses, for the PROXY protocol. */
	readonly client: ClientAddresses | undefined;
	/** FastCGI parameters as alternating names and values. */
	readonly params: readonly string[] | undefined;
}

/** The two ends of a client's connection; '' and 0 if unknown. */
export interface ClientAddresses {
	readonly address: string;
	readonly port: number;
	readonly localAddress: string;
	readonly localPort: number;
}

/** An upstream's response. `upgradedStream` is the byte stream that follows a 101. */
export interface UpstreamResponse {
	readonly status: number;
	/** Reason phrase; undefined if it is the registered phrase for the status. */
	readonly reason?: string | undefined;
	readonly headers: HeaderList;
	readonly body: Body;
	readonly protocol: string;
	readonly upgradedStream: Duplex | undefined;
	/** True if an attacker on the network path could have shortened the body without being noticed. */
	readonly mayBeTruncated?: boolean;
}

/** The phase in which an exchange with an upstream failed. */
export type UpstreamPhase = 'connect' | 'request' | 'response' | 'timeout';

/** The failure of an exchange with an upstream. `isUnsent` and `phase` decide whether the request may be retried. */
export class UpstreamError extends Error {
	/**
	 * `connect`: nothing was sent; `request`: sending failed; `response`: the head was missing or invalid; `timeout`: a time limit
	 * was exceeded.
	 */
	readonly phase: UpstreamPhase;
	/** True if the upstream cannot have processed any byte of the request, so that a request with any method may be retried. */
	readonly isUnsent: boolean;

	constructor(phase: UpstreamPhase, message: string, cause?: unknown, isUnsent: boolean = phase === 'connect') {
		super(message, cause === undefined ? undefined : { cause });
		this.name = 'UpstreamError';
		this.phase = phase;
		this.isUnsent = isUnsent;
	}
}

/** Receives the outcome of a request to an upstream. Of `onResponse` and `onError`, exactly one is called, once. */
export interface UpstreamOutcome {
	/**
	 * Reports whether a complete body of this length may be in memory that is reused after `onResponse` has returned. Otherwise, or
	 * if the method is omitted, the memory of the body belongs to the receiver.
	 */
	mayReuseBody?(length: number): boolean;
	/** Receives a 1xx response other than 101. */
	onInterim(status: number, headers: HeaderList): void;
	/** Receives the response. If `canWriteNow`, the receiver can write the response to the client within this call. */
	onResponse(response: UpstreamResponse, canWriteNow?: boolean): void;
	onError(error: UpstreamError): void;
}

/** The time of a file's last modification. */
export interface FileTime {
	/** Seconds since 1970, rounded down. */
	readonly seconds: number;
	/**
	 * Additional nanoseconds, from 0 to 999,999,999. They are separate, because a single number could not represent the time
	 * precisely.
	 */
	readonly nanoseconds: number;
}

/** A file that has been opened to be sent. */
export interface OpenFile {
	/** Absolute path of the opened file, with symbolic links resolved. */
	readonly path: string;
	/** Path below the root, with a leading slash; undefined if a followed link leads out of the root. */
	readonly relativePath: string | undefined;
	/** True if no link was followed, so that `path` is the root joined with the requested path; undefined if unknown. */
	readonly noLinkFollowed?: boolean;
	readonly size: number;
	readonly modified: FileTime;
	/** Where the contents come from. A file in memory or held open also serves later requests, as long as it is unchanged. */
	readonly source: 'memory' | 'held' | 'disk';
	/**
	 * Returns the bytes from `start` up to, but not including, `end`, without opening the file again. The body closes the file when
	 * it ends or is canceled, unless `keepOpen` is true (for several ranges); the caller must then call `close`. Throws FileError
	 * if the file has shrunk.
	 */
	body(start: number, end: number, keepOpen?: boolean): Body;
	/** Closes the file, for a response without a body (HEAD, 304). May be called twice. */
	close(): void;
}

/** Metadata of a file or folder, obtained without opening it. */
export interface FileFacts {
	readonly type: 'file' | 'directory';
	readonly size: number;
	/** Modification time in nanoseconds since 1970. */
	readonly mtimeNs: bigint;
}

export interface FolderEntry {
	readonly name: string;
	readonly type: 'file' | 'directory';
	/** Size in bytes; 0 for a folder. */
	readonly size: number;
	/** Modification time in nanoseconds since 1970. */
	readonly mtimeNs: bigint;
	/** Permission bits and type, as in `st_mode`. */
	readonly mode: number;
	/** Target of a symbolic link, as stored in the link; undefined if the entry is not a link. */
	readonly target: string | undefined;
	/** Absolute path of a symbolic link's target, with all links resolved; undefined if the entry is not a link. */
	readonly realPath: string | undefined;
}

/** Reads files below root folders. */
export interface FileReader {
	/**
	 * Opens a file below `root`. `path` is decoded, slash-separated and starts with `/`. A byte that is not UTF-8 is represented
	 * by U+DC00 plus the byte (a lone surrogate), so that every name can be expressed. Neither the path nor, unless
	 * `followSymlinks`, a symbolic link can lead out of the root. Throws FileError.
	 */
	open(root: string, path: string, followSymlinks: boolean): OpenFile | Promise<OpenFile>;
	/**
	 * Returns the type of a file or folder below `root` without opening it; undefined if it does not exist. Throws FileError if the
	 * type cannot be determined for another reason.
	 */
	kind(root: string, path: string, followSymlinks: boolean): 'file' | 'directory' | undefined;
	/**
	 * Returns the type, size and modification time of a file or folder below `root`; undefined if it is inaccessible. Never throws.
	 */
	stat(root: string, path: string, followSymlinks: boolean): FileFacts | undefined;
	/** Returns the names in a folder below `root`, sorted by code unit; empty if it is not a readable folder. Never throws. */
	list(root: string, path: string, followSymlinks: boolean): readonly string[];
	/**
	 * Returns at most `maxEntries` entries of a folder below `root`, unsorted, and the modification time of the folder itself in
	 * nanoseconds. Omits links that lead out of the root (unless followed), inaccessible entries, entries other than files and
	 * folders, and names that are not UTF-8. Throws FileError.
	 */
	entries(
		root: string,
		path: string,
		followSymlinks: boolean,
		maxEntries: number,
	): Promise<{ readonly entries: readonly FolderEntry[]; readonly mtimeNs: bigint }>;
	/** Returns the first `maxBytes` bytes of a regular file, which need not be below a root; undefined if it cannot be read. */
	readStart(path: string, maxBytes: number): Uint8Array | undefined;
	/**
	 * Returns a path with all symbolic links resolved; undefined if it does not exist. For use when a configuration is loaded, not
	 * in requests.
	 */
	realPath?(path: string): string | undefined;
}

/** The error for a file that could not be opened, with the reason. */
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
	/**
	 * Records an exchange that has ended. If `logCredentials` is true, the values of fields that contain credentials are recorded
	 * as well.
	 */
	record(x: Exchange, logCredentials?: boolean, time?: string): void;
}

/** The metrics of the process. */
export interface MetricsSource {
	/** Returns all process metrics as text. */
	render(format: MetricsFormat): Promise<string>;
}

/** The health of the process, as determined by the main thread. */
export interface HealthSource {
	/**
	 * Resolves to a sentence that says why the server is not ready; undefined if it is ready. Stays pending while the main thread
	 * does not respond.
	 */
	notReadyReason(): Promise<string | undefined>;
}

/** The value of a span attribute. */
export type SpanValue = string | number | boolean;

/** A span of a distributed trace, recorded after it has ended. */
export interface SpanRecord {
	readonly name: string;
	/** `server` for the span of a request, `client` for a request to an upstream, `internal` for another part of a request. */
	readonly kind: 'server' | 'client' | 'internal';
	readonly traceId: string;
	readonly spanId: string;
	/** Trace flags of W3C Trace Context. */
	readonly flags: number;
	/** A valid `tracestate`; undefined if there is none. */
	readonly state: string | undefined;
	readonly parentId: string | undefined;
	readonly parentIsRemote: boolean;
	/** Start of the span in milliseconds since 1970. */
	readonly startedAt: number;
	/** Duration of the span in milliseconds. */
	readonly duration: number;
	/** True if the status of the span is an error. */
	readonly isError: boolean;
	readonly attributes: { readonly [name: string]: SpanValue };
}

/** Generates IDs, decides which spans are recorded, and exports spans outside of the request path. */
export interface Tracer {
	/** Returns a random trace ID of 32 lower-case hexadecimal digits. */
	newTraceId(): string;
	/** Returns a random span ID of 16 lower-case hexadecimal digits. */
	newSpanId(): string;
	/** Reports whether a span is recorded. `parentSampled` is the decision of the caller's tracer; undefined for a new trace. */
	isSampled(traceId: string, parentSampled: boolean | undefined): boolean;
	record(span: SpanRecord): void;
}

/** A supported content coding (RFC 9110 §8.4.1; RFC 7932; RFC 8878). */
export type CodingName = 'gzip' | 'br' | 'zstd';

/** A content coding with its compression level. */
export interface Coding {
	readonly name: CodingName;
	/** Compression level. gzip: 1 to 9 (default 5); br: 0 to 11 (default 4); zstd: 1 to 19 (default 3). */
	readonly level?: number;
	/** For zstd: false if frames have no checksum. */
	readonly checksum?: false;
}

/** Compresses bodies. Only a limited number of bodies is compressed at a time, so that other requests are not starved. */
export interface Compressor {
	/**
	 * Returns the body to send instead of `body`, which must no longer be used. The body is returned uncompressed if it turns out
	 * to have at most `minimum` bytes, or if too many bodies are being compressed. With `flush`, everything that has been read is
	 * sent before waiting for more. `identity` is the file of which the body is the complete content, so that the compressed form
	 * may be cached.
	 */
	encode(
		body: Exclude<Body, null>,
		coding: Coding,
		options: { readonly minimum: number; readonly flush: boolean; readonly identity: ServedFile | undefined },
	): EncodedResult | Promise<EncodedResult>;
}

/** The result of compressing a body. `encoded` is false if the body was left uncompressed. */
export interface EncodedResult {
	readonly body: Exclude<Body, null>;
	readonly encoded: boolean;
}

/** A file in a particular state, for caching encoded forms of its content. */
export interface ServedFile {
	/** Absolute path, with symbolic links resolved. */
	readonly path: string;
	readonly size: number;
	readonly modified: FileTime;
}

/** Counts one kind of event in the whole process, across threads and generations. */
export interface EventCounter {
	add(): void;
}

/**
 * All kinds of leases on resources of the runtime. Each kind has settings, which identify the resource, and the type of the
 * resource that the handler receives. A module that needs another kind adds it by declaration merging, so that this folder does
 * not depend on directives.
 */
export interface LeaseKinds {
	files: { settings: Record<string, never>; lease: FileReader };
	metrics: { settings: Record<string, never>; lease: MetricsSource };
	health: { settings: Record<string, never>; lease: HealthSource };
	tracer: { settings: Record<string, never>; lease: Tracer };
	cache: { settings: CacheSettings; lease: ResponseCache };
	compressor: { settings: Record<string, never>; lease: Compressor };
	/** The counter for a kind of event in a module. */
	event_counter: { settings: { readonly event: ModuleEvent }; lease: EventCounter };
}

/**
 * Grants leases while a handler graph is built. Calls with equal kind and settings return the same resource, even across
 * generations.
 */
export interface Leases {
	lease<K extends keyof LeaseKinds>(kind: K, settings: LeaseKinds[K]['settings']): LeaseKinds[K]['lease'];
	/**
	 * Runs expensive tasks for page templates; undefined where no such tasks are run, for example when a configuration is checked.
	 * It is not a lease, so it is never released.
	 */
	readonly pageWork?: PageWork | undefined;
}
