/** The compile thread, kept alive: one that dies or hangs is replaced and given the running document back. */
import type { CompilerStart } from '../compile/compiler-thread.ts';
import type { CompilerAnswers, CompilerRequest } from '../threads/messages.ts';
import { CompilerClient, type CompilerLimits } from './compiler-client.ts';

/** Milliseconds before a compile thread that died is replaced. */
const RESTART_DELAY = 200;
/** Ten thousand sites take a few seconds. */
const LIMITS: CompilerLimits = { long: 10_000, most: 60_000 };

/** Takes entries of the process log. */
type CompilerLog = (level: 'warn' | 'error', message: string, fields: { readonly [name: string]: unknown }) => void;

type Request<Op extends CompilerRequest['op']> = Omit<Extract<CompilerRequest, { op: Op }>, 'id' | 'op'>;

/** Asks the compile thread that there is. */
export class CompileService {
	/** Threads that were given up because they did not answer. */
	stalls = 0;
	readonly #start: Omit<CompilerStart, 'activity'>;
	readonly #log: CompilerLog;
	readonly #limits: CompilerLimits;
	/** UTF-8 JSON of the running document. */
	#running: ArrayBuffer | undefined;
	/** Names that have been served over TLS since the start. */
	readonly #served = new Set<string>();
	#client: CompilerClient;
	#timer: NodeJS.Timeout | undefined;
	/** Resolves when a thread that died has been replaced. */
	#replaced: Promise<void> | undefined;

	constructor(start: Omit<CompilerStart, 'activity'>, log: CompilerLog, limits: CompilerLimits = LIMITS) {
		this.#start = start;
		this.#log = log;
		this.#limits = limits;
		this.#client = this.#open();
	}

	/** Asks, a thread that is being started if need be; rejects with CompilerFailure. */
	async ask<Op extends CompilerRequest['op']>(op: Op, request: Request<Op>): Promise<CompilerAnswers[Op]> {
		await this.#replaced;
		return this.#client.ask(op, request);
	}

	/** JSON of the running document, secrets included; `{}` before the first. */
	get running(): string {
		return this.#running ? Buffer.from(this.#running).toString() : '{}';
	}

	/** Makes the candidate the running document, which serves these names over TLS. */
	async commit(names: readonly string[]): Promise<void> {
		this.#running = await this.ask('commit', {});
		for (const name of names) this.#served.add(name);
	}

	/** Ends the thread for good; resolves to false when it cannot be ended. */
	end(): Promise<boolean> {
		clearTimeout(this.#timer);
		return this.#client.end();
	}

	#open(): CompilerClient {
		return new CompilerClient(
			{ ...this.#start, running: this.#running, served: [...this.#served] },
			{ lost: (reason, stalled) => this.#lost(reason, stalled), busy: (...of) => this.#busy(...of) },
			this.#limits,
		);
	}

	#lost(cause: string, stalled: boolean): void {
		if (stalled) this.stalls++;
		const what = stalled ? 'did not answer' : 'died';
		this.#log('error', `the compile thread ${what} and is being replaced`, { cause });
		this.#replaced = new Promise(resolve => {
			this.#timer = setTimeout(() => {
				this.#client = this.#open();
				this.#replaced = undefined;
				resolve();
			}, RESTART_DELAY);
		});
	}

	#busy(request: string, milliseconds: number): void {
		const fields = { request, unanswered_ms: Math.round(milliseconds) };
		this.#log('warn', 'the compile thread has been busy for long', fields);
	}
}
