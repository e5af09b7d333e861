/** The compile thread, kept alive: one that dies is started again and given the running document back. */
import type { CompilerStart } from '../compiler-thread.ts';
import { CompilerClient } from './compiler-client.ts';
import type { CompilerAnswers, CompilerRequest } from './messages.ts';

/** Milliseconds before a compile thread that died is replaced. */
const RESTART_DELAY = 200;

type Request<Op extends CompilerRequest['op']> = Omit<Extract<CompilerRequest, { op: Op }>, 'id' | 'op'>;

/** Asks the compile thread that there is. */
export class CompileService {
	readonly #start: CompilerStart;
	readonly #died: (reason: string) => void;
	/** UTF-8 JSON of the running document. */
	#running: ArrayBuffer | undefined;
	/** Names that have been served over TLS since the start. */
	readonly #served = new Set<string>();
	#client: CompilerClient;
	#timer: NodeJS.Timeout | undefined;
	/** Resolves when a thread that died has been replaced. */
	#replaced: Promise<void> | undefined;

	/** `died` is told when a thread dies; its successor is on its way. */
	constructor(start: CompilerStart, died: (reason: string) => void) {
		this.#start = start;
		this.#died = died;
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

	/** Ends the thread for good. */
	async end(): Promise<void> {
		clearTimeout(this.#timer);
		await this.#client.end();
	}

	#open(): CompilerClient {
		return new CompilerClient({ ...this.#start, running: this.#running, served: [...this.#served] }, reason => {
			this.#died(reason);
			this.#replaced = new Promise(resolve => {
				this.#timer = setTimeout(() => {
					this.#client = this.#open();
					this.#replaced = undefined;
					resolve();
				}, RESTART_DELAY);
			});
		});
	}
}
