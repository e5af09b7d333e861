/** The predecessor's side of a handover: starts the successor, and watches over it until it serves. */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import {
	FIRST_INHERITED,
	type FromSuccessor,
	HANDOVER_PROTOCOL,
	type Inheritance,
	type Offer,
	SUCCESSOR_VARIABLE,
	type SuccessorFailure,
	type ToSuccessor,
} from './handover-protocol.ts';

/** Maximum milliseconds from `go` to `done`. */
const ACCEPT_LIMIT = 30_000;

/** The program that is started as the successor. */
export interface SuccessorProgram {
	readonly file: string;
	readonly args: readonly string[];
}

/** The outcome of a handover. */
export type HandoverResult =
	| ({ readonly result: 'done'; readonly pid: number } & Omit<Extract<FromSuccessor, { type: 'done' }>, 'type'>)
	| ({ readonly result: 'failed' } & Omit<SuccessorFailure, 'type'>);

/** The descriptors that a successor inherits, and their numbers in the successor. */
export class InheritedDescriptors {
	readonly #own: number[] = [];

	/** Returns the number of a descriptor in the successor. */
	add(descriptor: number): number {
		const known = this.#own.indexOf(descriptor);
		return FIRST_INHERITED + (known === -1 ? this.#own.push(descriptor) - 1 : known);
	}

	/** Returns an inheritance in which descriptors have their numbers in the successor. */
	of({ sockets, ...rest }: Inheritance): Inheritance {
		const moved = <T extends { readonly descriptor: number }>(one: T): T => ({
			...one,
			descriptor: this.add(one.descriptor),
		});
		const listeners = sockets.listeners.map(listener => ({
			...listener,
			descriptors: listener.descriptors.map(descriptor => this.add(descriptor)),
			datagrams: listener.datagrams?.map(({ descriptor, relay }) => ({
				descriptor: this.add(descriptor),
				relay: this.add(relay),
			})),
		}));
		return { ...rest, sockets: { listeners, held: sockets.held.map(moved), passed: sockets.passed.map(moved) } };
	}

	/** The number in the successor of the next descriptor that is added. */
	get next(): number {
		return FIRST_INHERITED + this.#own.length;
	}

	/** The descriptors, in the order of their numbers in the successor. */
	get own(): readonly number[] {
		return this.#own;
	}
}

/** A successor from its start until it serves or has failed. */
export class SuccessorProcess {
	readonly #child: ChildProcess;
	/** A pipe whose other end the successor and its own successors hold, if one was requested. */
	readonly pipe: Readable | undefined;
	readonly #offer: Offer;
	readonly #limit: number;
	readonly #onGo: () => void;
	readonly #ended: Promise<string>;
	#next: ((message: FromSuccessor) => void) | undefined;
	#going = false;
	#aborted: string | undefined;

	/**
	 * Starts the program. Throws the system's error.
	 * @param withPipe Adds {@link pipe}. Its number in the successor follows that of the last descriptor.
	 * @param limit Milliseconds until it must be ready.
	 * @param onGo Called before it is told to accept connections.
	 */
	constructor(
		program: SuccessorProgram,
		offer: Offer,
		descriptors: readonly number[],
		withPipe: boolean,
		limit: number,
		onGo: () => void,
	) {
		this.#offer = offer;
		this.#limit = limit;
		this.#onGo = onGo;
		this.#child = spawn(program.file, program.args, {
			// It gets its own session, so that signals from the terminal reach it only once, through the first process.
			detached: true,
			stdio: ['inherit', 'inherit', 'inherit', 'ipc', ...descriptors, ...(withPipe ? (['pipe'] as const) : [])],
			env: { ...process.env, [SUCCESSOR_VARIABLE]: String(HANDOVER_PROTOCOL) },
		});
		this.pipe = withPipe ? (this.#child.stdio.at(-1) as Readable) : undefined;
		this.#ended = new Promise(resolve => {
			this.#child.once('error', (error: NodeJS.ErrnoException) => {
				resolve(`The program ${program.file} cannot be started: ${error.code ?? error.message}.`);
			});
			this.#child.once('exit', (status, signal) => {
				resolve(`The new process ended with ${signal ?? `status ${status}`} before it served.`);
			});
		});
		this.#child.on('message', message => this.#next?.(message as FromSuccessor));
	}

	/** The process ID; undefined if it could not be started. */
	get pid(): number | undefined {
		return this.#child.pid;
	}

	/** Sends the offer and carries out the handover. Never rejects. If the handover fails, the process has been ended. */
	async run(): Promise<HandoverResult> {
		const ready = this.#answer(this.#limit, 'did not become ready in time');
		this.#send(this.#offer);
		const first = await ready;
		if (first.type === 'failed') return this.#fail(first);
		if (first.type !== 'ready') return this.#fail({ type: 'failed', message: 'The new process broke the protocol.' });
		if (this.#aborted !== undefined) return this.#fail({ type: 'failed', message: this.#aborted });
		this.#going = true;
		this.#onGo();
		const done = this.#answer(ACCEPT_LIMIT, 'did not accept connections in time');
		this.#send({ type: 'go' });
		const second = await done;
		if (second.type === 'failed') return this.#fail(second);
		if (second.type !== 'done') return this.#fail({ type: 'failed', message: 'The new process broke the protocol.' });
		const { generation, warnings } = second;
		this.#child.removeAllListeners('message');
		this.#child.disconnect();
		this.#child.unref();
		return { result: 'done', pid: this.#child.pid!, generation, warnings };
	}

	/** Aborts the handover. Returns false if the successor has already been told to accept connections, so that the caller must wait for the outcome. */
	abort(reason: string): boolean {
		if (this.#going) return false;
		this.#aborted = reason;
		this.#child.kill('SIGKILL');
		return true;
	}

	async #fail({ message, diagnostics }: SuccessorFailure): Promise<HandoverResult> {
		this.#child.kill('SIGKILL');
		await this.#ended;
		return { result: 'failed', message: this.#aborted ?? message, ...(diagnostics && { diagnostics }) };
	}

	/** Resolves to the next message, or to the reason why there is none. */
	#answer(limit: number, late: string): Promise<FromSuccessor> {
		const { promise, resolve } = Promise.withResolvers<FromSuccessor>();
		const fail = (message: string): void => resolve({ type: 'failed', message });
		const timer = setTimeout(
			() => fail(`The new process ${late} (${limit < 1000 ? `${limit} ms` : `${Math.round(limit / 1000)} s`}).`),
			limit,
		);
		this.#next = resolve;
		// When the process has ended, its last message may still be in transit.
		void this.#ended.then(reason => setTimeout(fail, 100, reason));
		return promise.finally(() => clearTimeout(timer));
	}

	#send(message: ToSuccessor): void {
		if (this.#child.connected) this.#child.send(message, () => {});
	}
}
