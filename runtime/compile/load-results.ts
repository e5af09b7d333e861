/** Results of requests to change the running configuration: what was requested, what it would change, and why it was refused. */
import type { DiagnosticReport } from '../../compiler/diagnostics/diagnostic.ts';
import type { DocumentChange } from '../../compiler/schema/difference.ts';
import type { EditMethod } from '../../compiler/schema/edit-document.ts';

/** Why a change requires a restart. */
export interface RestartReason {
	/** `listener_added`, `listener_removed`, `setting_changed`, `tls_hostname_added`, `mutual_tls_with_resumption`. */
	readonly code: string;
	/** The subject of the change, such as `:8443` or `metrics`. */
	readonly subject: string;
	readonly message: string;
}

export interface LoadTerms {
	/** True to load even an unchanged configuration, and to read and build everything again. */
	readonly force?: boolean;
	/** True to refuse a load that could not be rolled back by loading the running configuration again. */
	readonly reversible?: boolean;
	/** True if a preview also determines what the new configuration would change for requests. */
	readonly compares?: boolean;
}

/**
 * The result of a load that had to be reversible but is not: the rollback would need a restart, or the running configuration no
 * longer compiles.
 */
export interface IrreversibleLoad {
	readonly result: 'irreversible';
	/** Reasons why the rollback would need a restart. */
	readonly reasons: readonly RestartReason[];
	/** The errors that the running configuration would now have if it were loaded again. */
	readonly diagnostics: readonly DiagnosticReport[];
}

/** A change of the running document requested through the Admin API. */
export interface ConfigEdit {
	readonly method: EditMethod;
	/** If set, the path starts at the object with this `@id` instead of at the root of the document. */
	readonly id?: string | undefined;
	/** Member names and array indices. */
	readonly path: readonly string[];
	/** JSON of the value; '' for DELETE. */
	readonly text: string;
	/** The field `If-Match`, unparsed. */
	readonly ifMatch?: string | undefined;
}

/** A change that does not fit the running document. Nothing was compiled. */
export interface EditRefused {
	readonly result: 'edit_refused';
	/** `changed`: the condition of If-Match does not hold. The other values are reasons that `editDocument` returns. */
	readonly reason: 'missing' | 'exists' | 'value' | 'changed';
	readonly message: string;
	/** JSON pointer of the nearest existing object or array above the path; '' is the document. */
	readonly nearest: string;
}

/** What a load would change for requests, as plain data (see {@link diffAsJson}), or why that is unknown. */
export type MeaningDifference = { readonly same: boolean } | { readonly unavailable: string };

/** The effects that loading a configuration would have. */
export type LoadPreview =
	| {
			readonly result: 'swap' | 'unchanged';
			readonly diagnostics: readonly DiagnosticReport[];
			/** The changes that the load would make to the document, with secrets redacted. */
			readonly changes: readonly DocumentChange[];
			readonly diff?: MeaningDifference | undefined;
	  }
	| { readonly result: 'refused'; readonly diagnostics: readonly DiagnosticReport[] }
	| IrreversibleLoad
	| {
			readonly result: 'restart_required';
			readonly reasons: readonly RestartReason[];
			readonly diagnostics: readonly DiagnosticReport[];
			readonly changes: readonly DocumentChange[];
			readonly diff?: MeaningDifference | undefined;
	  };

/** A value of the running document. */
export interface ConfigReading {
	/** The value as JSON. If it is long, it is UTF-8 with a final newline, in shared memory. */
	readonly json: string | SharedArrayBuffer;
	readonly etag: string;
}
