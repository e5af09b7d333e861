/**
 * Messages between the main thread and worker threads: strings and small arrays, because cloning deep objects would block the
 * main thread.
 */
import type { PlannedCertificates } from '../../compiler/codegen/plan/plan-tls.ts';
import type { Settings } from '../../compiler/document/document.ts';
import type { LogOutput } from '../../compiler/document/log-settings.ts';
import type { SharedPool } from '../../compiler/document/shared-pools.ts';
import type { FetchResult } from '../cache/cluster-messages.ts';
import type { DiskEvent } from '../cache/disk/disk-messages.ts';
import type { ListenerAddress } from '../listeners/listener-address.ts';
import type { LogEntry } from '../logs/log-entry.ts';
import type { PostedLines } from '../logs/log-segment.ts';
import type { SeriesAnnouncement } from '../metrics/series-announcement.ts';
import type { RequestWaits } from '../protocols/protocol.ts';
import type { BequeathedDatagrams } from '../sockets/bequeathed-sockets.ts';
import type { SocketDescriptors } from '../sockets/listening-socket.ts';
import type { MemoryRequest } from '../threads/shared-rows.ts';
import type { StallKind } from '../threads/stop-answering.ts';
import type { TlsUpdate } from '../tls/tls-update.ts';
import type { MainThreadRequest } from './main-thread-requests.ts';

/**
 * `[from, count]`: `count` reused sites of the previous generation, starting at `from`, or the next `count` changed sites if
 * `from` is −1.
 */
export type SiteRange = readonly [from: number, count: number];

