/** Messages between threads. Payloads are strings and small arrays, because cloning deep objects would block the main thread. */
import type { Http3Wish } from '../../compiler/codegen/http3-at.ts';
import type { PlannedSocket } from '../../compiler/codegen/planned-socket.ts';
import type { PlannedCertificates } from '../../compiler/codegen/tls/plan-tls.ts';
import type { DiagnosticReport } from '../../compiler/diagnostics/diagnostic.ts';
import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import type { Settings } from '../../compiler/document/document.ts';
import type { SharedPool } from '../../compiler/document/shared-pools.ts';
import type { LogOutput } from '../../compiler/modules/providers/log-writers/log-output.ts';
import type { DiskEvent } from '../cache/disk/disk-messages.ts';
import type { PostedLines } from '../logs/log-segment.ts';
import type {
	ConfigEdit,
	ConfigReading,
	EditRefused,
	Irreversible,
	LoadPreview,
	RestartReason,
} from '../main/control.ts';
import type { SocketDescriptors } from '../sockets/listening-socket.ts';
import type { TlsUpdate } from '../tls/tls-update.ts';
import type { MainThreadQuestion } from '../worker/main-thread-requests.ts';
import type { WantedMemory } from './shared-rows.ts';
import type { Stall } from './stop-answering.ts';

/** Slot, in the Int32 memory shared by all threads, of the current generation's number. */
export const CONTROL_GENERATION = 0;
/** Slot of the time at which a delayed stop starts, in seconds since 1970; 0 if none is pending. */
export const CONTROL_STOPS_AT = 1;
/** First slot, one per thread, of the number of log characters in transit to the main thread. */
export const CONTROL_OUTSTANDING = 16;
/** Characters in transit beyond which a thread drops log text. */
export const MAX_OUTSTANDING: number = 8 * 1024 * 1024;
/** Characters that an entry of the process log counts for. */
export const LOG_ENTRY_WEIGHT = 1024;
/** Maximum number of worker threads. */
export const MOST_THREADS = 256;
/** Number of slots. */
export const CONTROL_SLOTS = CONTROL_OUTSTANDING + MOST_THREADS;

/** A socket to listen on. `port` is 0 until the main thread has chosen one. */
export interface ListenerAddress extends PlannedSocket {
	readonly scheme: 'http' | 'https';
	/** The socket held by the main thread, of which each thread listens on a duplicate; undefined if each thread binds its own. */
	readonly descriptor?: number;
	/** Sockets of the process that this one succeeds, of which the thread listens on duplicates; see runtime/main/handover. */
	readonly inherited?: readonly number[];
	/** The thread binds it only once it is told to accept, because the process that this one succeeds still serves the address. */
	readonly deferred?: true;
	/** Set if UDP is bound beside TCP. Without UDP, a listener whose HTTP/3 is `named` is not served at all. */
	readonly http3?: Http3Wish;
}

/** `[from, count]`: reused sites of the previous generation, starting at `from`; −1 takes the next `count` changed ones. */
export type SiteRun = readonly [from: number, count: number];

/** What a worker needs to build a generation from the current one. */
export interface GenerationDelta {
	/** JSON of `{settings, upstreams, routes}`; undefined if unchanged. */
	readonly shared: string | undefined;
	readonly runs: readonly SiteRun[];
	/** JSON arrays of sites, each chunk small enough to be parsed in one slice. */
	readonly changed: readonly string[];
	/** New places of steps. */
	readonly places: {
		/** JSON arrays of `[index of the site, JSON of its places]`. */
		readonly sites: readonly string[];
		/** JSON of those of named routes; undefined if unchanged. */
		readonly routes: string | undefined;
	};
	/** Every listener; `sites` are JSON arrays of ListedSite in chunks, undefined if unchanged. */
	readonly listeners: readonly {
		readonly key: string;
		readonly sites: readonly string[] | undefined;
		/** JSON of its ListenerTls; undefined without TLS, or if unchanged. */
		readonly tls?: string | undefined;
	}[];
}

/** Facts about a document that the main thread needs. */
export interface DocumentFacts {
	readonly settings: Settings;
	readonly listeners: readonly ListenerAddress[];
	readonly sites: number;
	/** Absolute paths of the files that the configuration was read from. */
	readonly files: readonly string[];
	/** Certificates to manage, or undefined if none are configured. */
	readonly certificates: PlannedCertificates | undefined;
	/** Named pools of the document. */
	readonly pools: readonly SharedPool[];
}

