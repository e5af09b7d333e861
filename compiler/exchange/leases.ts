/** What handlers need from the runtime: interfaces that the compiler declares and the runtime (or a test) fills. */

import type { Duplex } from 'node:stream';
import type { Body } from './body.ts';
import type { Exchange } from './exchange.ts';
import type { HeaderList } from './header-list.ts';
import type { MetricsFormat } from './metrics-format.ts';
import type { PageWork } from './page-work.ts';
import type { CacheSettings, ResponseCache } from './response-cache.ts';

/** One upstream of a pool. */
export interface Upstream {
	/** Address as the configuration names it, resolved. */
	readonly address: string;
	readonly host: string;
	readonly port: number;
	/** Requests in flight, of the whole process. */
	readonly active: number;
	/** Failures that are remembered. */
	readonly fails: number;
}

/** What is sent to an upstream. */
export interface UpstreamRequest {
	readonly method: string;
	/** Path and query as they go on the request line. */
	readonly target: string;
	/** All fields but framing ones (`Content-Length`, `Transfer-Encoding`, `Connection`, …), `Host` included. */
	readonly headers: HeaderList;
	readonly body: Body;
	/** Upgrade asked for (`websocket`), or undefined. */
	readonly upgrade: string | undefined;
	/** True: an answer in gzip is decoded, since it was not the client that asked for it (RFC 9110 §12.5.3). */
	readonly decodes?: boolean;
	/** What the transport needs to know of the exchange, when it asks for something. */
	readonly transport?: TransportValues | undefined;
}

/** What a transport is told with each request. */
export interface TransportValues {
	/** Name for TLS, where the settings have placeholders in it. */
	readonly serverName: string | undefined;
	/** The client, as the PROXY protocol tells of it. */
	readonly client: ProxiedClient | undefined;
	/** FastCGI: names and values, one after the other. */
	readonly params: readonly string[] | undefined;
}

/** A client's addresses; '' and 0 where they are not known. */
export interface ProxiedClient {
	readonly address: string;
	readonly port: number;
	readonly localAddress: string;
	readonly localPort: number;
}

/** What an upstream answered. `body` streams; `upgraded` is the byte stream after a 101. */
export interface UpstreamResponse {
	readonly status: number;
	/** Reason phrase that came, if it is another than the registered one of the status. */
	readonly reason?: string | undefined;
	readonly headers: HeaderList;
	readonly body: Body;
	readonly protocol: string;
	readonly upgraded: Duplex | undefined;
}

/** In which part of an exchange with an upstream it failed. */
export type UpstreamPhase = 'connect' | 'request' | 'response' | 'timeout';

/** Why an exchange with an upstream failed; `unsent` and `phase` decide whether it may be tried again. */
export class UpstreamError extends Error {
	/** `connect`: nothing was sent; `request`: sending failed; `response`: no head came, or not a valid one; `timeout`. */
	readonly phase: UpstreamPhase;
	/** True when no byte of the request can have been acted on: it may be sent elsewhere whatever its method. */
	readonly unsent: boolean;

	constructor(phase: UpstreamPhase, message: string, cause?: unknown, unsent: boolean = phase === 'connect') {
		super(message, cause === undefined ? undefined : { cause });
		this.name = 'UpstreamError';
		this.phase = phase;
		this.unsent = unsent;
	}
}

/** Who waits for an upstream's answer. One of `answered` and `failed` is called, once. */
export interface UpstreamOutcome {
	/**
	 * Whether a whole body of so many bytes may stand in memory that is used for something else once `answered` has returned.
	 * Left out, and false: it is the outcome's.
	 */
	lendable?(length: number): boolean;
	/** A 1xx response but 101. */
	informed(status: number, headers: HeaderList): void;
	/** `ready`: the answer can be written within this call. */
	answered(response: UpstreamResponse, ready?: boolean): void;
	failed(error: UpstreamError): void;
}

