/** Messages between the main thread and the compile thread. */
import type { DiagnosticReport } from '../../compiler/diagnostics/diagnostic.ts';
import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import type { StallKind } from '../threads/stop-answering.ts';
import type { DocumentFacts, GenerationDelta } from '../worker/worker-messages.ts';
import type {
	ConfigEdit,
	ConfigReading,
	EditRefused,
	IrreversibleLoad,
	LoadPreview,
	RestartReason,
} from './load-results.ts';

/** Options for preparing a candidate. */
export interface PrepareOptions {
	/** True if the process was started without a configuration. */
	readonly unconfigured: boolean;
	/** True to apply the candidate even if nothing has changed, and to build everything again. */
	readonly force?: boolean | undefined;
	/** True to refuse the candidate if it could not be rolled back. */
	readonly reversible?: boolean | undefined;
	/** True if `preview` also determines what the candidate would change for requests. */
	readonly compares?: boolean | undefined;
}

/** A request of the main thread to the compile thread. Each request gets a reply with the same `id`. */
export type CompilerRequest =
	| { readonly id: number; readonly op: 'adapt'; readonly input: ConfigInput }
	/** Compiles a candidate. */
	| ({ readonly id: number; readonly op: 'prepare'; readonly input: ConfigInput } & PrepareOptions)
	/** Compiles the running document with a change as a candidate, like `prepare`. */
	| ({ readonly id: number; readonly op: 'edit'; readonly edit: ConfigEdit } & PrepareOptions)
	/** Returns what `prepare` would find, without keeping a candidate. */
	| ({ readonly id: number; readonly op: 'preview'; readonly input: ConfigInput } & PrepareOptions)
	/** `commit` makes the candidate the running document; `discard` discards it. */
	| { readonly id: number; readonly op: 'commit' }
	| { readonly id: number; readonly op: 'discard' }
	/** Returns the whole running document, as a delta from an empty one. */
	| { readonly id: number; readonly op: 'snapshot' }
	| {
			readonly id: number;
			readonly op: 'read';
			readonly path: readonly string[];
			readonly object?: string | undefined;
	  }
	/** For tests: makes the thread stop responding. */
	| { readonly id: number; readonly op: 'stall'; readonly how: StallKind };

/** The result of compiling a candidate. */
export type PrepareResult =
	| { readonly result: 'refused'; readonly diagnostics: readonly DiagnosticReport[] }
	| {
			readonly result: 'restart_required';
			readonly reasons: readonly RestartReason[];
			readonly diagnostics: readonly DiagnosticReport[];
	  }
	| IrreversibleLoad
	| { readonly result: 'unchanged'; readonly diagnostics: readonly DiagnosticReport[] }
	| {
			readonly result: 'swap';
			readonly diagnostics: readonly DiagnosticReport[];
			readonly facts: DocumentFacts;
			readonly delta: GenerationDelta;
	  };

/** Replies of the compile thread, by operation. */
export interface CompilerReplies {
	adapt: { readonly document: string | undefined; readonly diagnostics: readonly DiagnosticReport[] };
	prepare: PrepareResult;
	edit: PrepareResult | EditRefused;
	preview: {
		readonly preview: LoadPreview;
		/** Facts about the previewed document; undefined if a running process could not change to it. */
		readonly facts?: DocumentFacts | undefined;
	};
	/** UTF-8 JSON of the new running document. */
	commit: ArrayBuffer;
	discard: null;
	snapshot: { readonly facts: DocumentFacts; readonly delta: GenerationDelta };
	read: ConfigReading;
	stall: null;
}

/** A reply of the compile thread; `failure` is the message of a bug, never of a mistake in the input. */
export type CompilerReply = {
	readonly id: number;
	readonly answer?: unknown;
	readonly failure?: string;
	readonly stack?: string;
};