/** Options for preparing a candidate. */
export interface PrepareTerms {
	/** The process was started without a configuration. */
	readonly unconfigured: boolean;
	/** Applies it even if nothing has changed, and builds everything again. */
	readonly force?: boolean | undefined;
	/** Refuses it if it could not be rolled back. */
	readonly reversible?: boolean | undefined;
}

/** Main thread to compile thread. Each request gets a reply with the same id. */
export type CompilerRequest =
	| { readonly id: number; readonly op: 'adapt'; readonly input: ConfigInput }
	/** Compiles a candidate. */
	| ({ readonly id: number; readonly op: 'prepare'; readonly input: ConfigInput } & PrepareTerms)
	/** Like `prepare`, for the running document with a change. */
	| ({ readonly id: number; readonly op: 'edit'; readonly edit: ConfigEdit } & PrepareTerms)
	/** Returns what `prepare` would find, without keeping a candidate. */
	| ({ readonly id: number; readonly op: 'preview'; readonly input: ConfigInput } & PrepareTerms)
	/** Makes the candidate the running document, or discards it. */
	| { readonly id: number; readonly op: 'commit' }
	| { readonly id: number; readonly op: 'discard' }
	/** Returns the running document as a delta from nothing. */
	| { readonly id: number; readonly op: 'snapshot' }
	| {
			readonly id: number;
			readonly op: 'read';
			readonly path: readonly string[];
			readonly object?: string | undefined;
	  }
	/** For tests: makes the thread stop responding. */
	| { readonly id: number; readonly op: 'stall'; readonly how: Stall };

/** The result of compiling a candidate. */
export type Prepared =
	| { readonly result: 'refused'; readonly diagnostics: readonly DiagnosticReport[] }
	| {
			readonly result: 'restart_required';
			readonly reasons: readonly RestartReason[];
			readonly diagnostics: readonly DiagnosticReport[];
	  }
	| Irreversible
	| { readonly result: 'unchanged'; readonly diagnostics: readonly DiagnosticReport[] }
	| {
			readonly result: 'swap';
			readonly diagnostics: readonly DiagnosticReport[];
			readonly facts: DocumentFacts;
			readonly delta: GenerationDelta;
	  };

/** Replies of the compile thread, by operation. */
export interface CompilerAnswers {
	adapt: { readonly document: string | undefined; readonly diagnostics: readonly DiagnosticReport[] };
	prepare: Prepared;
	edit: Prepared | EditRefused;
	preview: LoadPreview;
	/** UTF-8 JSON of the document. */
	commit: ArrayBuffer;
	discard: null;
	snapshot: { readonly facts: DocumentFacts; readonly delta: GenerationDelta };
	read: ConfigReading;
	stall: null;
}

/** A reply of the compile thread; `failure` is the message of a bug, never a mistake in the input. */
export type CompilerReply = {
	readonly id: number;
	readonly answer?: unknown;
	readonly failure?: string;
	readonly stack?: string;
};

/** Start parameters of a worker thread. */
export interface WorkerStart {
	/** The thread's row in shared memory, from 0. */
	readonly index: number;
	/** Number of rows: the size of the pool. */
	readonly rows: number;
	/** Int32 slots shared by all threads. */
	readonly control: SharedArrayBuffer;
	/** Float64 row of the thread's fixed counters. */
	readonly counters: SharedArrayBuffer;
	/** Memory of the thread's ThreadActivity. */
	readonly activity: SharedArrayBuffer;
	/** Whether several threads bind each address. */
	readonly sharePorts: boolean;
	/** Whether standard error is a terminal: logs without a format are then human-readable. */
	readonly terminal: boolean;
	/** Whether the process log accepts debug entries regardless of the settings. */
	readonly verbose: boolean;
	/** Folder and environment for placeholders. */
	readonly workingDirectory: string;
	readonly environment: { readonly [name: string]: string | undefined };
}