/** When the bytes of a file changed last. */
export interface FileTime {
	/** Whole seconds since the epoch, rounded down. */
	readonly seconds: number;
	/** Nanoseconds behind them, from 0 to 999,999,999: both together are more than a number can hold. */
	readonly nanoseconds: number;
}

/** An open static file, or why there is none. */
export interface OpenFile {
	/** Absolute path of the file that was opened, symbolic links resolved. */
	readonly path: string;
	/** The same from the root on, with a leading slash; undefined when a followed link leads out of it. */
	readonly below: string | undefined;
	/** Whether `path` is nothing but the root and the path that it was opened by; not known if left out. */
	readonly asNamed?: boolean;
	readonly size: number;
	readonly changed: FileTime;
	/** Where its bytes are: kept in memory, or held open, it is given again for the next request as long as nothing about it changes. */
	readonly from: 'memory' | 'held' | 'disk';
	/**
	 * The bytes from `start` up to but not including `end`; opens nothing again. The body closes the file when it ends or is
	 * cancelled, unless `keepOpen` (several ranges of one file): then `close` does. Throws FileError when the file has shrunk.
	 */
	body(start: number, end: number, keepOpen?: boolean): Body;
	/** For an answer without a body (HEAD, 304). Safe to call twice. */
	close(): void;
}

/** What is known of a file or folder without opening it. */
export interface FileFacts {
	readonly type: 'file' | 'directory';
	readonly size: number;
	/** Nanoseconds since the epoch. */
	readonly mtimeNs: bigint;
}

/** What a folder holds under one name. */
export interface FolderEntry {
	readonly name: string;
	readonly type: 'file' | 'directory';
	/** Bytes; 0 for a folder. */
	readonly size: number;
	/** Nanoseconds since the epoch. */
	readonly mtimeNs: bigint;
	/** Permission bits and type, as `st_mode`. */
	readonly mode: number;
	/** Where a symbolic link leads, as it is written in it; undefined for what is none. */
	readonly target: string | undefined;
	/** Absolute path with links resolved; undefined for what is no link. */
	readonly real: string | undefined;
}

