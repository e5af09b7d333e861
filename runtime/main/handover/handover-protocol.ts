/**
 * Handover: a process replaces itself by a successor without losing a connection.
 *
 *     predecessor                                    successor
 *     starts it, with its listening sockets
 *     offer ───────────────────────────────────────▶ compiles, binds new addresses, builds all threads,
 *                                                    makes every listener of every thread answer a request
 *           ◀─────────────────────────────── ready   (or failed)
 *     stops rolling log files
 *     go    ───────────────────────────────────────▶ accepts connections on the inherited sockets
 *           ◀──────────────────────────────── done   (or failed)
 *     stops accepting, drains, exits
 *
 * Until `done`, the predecessor serves as if nothing happened, and a successor that fails, dies or takes too long is killed.
 * Between `go` and `done` both accept connections on the very same sockets, so none waits in a queue that nobody reads. The
 * channel is Node's, with one JSON message a line. If it breaks before `go`, the predecessor has died, and the successor
 * accepts as if told to: somebody must serve.
 */
import type { DiagnosticReport } from '../../../compiler/diagnostics/diagnostic.ts';
import type { ConfigInput } from '../../../compiler/dialects/dialect.ts';
import type { BequeathedSockets } from '../../sockets/bequeathed-sockets.ts';

/** The version of the messages. A successor that speaks another one refuses the offer. */
export const HANDOVER_PROTOCOL = 1;

/** The environment variable that makes a process a successor. Its value is the version of the messages. */
export const SUCCESSOR_VARIABLE = 'SVC_HANDOVER';

/** The first descriptor of a successor that was inherited: after the standard streams and the channel. */
export const FIRST_INHERITED = 4;

/** Everything that a runtime leaves to its successor. Descriptors are numbered as in the successor. */
export interface Inheritance {
	readonly sockets: BequeathedSockets;
	/** Session ticket keys, newest first, in Base64. */
	readonly ticketKeys: readonly string[];
}

/** The first message, which contains everything that the successor needs. `Process` is added by the command line and the Admin API. */
export interface Offer<Process = unknown> {
	readonly type: 'offer';
	readonly protocol: number;
	/** The configuration; undefined to serve without one. */
	readonly input?: ConfigInput | undefined;
	readonly inheritance: Inheritance;
	readonly process: Process;
}

/** Messages to the successor. */
export type ToSuccessor = Offer | { readonly type: 'go' };

/** Reports why a successor failed. */
export interface SuccessorFailure {
	readonly type: 'failed';
	/** One sentence. */
	readonly message: string;
	/** Set if the configuration was refused. */
	readonly diagnostics?: readonly DiagnosticReport[] | undefined;
}

/** Messages from the successor. */
export type FromSuccessor =
	| { readonly type: 'ready' }
	| { readonly type: 'done'; readonly generation: number; readonly warnings: readonly DiagnosticReport[] }
	| SuccessorFailure;