/** Main thread to worker. */
export type ToWorker =
	| {
			readonly type: 'prepare';
			/** Unique number, repeated in replies. */
			readonly attempt: number;
			/** The number of the generation in shared memory. */
			readonly generation: number;
			readonly delta: GenerationDelta;
			/** Every listener with its final port; those already bound are unchanged. */
			readonly listeners: readonly ListenerAddress[];
	  }
	/** The generation is active: its listeners start accepting, and the previous one is released. */
	| { readonly type: 'activate' }
	| { readonly type: 'tls'; readonly update: TlsUpdate }
	| { readonly type: 'discard' }
	/** Memory requested with `memory_wanted`; undefined if the machine has not enough. */
	| { readonly type: 'memory'; readonly key: string; readonly buffer: SharedArrayBuffer | undefined }
	/** Answers a request on each listener without its socket; the reply is `prepared` or `refused`. */
	| { readonly type: 'check'; readonly attempt: number }
	/** Listens on the addresses that were deferred; the reply is `prepared` or `refused`. */
	| { readonly type: 'accept'; readonly attempt: number }
	/** `gently`: another process serves new connections, so nobody is in a hurry. */
	| { readonly type: 'drain'; readonly gently?: boolean }
	/** The reply to `ask`; `failed` is set, with the reason, if there is none. */
	| { readonly type: 'answer'; readonly id: number; readonly answer: unknown; readonly failed?: string }
	/** Requests a `pong`, which a stuck thread does not send. */
	| { readonly type: 'ping'; readonly number: number }
	/** For tests: throws outside any request, or stops responding. */
	| { readonly type: 'crash' | Stall };

/** Severity of a log entry, in ascending order. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** An entry of the process log, as sent by threads. */
export interface LogEntry {
	readonly level: LogLevel;
	/** Name of the logger: `http`, `runtime`. */
	readonly logger: string;
	readonly message: string;
	readonly fields?: { readonly [name: string]: unknown } | undefined;
}

/** A series of numbers in a page of a thread. */
export interface SeriesAnnouncement {
	readonly family: string;
	readonly labels: { readonly [name: string]: string };
	/** Index of the page among those this thread announced, and the first Float64 slot in it. */
	readonly page: number;
	readonly slot: number;
}

/** Worker to main thread. */
export type FromWorker =
	| { readonly type: 'prepared'; readonly attempt: number }
	/** The thread listens on an address. */
	| { readonly type: 'listening'; readonly key: string; readonly sockets: readonly SocketDescriptors[] }
	| {
			readonly type: 'refused';
			readonly attempt: number;
			readonly code: string;
			readonly message: string;
			readonly pointer?: string | undefined;
	  }
	| { readonly type: 'memory_wanted'; readonly key: string; readonly wanted: WantedMemory }
	| { readonly type: 'memory_released'; readonly key: string }
	/** All addresses that a pool's dynamic source has found on this thread. */
	| { readonly type: 'upstreams_found'; readonly key: string; readonly addresses: readonly string[] }
	/** An event of a response cache with a disk. */
	| { readonly type: 'cache'; readonly store: string; readonly news: DiskEvent }
	| { readonly type: 'page'; readonly buffer: SharedArrayBuffer }
	| { readonly type: 'series'; readonly series: SeriesAnnouncement }
	/** A thread starts or stops using a log writer. Opening precedes the `prepared` of the generation that needs it. */
	| {
			readonly type: 'sink_opened';
			readonly sink: string;
			readonly output: LogOutput;
	  }
	| { readonly type: 'sink_released'; readonly sink: string }
	/** Formatted access log entries; `sink` is the key of their writer. */
	| { readonly type: 'access'; readonly sink: string; readonly text: string; readonly entries: number }
	/** Formatted access log entries at the start of a shared memory segment, which the main thread returns after writing them. */
	| {
			readonly type: 'access_segment';
			readonly sink: string;
			readonly lines: PostedLines;
			readonly entries: number;
	  }
	/** Entries that were dropped and counted by the thread; sent at most once a second, to be logged. */
	| { readonly type: 'access_dropped'; readonly sink: string; readonly entries: number }
	| { readonly type: 'log'; readonly entry: LogEntry }
	/** The reply to `ping`. */
	| { readonly type: 'pong'; readonly number: number }
	/** A thread starts creating spans. */
	| { readonly type: 'tracing_opened' }
	/** Finished spans, as comma-separated JSON objects; `spans` is their number. */
	| { readonly type: 'spans'; readonly text: string; readonly spans: number }
	/** A request to the main thread; an `answer` with the same id follows. */
	| { readonly type: 'ask'; readonly id: number; readonly question: MainThreadQuestion }
	/** Challenge answers have been received: see TlsUpdate. */
	| { readonly type: 'challenges_taken'; readonly number: number }
	/** Every connection of a draining thread has ended. */
	| { readonly type: 'drained' };
