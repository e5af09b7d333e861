/**
 * Handover: a process replaces itself with a successor without losing a connection.
 *
 *     predecessor                                    successor
 *     starts it, with its listening sockets
 *     offer ───────────────────────────────────────▶ compiles, binds new addresses, builds all threads,
 *           ◀─────────────── step, at each of these   makes every listener of every thread answer a request
 *           ◀─────────────────────────────── ready   (or failed)
 *     stops rolling log files
 *     go    ───────────────────────────────────────▶ accepts connections on the inherited sockets
 *           ◀──────────────────────────────── done   (or failed)
 *     stops accepting, drains, exits
 *           ◀─────────────────────────────── left     when it has handed over in turn
 *           ◀─────────────────────────────── lost     when the process that it handed over to has failed
 *
 * If the new configuration must be confirmed, the predecessor keeps its sockets open after `done`, without accepting from them:
 *
 *           ◀────────────────────────── confirmed     closes them, drains, exits
 *           ◀────────────────────────── reverting     the successor hands over to a third process, which runs the predecessor's
 *                                                     program and configuration, and reports `left`
 *
 * If the successor dies before it sends `confirmed` or `reverting`, or sends neither by the deadline, the predecessor itself starts
 * the third process.
 *
 * From `go` until one of them has ended its requests, both processes send `running`: how many requests they run, for
 * `limit_concurrent`.
 *
 * Until `done`, the predecessor serves as if nothing happened. A successor that fails, dies, breaks the protocol or exceeds a limit
 * of {@link STEPS} is killed, with every process that it has started. Both sides enforce limits, because either may hang.
 * Between `go` and `done` both processes accept connections on the same sockets, so no connection waits in a queue that nobody
 * reads. After `done`, the predecessor also serves the connections that have reached a socket that the successor does not use; see
 * runtime/listeners/abandoned-sockets.ts. The channel is a Unix socket with one JSON message per line. If it is closed before `go`, the predecessor has died, and the
 * successor accepts connections as if it had received `go`, because no other process serves.
 */
import type { DiagnosticReport } from '../../../compiler/diagnostics/diagnostic.ts';
import type { ConfigInput } from '../../../compiler/dialects/dialect.ts';
import type { RunningMessage } from '../../concurrency-limits/running-exchange.ts';
import type { BequeathedSockets } from '../../sockets/bequeathed-sockets.ts';
import type { HandedState } from './handed-state.ts';

/** The version of the messages. A successor that speaks another version refuses the offer. */
export const HANDOVER_PROTOCOL = 3;

/**
 * The version of the messages if the new configuration must be confirmed. Older releases know only version 3, and refuse the
 * offer.
 */
export const CONFIRMED_HANDOVER_PROTOCOL = 4;

/** Default number of milliseconds within which a successor must be ready. */
export const READY_LIMIT_MS = 120_000;

/**
 * The steps of a successor, in order. `limit` is the maximum number of milliseconds, see {@link stepLimitMs}, and `doing` says
 * what the successor is doing.
 */
export const STEPS = {
	start: { limit: 30_000, doing: 'starting' },
	compile: { limit: 60_000, doing: 'compiling the configuration' },
	bind: { limit: 30_000, doing: 'binding its addresses' },
	threads: { limit: 60_000, doing: 'preparing its threads' },
	check: { limit: 30_000, doing: 'testing its listeners' },
	ready: { limit: 60_000, doing: 'waiting to be told to accept connections' },
	switch: { limit: 30_000, doing: 'beginning to accept connections' },
} as const;

export type HandoverStep = keyof typeof STEPS;

/** Maximum milliseconds that a successor waits for the offer. */
export const OFFER_LIMIT_MS = 10_000;

/**
 * Returns the time limit of a step in milliseconds, for a successor that must be ready within `readyLimitMs`. No step may take
 * longer than `readyLimitMs`. If `readyLimitMs` exceeds {@link READY_LIMIT_MS}, the limits of the steps before `switch` grow by
 * the same factor.
 */
