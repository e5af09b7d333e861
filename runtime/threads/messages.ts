/** What the threads say to each other. Payloads are strings and small arrays: cloning deep objects would stall the main loop. */
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
import type { MainThreadQuestion } from './main-thread-requests.ts';
import type { WantedMemory } from './shared-rows.ts';
import type { Stall } from './stop-answering.ts';

/** Slot, in the Int32 memory that all threads share, of the number of the generation being served. */
export const CONTROL_GENERATION = 0;
/** Slot of the time at which a stop that waits will begin, in seconds since 1970; 0 while none does. */
export const CONTROL_STOPS_AT = 1;
/** First of the slots, one a thread, that hold characters of access log on their way to the main thread. */
export const CONTROL_OUTSTANDING = 16;
/** Characters on their way to the main thread beyond which a thread drops log text. */
export const MOST_OUTSTANDING: number = 8 * 1024 * 1024;
/** What an entry of the process log counts for. */
export const LOG_ENTRY_WEIGHT = 1024;
/** Data-plane threads at most. */
export const MOST_THREADS = 256;
/** Length of that memory. */
export const CONTROL_SLOTS = CONTROL_OUTSTANDING + MOST_THREADS;

/** A socket to listen on. `port` is 0 until the main thread has chosen one. */
export interface ListenerAddress extends PlannedSocket {
	readonly scheme: 'http' | 'https';
	/** The socket that the main thread holds and of which each thread listens on a copy; undefined when each binds its own. */
	readonly descriptor?: number;
}

/** `[from, count]`: sites kept from the generation before, starting at `from`; −1 takes the next `count` changed ones. */
export type SiteRun = readonly [from: number, count: number];

/** What a worker needs to build a generation from the one it serves. */
export interface GenerationDelta {
	/** JSON of `{settings, upstreams, routes}`; undefined when it is as before. */
	readonly shared: string | undefined;
	readonly runs: readonly SiteRun[];
	/** JSON arrays of sites, each chunk small enough to be parsed in one slice. */
	readonly changed: readonly string[];
	/** Places of steps, as far as they are new. */
	readonly places: {
		/** JSON arrays of `[index of the site, JSON of its places]`. */
		readonly sites: readonly string[];
		/** JSON of those of named routes; undefined when it is as before. */
		readonly routes: string | undefined;
	};
	/** Every listener; `sites` are JSON arrays of ListedSite in chunks, undefined when they are as before. */
	readonly listeners: readonly {
		readonly key: string;
		readonly sites: readonly string[] | undefined;
		/** JSON of its ListenerTls; undefined for one without TLS, and when it is as before. */
		readonly tls?: string | undefined;
	}[];
}

/** What the main thread needs to know of a document. */
export interface DocumentFacts {
	readonly settings: Settings;
	readonly listeners: readonly ListenerAddress[];
	readonly sites: number;
	/** Absolute paths of the files that the configuration was read from. */
	readonly files: readonly string[];
	/** Certificates to keep; undefined when there are none. */
	readonly certificates: PlannedCertificates | undefined;
	/** Pools that the document names outside of its sites. */
	readonly pools: readonly SharedPool[];
}

/** How a candidate is judged. */
export interface PrepareTerms {
	/** The process was started without a configuration. */
	readonly unconfigured: boolean;
	/** It is served even if nothing has changed, and everything is built again. */
	readonly force?: boolean | undefined;
	/** It is refused if the running document could not take its place again. */
	readonly reversible?: boolean | undefined;
}

/** Main thread to compile thread; each is answered by a reply with the same id. */
export type CompilerRequest =
	| { readonly id: number; readonly op: 'adapt'; readonly input: ConfigInput }
	/** Compiles a candidate. */
	| ({ readonly id: number; readonly op: 'prepare'; readonly input: ConfigInput } & PrepareTerms)
	/** As `prepare`, of the running document with a change. */
	| ({ readonly id: number; readonly op: 'edit'; readonly edit: ConfigEdit } & PrepareTerms)
	/** What `prepare` would find; there is no candidate afterwards. */
	| ({ readonly id: number; readonly op: 'preview'; readonly input: ConfigInput } & PrepareTerms)
	/** Makes the candidate the running document, or forgets it. */
	| { readonly id: number; readonly op: 'commit' }
	| { readonly id: number; readonly op: 'discard' }
	/** The running document as a delta from nothing. */
	| { readonly id: number; readonly op: 'snapshot' }
	| {
			readonly id: number;
			readonly op: 'read';
			readonly path: readonly string[];
			readonly object?: string | undefined;
	  }
	/** For tests: the thread stops answering. */
	| { readonly id: number; readonly op: 'stall'; readonly how: Stall };

/** What compiling a candidate gave. */
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

/** Answers of the compile thread, by operation. */
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

/** A reply of the compile thread; `failure` is a bug's message, never a mistake in the input. */
export type CompilerReply = {
	readonly id: number;
	readonly answer?: unknown;
	readonly failure?: string;
	readonly stack?: string;
};

