/** The running server as its command line and Admin API see it. */
import type { DiagnosticReport } from '../../compiler/diagnostics/diagnostic.ts';
import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import type { Change } from '../../compiler/document/difference.ts';
import type { AdminSettings } from '../../compiler/document/document.ts';
import type { EditMethod } from '../../compiler/document/edit-document.ts';
import type { MetricsFormat } from '../../compiler/exchange/metrics-format.ts';
import type { CacheEvent } from '../../compiler/exchange/response-cache.ts';
import type { CacheReport } from '../cache/cache-registry.ts';
import type { PurgeSelection } from '../cache/purging.ts';
import type { Scrape } from '../metrics/scrape-memory.ts';
import type { UpstreamReport } from '../upstreams/pool-registry.ts';

/** Why a change cannot be made in a running process. */
export interface RestartReason {
	/** `listener_added`, `listener_removed`, `setting_changed`, `tls_hostname_added`, `mutual_tls_with_resumption`. */
	readonly code: string;
	/** What it is about: `:8443`, `metrics`. */
	readonly subject: string;
	readonly message: string;
}

/** How a load is made. */
export interface LoadTerms {
	/** Loads even a configuration that is being served already, and builds and reads everything again. */
	readonly force?: boolean;
	/** Refuses a load that could not be taken back by loading what is being served now. */
	readonly reversible?: boolean;
}

/** A load that asked to be reversible is not: the way back would need a restart, or what is served now no longer compiles. */
export interface Irreversible {
	readonly result: 'irreversible';
	/** Why the way back would need a restart. */
	readonly reasons: readonly RestartReason[];
	/** What is wrong with the configuration that is being served, should it be loaded again. */
	readonly diagnostics: readonly DiagnosticReport[];
}

/** What became of a load. */
export type LoadOutcome =
	| {
			readonly result: 'applied';
			readonly generation: number;
			readonly unchanged: boolean;
			readonly diagnostics: readonly DiagnosticReport[];
			/** Of a load that was to be reversible: JSON of the document that it replaced, secrets included. */
			readonly replaced?: string;
	  }
	| { readonly result: 'refused'; readonly diagnostics: readonly DiagnosticReport[] }
	| Irreversible
	| {
			readonly result: 'restart_required';
			readonly reasons: readonly RestartReason[];
			readonly diagnostics: readonly DiagnosticReport[];
	  }
	/** The workers could not all take it (a thread died while building, the process is stopping): nothing applied. */
	| { readonly result: 'failed'; readonly message: string };

/** A change of the running document that the Admin API asks for. */
export interface ConfigEdit {
	readonly method: EditMethod;
	/** The object whose `@id` this is, instead of the document, is where the path begins. */
	readonly id?: string | undefined;
	/** Member names and array indices. */
	readonly path: readonly string[];
	/** JSON of the value; '' for DELETE. */
	readonly text: string;
	/** Field `If-Match`, as it came. */
	readonly ifMatch?: string | undefined;
}

/** A change that does not fit the running document: nothing was compiled. */
export interface EditRefused {
	readonly result: 'edit_refused';
	/** `changed`: If-Match does not hold any more. The others are those of `editDocument`. */
	readonly reason: 'missing' | 'exists' | 'value' | 'changed';
	readonly message: string;
	/** JSON pointer of the nearest object or array above the path that exists; '' is the document. */
	readonly nearest: string;
}

/** What a load would do. */
export type LoadPreview =
	| {
			readonly result: 'swap' | 'unchanged';
			readonly diagnostics: readonly DiagnosticReport[];
			/** What would change, secrets hidden. */
			readonly changes: readonly Change[];
	  }
	| { readonly result: 'refused'; readonly diagnostics: readonly DiagnosticReport[] }
	| Irreversible
	| {
			readonly result: 'restart_required';
			readonly reasons: readonly RestartReason[];
			readonly diagnostics: readonly DiagnosticReport[];
			readonly changes: readonly Change[];
	  };

/** What adapting gave; `document` is JSON text, absent when there are errors. */
export interface AdaptOutcome {
	readonly document: string | undefined;
	readonly diagnostics: readonly DiagnosticReport[];
}

/** A value of the running document. */
export interface ConfigReading {
	/** A long one is UTF-8 with a line end, in memory that all who read it share. */
	readonly json: string | SharedArrayBuffer;
	readonly etag: string;
}

/** The running server. */
export interface RuntimeControl {
	/** Compiles and swaps. Loads are taken one after another. */
	load(input: ConfigInput, terms?: LoadTerms): Promise<LoadOutcome>;
	/** Changes the running document at one place, compiles and swaps; taken in turn with loads. */
	edit(edit: ConfigEdit): Promise<LoadOutcome | EditRefused>;
	/** What {@link load} would do, without doing it. */
	preview(input: ConfigInput, terms?: LoadTerms): Promise<LoadPreview>;
	/** Compiles without applying. */
	adapt(input: ConfigInput): Promise<AdaptOutcome>;
	/** Reads the running document, secrets redacted. `path` are decoded segments; a missing key gives `null`. The path begins at the object with an `@id` if one is given. `etag` is qualified by the path. */
	readConfig(path: readonly string[], id?: string): Promise<ConfigReading>;
	/** JSON of the running document, secrets included: for what is kept on this machine, never for an answer. */
	readonly document: string;
	/** Requests answered since the start, and those of them with a status of 500 or more. */
	readonly traffic: { readonly requests: number; readonly serverErrors: number };
	/** Admin settings of the running document, the token included; undefined when there is no Admin API. */
	readonly admin: AdminSettings | undefined;
	/** True once every listener is bound, until a stop begins; false while a thread does not answer. */
	readonly ready: boolean;
	/** Why it is not ready, as a sentence. */
	readonly unready?: string | undefined;
	/** Number of the generation being served; 0 before the first. */
	readonly generation: number;
	/** Every upstream that the running configuration names, in use or not, and every one that its dynamic sources have found. */
	upstreams(): readonly UpstreamReport[];
	/** What response caches hold, and what they have done since the start. */
	caches(): { readonly stores: readonly CacheReport[]; readonly events: { readonly [event in CacheEvent]: number } };
	/** Removes stored responses; resolves to how many, once no thread serves them any more. */
	purge(selection: PurgeSelection): Promise<number>;
	/** All metrics in a format, as UTF-8; empty when they are off. The memory is the runtime's: it has to be released. */
	exposition(format: MetricsFormat): Promise<Scrape>;
	/** Counts a load that was to be taken back, and whether it was. */
	countRollback(succeeded: boolean): void;
	/** Counts an Admin API request for `std_admin_http_requests_total`. */
	countAdminRequest(path: string, method: string, status: number): void;
	/** Begins a graceful stop: resolves when the last exchange has ended or the grace period is over. Safe to call twice. */
	stop(): Promise<void>;
	/** Ends at once. */
	kill(): void;
}
