/** The running server as its command line and Admin API see it. */
import type { DiagnosticReport } from '../compiler/diagnostics/diagnostic.ts';
import type { ConfigInput } from '../compiler/dialects/dialect.ts';
import type { AdminSettings } from '../compiler/document/document.ts';

/** Why a change cannot be made in a running process. */
export interface RestartReason {
	/** `listener_added`, `listener_removed`, `setting_changed`, `tls_hostname_added`, `mutual_tls_with_resumption`. */
	readonly code: string;
	/** What it is about: `:8443`, `metrics`. */
	readonly subject: string;
	readonly message: string;
}

/** What became of a load. */
export type LoadOutcome =
	| {
			readonly result: 'applied';
			readonly generation: number;
			readonly unchanged: boolean;
			readonly diagnostics: readonly DiagnosticReport[];
	  }
	| { readonly result: 'refused'; readonly diagnostics: readonly DiagnosticReport[] }
	| {
			readonly result: 'restart_required';
			readonly reasons: readonly RestartReason[];
			readonly diagnostics: readonly DiagnosticReport[];
	  }
	/** The workers could not all take it (a thread died while building, the process is stopping): nothing applied. */
	| { readonly result: 'failed'; readonly message: string };

/** What adapting gave; `document` is JSON text, absent when there are errors. */
export interface AdaptOutcome {
	readonly document: string | undefined;
	readonly diagnostics: readonly DiagnosticReport[];
}

/** The running server. */
export interface RuntimeControl {
	/** Compiles and swaps. Loads are taken one after another. */
	load(input: ConfigInput): Promise<LoadOutcome>;
	/** Compiles without applying. */
	adapt(input: ConfigInput): Promise<AdaptOutcome>;
	/** Reads the running document, secrets redacted. `path` are decoded segments; a missing key gives `null`. `etag` is qualified by the path. */
	readConfig(path: readonly string[]): Promise<{ json: string; etag: string }>;
	/** Admin settings of the running document, the token included; undefined when there is no Admin API. */
	readonly admin: AdminSettings | undefined;
	/** True once every listener is bound, until a stop begins. */
	readonly ready: boolean;
	/** Number of the generation being served; 0 before the first. */
	readonly generation: number;
	/** Prometheus text exposition (0.0.4); empty when metrics are off. */
	metrics(): Promise<string>;
	/** Counts an Admin API request for `std_admin_http_requests_total`. */
	countAdminRequest(path: string, method: string, status: number): void;
	/** Begins a graceful stop: resolves when the last exchange has ended or the grace period is over. Safe to call twice. */
	stop(): Promise<void>;
	/** Ends at once. */
	kill(): void;
}
