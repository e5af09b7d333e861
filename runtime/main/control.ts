/** The interface of the running server for the command line and the Admin API. */
import type { DiagnosticReport } from '../../compiler/diagnostics/diagnostic.ts';
import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import type { AdminSettings } from '../../compiler/document/document.ts';
import type { MetricsFormat } from '../../compiler/exchange/metrics-format.ts';
import type { ModuleEvent } from '../../compiler/exchange/module-events.ts';
import type { CacheEvent } from '../../compiler/exchange/response-cache.ts';
import type { PurgeSelection } from '../cache/purging.ts';
import type { Cluster } from '../cluster/cluster.ts';
import type {
	ConfigEdit,
	ConfigReading,
	EditRefused,
	IrreversibleLoad,
	LoadPreview,
	LoadTerms,
	RestartReason,
} from '../compile/load-results.ts';
import type { ScrapeResult } from '../metrics/scrape-memory.ts';
import type { UpstreamReport } from '../upstreams/pool-registry.ts';
import type { CacheReport } from './cache-registry.ts';

export type LoadOutcome =
	| {
			readonly result: 'applied';
			readonly generation: number;
			readonly unchanged: boolean;
			readonly diagnostics: readonly DiagnosticReport[];
			/** JSON of the replaced document, secrets included. Set only if the load can be reverted. */
			readonly replacedDocument?: string;
	  }
	| { readonly result: 'refused'; readonly diagnostics: readonly DiagnosticReport[] }
	| IrreversibleLoad
	| {
			readonly result: 'restart_required';
			readonly reasons: readonly RestartReason[];
			readonly diagnostics: readonly DiagnosticReport[];
	  }
	/** Nothing was applied, because a worker thread died while it built the configuration, or because the process is stopping. */
	| { readonly result: 'failed'; readonly message: string };

/** The result of `adapt`; `document` is JSON text, undefined if there are errors. */
export interface AdaptOutcome {
	readonly document: string | undefined;
	readonly diagnostics: readonly DiagnosticReport[];
}

/**
 * The result of a purge: the number of responses removed on this machine and, in a cluster, the IDs of the other members that
 * have confirmed the purge and of those that have not.
 */
export interface PurgeResult {
	readonly purged: number;
	readonly machines?: { readonly confirmed: readonly string[]; readonly unconfirmed: readonly string[] } | undefined;
}

export interface RuntimeControl {
	/** Compiles and applies a configuration. Loads are serialized. */
	load(input: ConfigInput, terms?: LoadTerms): Promise<LoadOutcome>;
	/** Changes a part of the running document, compiles and applies it; serialized with loads. */
	edit(edit: ConfigEdit): Promise<LoadOutcome | EditRefused>;
	/** Returns what {@link load} would do with the same arguments, without applying anything. */
	preview(input: ConfigInput, terms?: LoadTerms): Promise<LoadPreview>;
	/** Compiles a configuration to a document, without applying it. */
	adapt(input: ConfigInput): Promise<AdaptOutcome>;
	/**
	 * Reads a part of the running document, with secrets redacted. `path` contains decoded segments. It starts at the object whose
	 * `@id` is `id` or, if no `id` is given, at the root. The value of a missing key is `null`. `etag` identifies the value at this
	 * path.
	 */
	readConfig(path: readonly string[], id?: string): Promise<ConfigReading>;
	/** JSON of the running document, including secrets. It may be stored on this machine, but must never be sent to a client. */
	readonly document: string;
	/** Number of responses since the start, and how many of them had a status of 500 or more. */
	readonly traffic: { readonly requests: number; readonly serverErrors: number };
	/** Admin settings of the running document, token included; undefined if there is no Admin API. */
	readonly admin: AdminSettings | undefined;
	/** True once every listener is bound, until a stop begins; false while a thread does not respond. */
	readonly ready: boolean;
	/** Why the server is not ready, as a sentence; undefined if it is ready. */
	readonly unreadyReason?: string | undefined;
	/** Number of the generation being served; 0 before the first. */
	readonly generation: number;
	/** Returns every upstream that the running configuration names, used or not, and those that its dynamic sources have found. */
	upstreams(): readonly UpstreamReport[];
	/** Returns the contents of response caches and their counters since the start. */
	caches(): { readonly stores: readonly CacheReport[]; readonly events: { readonly [event in CacheEvent]: number } };
	/** Returns how often an event that a module counts has happened since the start, summed over all threads. */
	moduleEvents(event: ModuleEvent): number;
	/**
	 * Removes stored responses, in a cluster on all machines. Resolves once no thread serves them any longer, and all other machines
	 * have confirmed the purge or the time limit for that has expired. Rejects with PurgeNotRecorded and PurgeNotShared.
	 */
	purge(selection: PurgeSelection): Promise<PurgeResult>;
	/** The cluster; undefined if the process belongs to none. */
	readonly cluster?: Cluster | undefined;
	/** Returns all metrics in a format, as UTF-8; empty if metrics are off. The caller must release the memory. */
	renderMetrics(format: MetricsFormat): Promise<ScrapeResult>;
	/** Counts a rollback and its result. */
	countRollback(succeeded: boolean): void;
	/** Counts an Admin API request for `std_admin_http_requests_total`. */
	countAdminRequest(path: string, method: string, status: number): void;
	/** Starts a graceful stop. Resolves when the last exchange has ended or the grace period has expired. Idempotent. */
	stop(): Promise<void>;
	/** Ends the server immediately, without waiting for exchanges. */
	kill(): void;
}