/** Reads files below roots. */
export interface FileReader {
	/**
	 * Opens a file below `root` by a decoded, slash-separated path that starts with `/`. A byte that is not UTF-8 stands in it
	 * as U+DC00 plus the byte (a lone surrogate), so that every name can be said. The path is resolved inside the root:
	 * it cannot leave it, nor can a symbolic link unless `followSymlinks`. Throws FileError.
	 */
	open(root: string, path: string, followSymlinks: boolean): OpenFile | Promise<OpenFile>;
	/** What a path below root is, without opening it. Throws FileError but for `not_found`, which is undefined. */
	kind(root: string, path: string, followSymlinks: boolean): 'file' | 'directory' | undefined;
	/** As `kind`, with size and time; undefined also for what may not be looked at. Never throws. */
	stat(root: string, path: string, followSymlinks: boolean): FileFacts | undefined;
	/** Names in a folder below root, in the order of their code units; none when it is no folder or cannot be read. Never throws. */
	list(root: string, path: string, followSymlinks: boolean): readonly string[];
	/**
	 * Files and folders in a folder below root, in no order, `most` at most, with the folder's own time in nanoseconds. Links
	 * that lead out of the root are left out unless followed, as is what cannot be looked at and what is neither file nor
	 * folder, and names that are not UTF-8. Throws FileError.
	 */
	entries(
		root: string,
		path: string,
		followSymlinks: boolean,
		most: number,
	): Promise<{ readonly entries: readonly FolderEntry[]; readonly mtimeNs: bigint }>;
	/** The first `bytes` bytes of a regular file anywhere, or undefined when it cannot be read. */
	readStart(path: string, bytes: number): Uint8Array | undefined;
	/** The path with every symbolic link resolved, or undefined when nothing is there. For load time, not per request. */
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

/** A logger of access entries: the runtime formats and writes outside the request's path. */
export interface AccessLog {
	/** Records one exchange once it has ended. */
	/** `credentials`: fields that hold credentials are shown. */
	record(x: Exchange, credentials?: boolean, at?: string): void;
}

/** Renders the metrics of the process. */
export interface MetricsSource {
	/** All metrics of the process as text. */
	render(format: MetricsFormat): Promise<string>;
}

/** A value of a span's attribute. */
export type SpanValue = string | number | boolean;

/** A span that has ended. */
export interface SpanRecord {
	readonly name: string;
	/** `server`: of a request; `client`: of one to an upstream; `internal`: another part of one. */
	readonly kind: 'server' | 'client' | 'internal';
	readonly traceId: string;
	readonly spanId: string;
	/** Flags of W3C Trace Context. */
	readonly flags: number;
	/** `tracestate`, valid. */
	readonly state: string | undefined;
	readonly parentId: string | undefined;
	readonly parentIsRemote: boolean;
	/** Milliseconds since 1970. */
	readonly startedAt: number;
	/** Milliseconds. */
	readonly duration: number;
	/** Whether the span's status is an error. */
	readonly failed: boolean;
	readonly attributes: { readonly [name: string]: SpanValue };
}

/** Makes ids, decides what is recorded, and takes spans for export outside the request's path. */
export interface Tracer {
	/** 32 lower-case hexadecimal digits, random. */
	newTraceId(): string;
	/** 16 lower-case hexadecimal digits, random. */
	newSpanId(): string;
	/** Whether a span is recorded; `parentSampled` is what the caller decided, undefined where a trace begins. */
	samples(traceId: string, parentSampled: boolean | undefined): boolean;
	record(span: SpanRecord): void;
}

/** A content coding that we can make (RFC 9110 §8.4.1; RFC 7932; RFC 8878). */
export type CodingName = 'gzip' | 'br' | 'zstd';

/** A content coding with how hard it tries. */
export interface Coding {
	readonly name: CodingName;
	/** gzip 1 to 9 (5 if left out), br 0 to 11 (4), zstd 1 to 19 (3). */
	readonly level?: number;
	/** Of zstd: frames without a checksum. */
	readonly checksum?: false;
}

/** Encodes bodies, so much at a time that requests do not starve. */
export interface Compressor {
	/**
	 * The body to send in place of one that must not be used any more. It is not `encoded` when it turned out to be no longer
	 * than `minimum` bytes, or when too much is being encoded already. `flush`: what came is sent before more is waited for.
	 * `identity`: the file that the body is whole of; its encoded form may be kept.
	 */
	encode(
		body: Exclude<Body, null>,
		coding: Coding,
		options: { readonly minimum: number; readonly flush: boolean; readonly identity: ServedFile | undefined },
	): EncodedResult | Promise<EncodedResult>;
}

/** What became of a body that was to be encoded. */
export interface EncodedResult {
	readonly body: Exclude<Body, null>;
	readonly encoded: boolean;
}

/** A file, told apart from all others and from itself before it was changed. */
export interface ServedFile {
	/** Absolute path, symbolic links resolved. */
	readonly path: string;
	readonly size: number;
	readonly changed: FileTime;
}

/**
 * Every kind of lease: the settings that are its key, and what the handler gets. A module that needs a kind of its own adds it
 * by declaration merging, so that this folder knows no directive.
 */
export interface LeaseKinds {
	files: { settings: Record<string, never>; lease: FileReader };
	metrics: { settings: Record<string, never>; lease: MetricsSource };
	tracer: { settings: Record<string, never>; lease: Tracer };
	cache: { settings: CacheSettings; lease: ResponseCache };
	compressor: { settings: Record<string, never>; lease: Compressor };
}

/** Gives leases while a graph is built. The same kind and settings give the same lease, across generations. */
export interface Leases {
	lease<K extends keyof LeaseKinds>(kind: K, settings: LeaseKinds[K]['settings']): LeaseKinds[K]['lease'];
	/** Does work for pages; undefined where none is done, as while a configuration is checked. Nothing is given back. */
	readonly pageWork?: PageWork | undefined;
}
