/**
 * Answers requests about the configuration. The first configuration, unless it is long, is compiled on the calling thread,
 * because that takes less time than starting a compile thread. The compile thread is started for the first request after that. A
 * compile thread that dies or hangs is replaced, and its replacement receives the running document.
 */

import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import type { Compilation, RunningDocument } from '../compile/compilation.ts';
import type { CompilerReplies, CompilerRequest, PrepareResult } from '../compile/compiler-messages.ts';
import type { CompilerStart } from '../compile/compiler-thread.ts';
import { ThreadVitals } from '../metrics/thread-vitals.ts';
import { OptimizerSettings } from '../threads/optimizer-settings.ts';
import { CompilerClient, CompilerFailure, type CompilerLimits } from './compiler-client.ts';

/** Milliseconds until a dead compile thread is replaced. */
const RESTART_DELAY_MS = 200;
/** Time limits on one request. For comparison: compiling ten thousand sites takes a few seconds. */
const DEFAULT_LIMITS: CompilerLimits = { reportAfterMs: 10_000, abandonAfterMs: 60_000 };
/**
 * Maximum number of characters of a configuration that is compiled on the calling thread, which cannot do anything else
 * meanwhile, such as stop at a signal.
 */
const MAX_MAIN_THREAD_CHARACTERS = 32 * 1024;

/** Writes an entry to the process log. */
type CompilerLog = (level: 'warn' | 'error', message: string, fields: { readonly [name: string]: unknown }) => void;

type Request<Op extends CompilerRequest['op']> = Omit<Extract<CompilerRequest, { op: Op }>, 'id' | 'op'>;

/** Compiles the first configuration, and sends other requests to the current compile thread. */
export class CompileService {
	/** Number of threads abandoned because they did not respond. */
	stallCount = 0;
	/** Event-loop lag, garbage collection and heap of the current compile thread. */
	readonly vitals: ThreadVitals;
	readonly #startData: Omit<CompilerStart, 'activity'>;
	readonly #log: CompilerLog;
	readonly #optimizerSettings: OptimizerSettings;
	readonly #compilerLimits: CompilerLimits;
	/** UTF-8 JSON of the running document. */
	#runningDocument: ArrayBuffer | undefined;
	/** Host names that the process has served over TLS since its start. */
	readonly #servedNames = new Set<string>();
	/** The compilation of the first configuration, on this thread. Undefined once that configuration runs. */
	#firstCompilation: Compilation | undefined;
	/** Data about the first document that the compile thread receives when it starts; undefined once another document runs. */
	#firstDocument: RunningDocument | undefined;
	/** The compile thread; undefined until it is needed. */
	#client: CompilerClient | undefined;
	#isEnded = false;
	#restartTimer: NodeJS.Timeout | undefined;
	/** Resolves when the current replacement of a dead thread is complete. */
	#replacement: Promise<void> | undefined;

	constructor(
		start: Omit<CompilerStart, 'activity' | 'vitals'>,
		log: CompilerLog,
		optimizerSettings = new OptimizerSettings(),
		limits: CompilerLimits = DEFAULT_LIMITS,
	) {
		const vitalsMemory = new SharedArrayBuffer(ThreadVitals.BYTES);
		this.vitals = new ThreadVitals(vitalsMemory);
		this.#startData = { ...start, vitals: vitalsMemory };
		this.#log = log;
		this.#optimizerSettings = optimizerSettings;
		this.#compilerLimits = limits;
	}

	/** Compiles the first configuration as a candidate. Rejects with CompilerFailure. */
	async prepareFirst(input: ConfigInput): Promise<PrepareResult> {
		if (input.text.length <= MAX_MAIN_THREAD_CHARACTERS) {
			const { Compilation } = await import('../compile/compilation.ts');
			this.#firstCompilation = new Compilation(this.#startData);
		}
		return this.ask('prepare', { input, unconfigured: false });
	}

	/** Sends a request. If a thread is being replaced, waits for the new one. Rejects with CompilerFailure. */
	async ask<Op extends CompilerRequest['op']>(op: Op, request: Request<Op>): Promise<CompilerReplies[Op]> {
		if (this.#firstCompilation) return await answerOnMainThread(this.#firstCompilation, op, request);
		await this.#replacement;
		if (this.#isEnded) throw new CompilerFailure('The server is stopping.');
		if (this.#client !== undefined) return this.#client.ask(op, request);
		return this.#optimizerSettings.whileStarting(() => {
			this.#client = this.#startClient();
			return this.#client.ask(op, request);
		});
	}

	/** JSON of the running document, secrets included; `{}` before the first document runs. */
	get runningDocument(): string {
		return this.#runningDocument ? Buffer.from(this.#runningDocument).toString() : '{}';
	}

	/** Makes the candidate the running document. `names` are the host names that it serves over TLS. */
	async commitCandidate(names: readonly string[]): Promise<void> {
		this.#runningDocument = await this.ask('commit', {});
		this.#firstDocument = this.#firstCompilation?.running;
		this.#firstCompilation = undefined;
		for (const name of names) this.#servedNames.add(name);
	}

	/** Ends the thread permanently. Resolves to false if it cannot be ended. */
	async end(): Promise<boolean> {
		clearTimeout(this.#restartTimer);
		this.#isEnded = true;
		return this.#client === undefined || (await this.#client.end());
	}

	#startClient(): CompilerClient {
		return new CompilerClient(
			{
				...this.#startData,
				running: this.#firstDocument,
				runningJson: this.#runningDocument,
				served: [...this.#servedNames],
			},
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

/** Answers a request on this thread. Rejects with CompilerFailure. */
async function answerOnMainThread<Op extends CompilerRequest['op']>(
	compilation: Compilation,
	op: Op,
	request: Request<Op>,
): Promise<CompilerReplies[Op]> {
	try {
		return (await compilation.answer({ ...request, id: 0, op } as unknown as CompilerRequest)) as CompilerReplies[Op];
	} catch (error) {
		const { message, stack } = error instanceof Error ? error : new Error(String(error));
		throw new CompilerFailure(message, stack);
	}
}
