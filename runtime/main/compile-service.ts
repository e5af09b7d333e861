/** Keeps the compile thread alive. A thread that dies or hangs is replaced, and its replacement receives the running document. */

import type { CompilerReplies, CompilerRequest } from '../compile/compiler-messages.ts';
import type { CompilerStart } from '../compile/compiler-thread.ts';
import { ThreadVitals } from '../metrics/thread-vitals.ts';
import { CompilerClient, type CompilerLimits } from './compiler-client.ts';

/** Milliseconds until a dead compile thread is replaced. */
const RESTART_DELAY_MS = 200;
/** Time limits on one request. For comparison: compiling ten thousand sites takes a few seconds. */
const DEFAULT_LIMITS: CompilerLimits = { reportAfterMs: 10_000, abandonAfterMs: 60_000 };

/** Writes an entry to the process log. */
type CompilerLog = (level: 'warn' | 'error', message: string, fields: { readonly [name: string]: unknown }) => void;

type Request<Op extends CompilerRequest['op']> = Omit<Extract<CompilerRequest, { op: Op }>, 'id' | 'op'>;

/** Sends requests to the current compile thread. */
export class CompileService {
	/** Number of threads abandoned because they did not respond. */
	stallCount = 0;
	/** The vitals of the current compile thread. */
	readonly vitals: ThreadVitals;
	readonly #startData: Omit<CompilerStart, 'activity'>;
	readonly #log: CompilerLog;
	readonly #compilerLimits: CompilerLimits;
	/** UTF-8 JSON of the running document. */
	#runningDocument: ArrayBuffer | undefined;
	/** Host names that the process has served over TLS since its start. */
	readonly #servedNames = new Set<string>();
	#client: CompilerClient;
	#restartTimer: NodeJS.Timeout | undefined;
	/** Resolves when the current replacement of a dead thread is complete. */
	#replacement: Promise<void> | undefined;

	constructor(
		start: Omit<CompilerStart, 'activity' | 'vitals'>,
		log: CompilerLog,
		limits: CompilerLimits = DEFAULT_LIMITS,
	) {
		const vitalsMemory = new SharedArrayBuffer(ThreadVitals.BYTES);
		this.vitals = new ThreadVitals(vitalsMemory);
		this.#startData = { ...start, vitals: vitalsMemory };
		this.#log = log;
		this.#compilerLimits = limits;
		this.#client = this.#startClient();
	}

	/** Sends a request. If a thread is being started, waits for it. Rejects with CompilerFailure. */
	async ask<Op extends CompilerRequest['op']>(op: Op, request: Request<Op>): Promise<CompilerReplies[Op]> {
		await this.#replacement;
		return this.#client.ask(op, request);
	}

	/** JSON of the running document, secrets included; `{}` before the first document runs. */
	get runningDocument(): string {
		return this.#runningDocument ? Buffer.from(this.#runningDocument).toString() : '{}';
	}

	/** Makes the candidate the running document. `names` are the host names that it serves over TLS. */
	async commitCandidate(names: readonly string[]): Promise<void> {
		this.#runningDocument = await this.ask('commit', {});
		for (const name of names) this.#servedNames.add(name);
	}

	/** Ends the thread permanently. Resolves to false if it cannot be ended. */
	end(): Promise<boolean> {
		clearTimeout(this.#restartTimer);
		return this.#client.end();
	}

	#startClient(): CompilerClient {
		return new CompilerClient(
			{ ...this.#startData, running: this.#runningDocument, served: [...this.#servedNames] },
			{
				onLost: (reason, stalled) => this.#onLost(reason, stalled),
				onBusy: (...busyDetails) => this.#onBusy(...busyDetails),
			},
			this.#compilerLimits,
		);
	}

	#onLost(cause: string, hasStalled: boolean): void {
		if (hasStalled) this.stallCount++;
		const problem = hasStalled ? 'stopped responding' : 'died';
		this.#log('error', `the compile thread ${problem} and is being replaced`, { cause });
		this.#replacement = new Promise(resolve => {
			this.#restartTimer = setTimeout(() => {
				this.#client = this.#startClient();
				this.#replacement = undefined;
				resolve();
			}, RESTART_DELAY_MS);
		});
	}

	#onBusy(request: string, milliseconds: number): void {
		const fields = { request, unanswered_ms: Math.round(milliseconds) };
		this.#log('warn', 'the compile thread has been busy for a long time', fields);
	}
}