/** What a worker needs to build a generation from the current one. */
export interface GenerationDelta {
	/** JSON of `{settings, upstreams, routes}`; undefined if these are unchanged. */
	readonly shared: string | undefined;
	readonly siteRanges: readonly SiteRange[];
	/** The new and changed sites as JSON arrays, each short enough to be parsed in one time slice of the build. */
	readonly changed: readonly string[];
	/** The places of steps in the configuration files, if they are new or have changed. */
	readonly places: {
		/** JSON arrays of `[index of the site, JSON of where its steps are]`. */
		readonly sites: readonly string[];
		/** JSON of where the steps of named routes are; undefined if unchanged. */
		readonly routes: string | undefined;
	};
	/** All listeners. `sites` are chunks, each a JSON array of ListedSite; undefined if unchanged. */
	readonly listeners: readonly {
		readonly key: string;
		readonly sites: readonly string[] | undefined;
		/** JSON of the listener's ListenerTls; undefined without TLS, or if unchanged. */
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
	/** Named upstream pools of the document. */
	readonly pools: readonly SharedPool[];
}

/** Start parameters of a worker thread. */
export interface WorkerStartData {
	/** The thread's row in shared memory, from 0. */
	readonly index: number;
	/** Number of rows. Some rows may belong to no thread, or to threads that are finishing their last connections. */
	readonly rows: number;
	/** Number of threads that serve requests. Limits of the process are divided among these threads. */
	readonly threads: number;
	/** Memory of the Int32 values that all threads share. */
	readonly control: SharedArrayBuffer;
	/** Float64 row of the thread's fixed counters. */
	readonly counters: SharedArrayBuffer;
	/** Memory of the thread's ThreadActivity. */
	readonly activity: SharedArrayBuffer;
	/** Memory of the thread's OwnedDescriptors. */
	readonly descriptors: SharedArrayBuffer;
	/** Whether several threads bind each address. */
	readonly sharePorts: boolean;
	/** Whether standard error is a terminal. If it is, logs to standard error that have no format are human-readable. */
	readonly terminal: boolean;
	/** Whether the process log accepts debug entries even if the settings do not. */
	readonly verbose: boolean;
	/** Folder and environment for placeholders. */
	readonly workingDirectory: string;
	readonly environment: { readonly [name: string]: string | undefined };
}

/** Messages from the main thread to a worker. */
export type MessageToWorker =
	| {
			readonly type: 'prepare';
			/** Unique number, repeated in replies. */
			readonly attempt: number;
			/** The number that shared memory contains while the generation is served. */
			readonly generation: number;
			readonly delta: GenerationDelta;
			/** All listeners, with their final ports. Listeners that are already bound are unchanged. */
			readonly listeners: readonly ListenerAddress[];
	  }
	/** The prepared generation is active: its listeners start accepting, and the previous one is released. */
	| { readonly type: 'activate' }
	| { readonly type: 'tls'; readonly update: TlsUpdate }
	| { readonly type: 'discard' }
	/** Memory requested with `memory_wanted`; undefined if the machine does not have enough. */
	| { readonly type: 'memory'; readonly key: string; readonly buffer: SharedArrayBuffer | undefined }
	/** Makes the thread answer a request on each listener without using its socket. The reply is `prepared` or `refused`. */
	| { readonly type: 'check'; readonly attempt: number }
	/**
	 * Makes the thread listen on the addresses on which it does not listen yet, because a predecessor still serves them. The reply
	 * is `prepared` or `refused`.
	 */
	| { readonly type: 'accept'; readonly attempt: number }
	/** Asks for the UDP sockets that a successor of this process needs. The reply is `bequeathed`. */
	| { readonly type: 'bequeath'; readonly attempt: number }
	/**
	 * Makes the thread stop accepting connections and finish the open ones. On the listeners with the keys `abandoned`, it accepts
	 * connections until `close_abandoned`, because no other process does.
	 */
	| { readonly type: 'drain'; readonly waits: RequestWaits; readonly abandoned: readonly string[] }
	| { readonly type: 'close_abandoned' }
	/** Makes the thread close idle connections of a listener, because another thread needs room for new ones. */
	| { readonly type: 'make_room'; readonly listener: string }
	/** The reply to `ask`. If the request has failed, `failure` says why. */
	| { readonly type: 'answer'; readonly id: number; readonly answer: unknown; readonly failure?: string }
	/** Asks for a `pong`, which a stuck thread does not send. */
	| { readonly type: 'ping'; readonly number: number }
	/** For tests: makes the thread throw outside any request, or stop responding. */
	| { readonly type: 'crash' | StallKind };

/** Messages from a worker to the main thread. */
export type MessageFromWorker = LifeCycleReport | ServiceRequest;

/** Reports of a worker about requested steps and about its own state. The pool of worker threads handles these messages. */
type LifeCycleReport =
	| { readonly type: 'prepared'; readonly attempt: number }
	/** The UDP sockets of each listener that speaks HTTP/3, by key. The main thread must close the `relay` descriptors. */
	| {
			readonly type: 'bequeathed';
			readonly attempt: number;
			readonly datagrams: readonly (readonly [key: string, datagrams: readonly BequeathedDatagrams[]])[];
	  }
	/** The thread listens on an address. */
	| { readonly type: 'listening'; readonly key: string; readonly sockets: readonly SocketDescriptors[] }
	| {
			readonly type: 'refused';
			readonly attempt: number;
			readonly code: string;
			readonly message: string;
			readonly pointer?: string | undefined;
	  }
	/** The reply to `ping`. */
	| { readonly type: 'pong'; readonly number: number }
	/** Every connection of a draining thread has ended. */
	| { readonly type: 'drained' };

/** What a worker asks of the main thread, or passes to it, while it serves. See `runtime/main/worker-services.ts`. */
export type ServiceRequest =
	| { readonly type: 'memory_wanted'; readonly key: string; readonly request: MemoryRequest }
	| { readonly type: 'memory_released'; readonly key: string }
	/** All addresses that a pool's dynamic source has found on this thread. */
	| { readonly type: 'upstreams_found'; readonly key: string; readonly addresses: readonly string[] }
	/** An event of a response cache that also stores responses on disk or in the cluster. */
	| { readonly type: 'cache'; readonly store: string; readonly event: DiskEvent }
	/** The end of a fetch for which the thread had a lease in the cluster. */
	| { readonly type: 'cluster_fetch_ended'; readonly result: FetchResult }
	| { readonly type: 'page'; readonly buffer: SharedArrayBuffer }
	| { readonly type: 'series'; readonly series: SeriesAnnouncement }
	/** A thread starts or stops using a log writer. The start precedes the `prepared` of the generation that needs the writer. */
	| {
			readonly type: 'sink_opened';
			readonly sink: string;
			readonly output: LogOutput;
	  }
	| { readonly type: 'sink_released'; readonly sink: string }
	/** Delivers formatted access log entries. `sink` is the key of their writer. */
	| { readonly type: 'access'; readonly sink: string; readonly text: string; readonly entries: number }
	/** Formatted access log entries at the start of a shared memory segment, which the main thread returns after writing them. */
	| {
			readonly type: 'access_segment';
			readonly sink: string;
			readonly lines: PostedLines;
			readonly entries: number;
	  }
	/** Reports how many entries the thread has dropped, so that they are logged. Sent at most once a second. */
	| { readonly type: 'access_dropped'; readonly sink: string; readonly entries: number }
	| { readonly type: 'log'; readonly entry: LogEntry }
	/** A thread starts creating spans. */
	| { readonly type: 'tracing_opened' }
	/** Delivers finished spans as comma-separated JSON objects. `spans` is their number. */
	| { readonly type: 'spans'; readonly text: string; readonly spans: number }
	/** A request to the main thread; an `answer` with the same id follows. */
	| { readonly type: 'ask'; readonly id: number; readonly question: MainThreadRequest }
	/** Acknowledges that challenge answers have been received; see {@link TlsUpdate}. */
	| { readonly type: 'challenges_taken'; readonly number: number }
	/** Asks the other threads to close idle connections of the listener with this key. */
	| { readonly type: 'room_wanted'; readonly listener: string };