export function stepLimitMs(step: HandoverStep, readyLimitMs: number): number {
	const factor = step === 'switch' ? 1 : Math.max(1, readyLimitMs / READY_LIMIT_MS);
	return Math.min(readyLimitMs, STEPS[step].limit * factor);
}

/** Returns a duration as text, such as `10 s`. */
export function formatDuration(milliseconds: number): string {
	return milliseconds < 1000 ? `${milliseconds} ms` : `${Math.round(milliseconds / 1000)} s`;
}

/** The environment variable that makes a process a successor. Its value is the version of the messages. */
export const SUCCESSOR_VARIABLE = 'SVC_HANDOVER';

/** Number of the channel's descriptor in the successor: the first one after the standard streams. */
export const CHANNEL_DESCRIPTOR = 3;

/**
 * The number of the first inherited descriptor in the successor. The standard streams and the channel have the numbers before it.
 */
export const FIRST_INHERITED_DESCRIPTOR = 4;

/** Everything that a runtime leaves to its successor. Descriptors are numbered as in the successor. */
export interface Inheritance {
	readonly sockets: BequeathedSockets;
	/** Session ticket keys in Base64. The first one encrypts. */
	readonly ticketKeys: readonly string[];
	/** The secret with which rate limits hash their keys; see `LimitTables.secret`. */
	readonly limitSecret?: string | undefined;
}

/**
 * The first message, which contains everything that the successor needs. `Process` is the type of what the command line and the
 * Admin API add.
 */
export interface Offer<Process = unknown> {
	readonly type: 'offer';
	readonly protocol: number;
	/** The configuration; undefined to serve without one. */
	readonly input?: ConfigInput | undefined;
	readonly inheritance: Inheritance;
	/** Milliseconds until the successor must be ready. */
	readonly readyLimit?: number | undefined;
	/**
	 * The descriptor that the successor must use as its standard error from now on. Until then, it writes to a pipe, so that the
	 * predecessor can report the cause if the program does not even start. Undefined if there is no pipe.
	 */
	readonly standardError?: number | undefined;
	readonly process: Process;
}

export type MessageToSuccessor =
	| Offer
	| { readonly type: 'go'; readonly state?: HandedState | undefined }
	| RunningMessage;

/** Reports why a successor failed. */
export interface SuccessorFailure {
	readonly type: 'failed';
	/** The reason of the failure, as one sentence. */
	readonly message: string;
	/** Diagnostics of the configuration, if it was refused. */
	readonly diagnostics?: readonly DiagnosticReport[] | undefined;
	/** True if something on the machine prevented the start, such as a port in use. */
	readonly isCauseOnMachine?: boolean | undefined;
}

/** What a successor reports after `done`. */
export type LaterReport =
	/** The successor has handed over to another process, which serves now. */
	| 'left'
	/** The process to which the successor handed over has failed. */
	| 'lost'
	/** The configuration has been confirmed, or replaced on purpose. */
	| 'confirmed'
	/** The configuration is being rolled back. */
	| 'reverting';

/** What the predecessor needs to know about a successor whose configuration must be confirmed. */
export interface UnconfirmedTerms {
	/** Deadline, in milliseconds since 1970. */
	readonly until: number;
	/**
	 * What the successor serves: the keys of its listeners, the keys of listeners with HTTP/3 again with the prefix `udp `, and
	 * `admin` if it has the inherited Admin API. A listener whose sockets were inherited has the predecessor's key.
	 */
	readonly used: readonly string[];
}

export type MessageFromSuccessor =
	| { readonly type: 'step'; readonly step: HandoverStep }
	| { readonly type: 'ready' }
	| {
			readonly type: 'done';
			readonly generation: number;
			readonly warnings: readonly DiagnosticReport[];
			/**
			 * The keys of the listeners whose sockets the successor does not use. The predecessor must serve the connections that wait
			 * there. Older releases do not send it.
			 */
			readonly abandoned?: readonly string[] | undefined;
			readonly unconfirmed?: UnconfirmedTerms | undefined;
	  }
	| { readonly type: LaterReport }
	| RunningMessage
	| SuccessorFailure;