/** What a worker thread starts with. */
export interface WorkerStart {
	/** Row of this thread in shared memory, from 0. */
	readonly index: number;
	/** Rows that there are: threads of the pool. */
	readonly rows: number;
	/** Int32 slots shared by all threads. */
	readonly control: SharedArrayBuffer;
	/** Float64 row of the fixed counters of this thread. */
	readonly counters: SharedArrayBuffer;
	/** Memory of its ThreadActivity. */
	readonly activity: SharedArrayBuffer;
	/** Whether several threads bind each address. */
	readonly sharePorts: boolean;
	/** Whether the process's standard error is a terminal: then logs that name no format are for eyes. */
	readonly terminal: boolean;
	/** Whether the process log takes debug entries whatever the settings say. */
	readonly verbose: boolean;
	/** Folder and environment that placeholders see. */
	readonly workingDirectory: string;
	readonly environment: { readonly [name: string]: string | undefined };
}

/** Main thread to worker. */
export type ToWorker =
	| {
			readonly type: 'prepare';
			/** Never used twice: answers name it. */
			readonly attempt: number;
			/** The number that shared memory will hold. */
			readonly generation: number;
			readonly delta: GenerationDelta;
			/** Every listener with its final port; those already bound stay as they are. */
			readonly listeners: readonly ListenerAddress[];
	  }
	/** The generation has been flipped to: listeners bound for it start accepting, the one before is given up. */
	| { readonly type: 'activate' }
	| { readonly type: 'tls'; readonly update: TlsUpdate }
	| { readonly type: 'discard' }
	/** Memory asked for with `memory_wanted`; undefined when the machine has not so much. */
	| { readonly type: 'memory'; readonly key: string; readonly buffer: SharedArrayBuffer | undefined }
	| { readonly type: 'drain' }
	/** Answers `ask`; `failed` when there is no answer, and why. */
	| { readonly type: 'answer'; readonly id: number; readonly answer: unknown; readonly failed?: string }
	/** Asks for a `pong`: a thread that is stuck sends none. */
	| { readonly type: 'ping'; readonly number: number }
	/** For tests: fails as an uncaught exception outside any request would, or stops answering. */
	| { readonly type: 'crash' | Stall };

/** Severity of a log entry, least first. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** An entry of the process log as threads send it. */
export interface LogEntry {
	readonly level: LogLevel;
	/** Name of the logger: `http`, `runtime`. */
	readonly logger: string;
	readonly message: string;
	readonly fields?: { readonly [name: string]: unknown } | undefined;
}

/** A series of numbers that a thread keeps in a page of its own. */
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
	/** The thread listens at an address. */
	| { readonly type: 'listening'; readonly key: string; readonly socket: SocketDescriptors }
	| {
			readonly type: 'refused';
			readonly attempt: number;
			readonly code: string;
			readonly message: string;
			readonly pointer?: string | undefined;
	  }
	| { readonly type: 'memory_wanted'; readonly key: string; readonly wanted: WantedMemory }
	| { readonly type: 'memory_released'; readonly key: string }
	/** All addresses that the dynamic source of a pool has found, as this thread knows them. */
	| { readonly type: 'upstreams_found'; readonly key: string; readonly addresses: readonly string[] }
	/** Of a response cache with a disk. */
	| { readonly type: 'cache'; readonly store: string; readonly news: DiskEvent }
	| { readonly type: 'page'; readonly buffer: SharedArrayBuffer }
	| { readonly type: 'series'; readonly series: SeriesAnnouncement }
	/** A thread begins or ends to use a log writer; opening comes before the `prepared` of the generation that needs it. */
	| {
			readonly type: 'sink_opened';
			readonly sink: string;
			readonly output: LogOutput;
	  }
	| { readonly type: 'sink_released'; readonly sink: string }
	/** Formatted access entries; `sink` is the key of their writer. */
	| { readonly type: 'access'; readonly sink: string; readonly text: string; readonly entries: number }
	/** The same as the first bytes of a segment, which the main thread gives back. */
	| {
			readonly type: 'access_segment';
			readonly sink: string;
			readonly lines: PostedLines;
			readonly entries: number;
	  }
	/** Entries that were dropped and counted here; sent once a second at most, for what the process log says. */
	| { readonly type: 'access_dropped'; readonly sink: string; readonly entries: number }
	| { readonly type: 'log'; readonly entry: LogEntry }
	/** Answers `ping`. */
	| { readonly type: 'pong'; readonly number: number }
	/** A thread begins to make spans of requests. */
	| { readonly type: 'tracing_opened' }
	/** `spans` of them that have ended, as JSON objects with commas between. */
	| { readonly type: 'spans'; readonly text: string; readonly spans: number }
	/** Asks the main thread something; an `answer` of the same id follows. */
	| { readonly type: 'ask'; readonly id: number; readonly question: MainThreadQuestion }
	/** Answers to challenges stand: see TlsUpdate. */
	| { readonly type: 'challenges_taken'; readonly number: number }
	/** Every connection of a draining thread has ended. */
	| { readonly type: 'drained' };
