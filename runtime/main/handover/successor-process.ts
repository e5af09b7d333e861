/** The predecessor's side of a handover: starts the successor, and watches over it until it serves. */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { type Duplex, PassThrough, type Readable } from 'node:stream';
import type { RunningChannel, RunningMessage } from '../../concurrency-limits/running-exchange.ts';
import { withTimeLimit } from '../../threads/within.ts';
import type { HandedState } from './handed-state.ts';
import { HandoverImpossible } from './handover-impossible.ts';
import {
	CHANNEL_DESCRIPTOR,
	CONFIRMED_HANDOVER_PROTOCOL,
	FIRST_INHERITED_DESCRIPTOR,
	formatDuration,
	type HandoverStep,
	type Inheritance,
	type LaterReport,
	type MessageFromSuccessor,
	type MessageToSuccessor,
	type Offer,
	STEPS,
	SUCCESSOR_VARIABLE,
	type SuccessorFailure,
	stepLimitMs,
} from './handover-protocol.ts';
import { LastLines } from './last-lines.ts';
import { MessageChannel } from './message-channel.ts';

/** Maximum milliseconds to wait for the end of a process that has been killed. */
const KILL_TIMEOUT_MS = 5000;
/**
 * Maximum milliseconds to wait for the last output of a process that has ended. Another process may share its standard error, so
 * the stream may never end.
 */
const LAST_OUTPUT_LIMIT_MS = 500;

/** Usual causes of signals that end a process. */
const SIGNAL_CAUSES: { readonly [signal: string]: string } = {
	SIGKILL: ' (as the system does when memory is short)',
	SIGABRT: ' (as when its memory limit is reached)',
	SIGTRAP: ' (as when its memory limit is reached)',
};

/** Explanations of why a program could not be started, by the system's error code. */
const START_ERRORS: { readonly [code: string]: string } = {
	ENOENT: 'it or its interpreter does not exist',
	EACCES: 'it may not be executed',
	ENOEXEC: 'it is not a program for this machine',
	EMFILE: 'this process has too many open files',
	ENFILE: 'the system has too many open files',
	EAGAIN: 'the system has too many processes',
	ENOMEM: 'the system has too little memory',
};

const LATER_REPORTS: readonly LaterReport[] = ['left', 'lost', 'confirmed', 'reverting'];

/** The failure that is reported if a successor sends an unexpected message. */
const PROTOCOL_FAILURE: SuccessorFailure = {
	type: 'failed',
	message: 'The new process violated the handover protocol.',
};

export interface SuccessorProgram {
	readonly file: string;
	readonly args: readonly string[];
}

export type HandoverResult =
	| ({ readonly result: 'done'; readonly pid: number } & Omit<Extract<MessageFromSuccessor, { type: 'done' }>, 'type'>)
	| ({
			readonly result: 'failed';
			/** What the program last wrote to standard error before it had the offer; see {@link LastLines}. */
			readonly output?: string | undefined;
	  } & Omit<SuccessorFailure, 'type'>);

/** The descriptors that a successor inherits, and their numbers in the successor. */
export class InheritedDescriptors {
	readonly #descriptors: number[] = [];

	/** Adds a descriptor, unless it has been added already, and returns its number in the successor. */
	add(descriptor: number): number {
		const index = this.#descriptors.indexOf(descriptor);
		return FIRST_INHERITED_DESCRIPTOR + (index === -1 ? this.#descriptors.push(descriptor) - 1 : index);
	}

	/** Returns the inheritance with each descriptor replaced by its number in the successor. */
	renumber({ sockets, ...otherParts }: Inheritance): Inheritance {
		const withNewNumber = <T extends { readonly descriptor: number }>(socket: T): T => ({
			...socket,
			descriptor: this.add(socket.descriptor),
		});
		const listeners = sockets.listeners.map(listener => ({
			...listener,
			descriptors: listener.descriptors.map(descriptor => this.add(descriptor)),
			datagrams: listener.datagrams?.map(({ descriptor, relay, older }) => ({
				descriptor: this.add(descriptor),
				relay: relay === undefined ? undefined : this.add(relay),
				older: older?.map(channel => this.add(channel)),
			})),
		}));
		return {
			...otherParts,
			sockets: { listeners, held: sockets.held.map(withNewNumber), passed: sockets.passed.map(withNewNumber) },
		};
	}

	/** The number that the next added descriptor will have in the successor. */
	get nextNumber(): number {
		return FIRST_INHERITED_DESCRIPTOR + this.#descriptors.length;
	}

	/** The descriptors, in the order of their numbers in the successor. */
	get all(): readonly number[] {
		return this.#descriptors;
	}
}

/** A successor from its start until it serves or has failed. */
export class SuccessorProcess implements RunningChannel {
	readonly #child: ChildProcess;
	readonly #channel: MessageChannel<MessageToSuccessor>;
	/** A pipe whose other end is held by the successor and all its successors in turn; undefined if none was requested. */
	readonly pipe: Readable | undefined;
	/** Resolves when the process has ended: to its exit status, or null if a signal ended it. */
	readonly whenExited: Promise<number | null>;
	/** Called with each message that the process sends after it has started to serve. */
	onReport: ((report: LaterReport) => void) | undefined;
	onRunning: RunningChannel['onRunning'];
	readonly #offer: Offer;
	readonly #readyLimitMs: number;
	readonly #onGo: () => HandedState;
	/**
	 * Standard error of the program until it has the offer; undefined if the program writes to the standard error of this process.
	 */
	readonly #standardError: { readonly lines: LastLines; readonly whenEnded: Promise<void> } | undefined;
	/** Resolves to the reason once the process has ended or could not be started. */
	readonly #endReason: Promise<string>;
	#hasEnded = false;
	#onAnswer: ((message: MessageFromSuccessor) => void) | undefined;
	#hasBrokenProtocol = false;
	#step: HandoverStep = 'start';
	#stepTimer: NodeJS.Timeout | undefined;
	#isSwitching = false;
	#hasHandedOver = false;
	#abortReason: string | undefined;

	/**
	 * Starts the program. Throws HandoverImpossible.
	 * @param withPipe Adds {@link pipe}. Its number in the successor follows that of the last descriptor.
	 * @param readyLimitMs Milliseconds until the program must be ready. No step may take longer; see {@link stepLimitMs}.
	 * @param onGo Called before the program is told to accept connections. Returns the state to send to the program.
	 * @param onError Called with what the program writes to standard error, if the offer has a descriptor for standard error.
	 */
	constructor(
		program: SuccessorProgram,
		offer: Offer,
		descriptors: readonly number[],
		withPipe: boolean,
		readyLimitMs: number,
		onGo: () => HandedState,
		onError: (text: string) => void = () => {},
	) {
		this.#offer = offer;
		this.#readyLimitMs = readyLimitMs;
		this.#onGo = onGo;
		this.#child = spawnSuccessor(program, descriptors, withPipe, offer);
		// If no descriptors were free, the child process was not started, and has no streams.
		const streams = (this.#child.stdio as ChildProcess['stdio'] | undefined) ?? [];
		this.pipe = withPipe ? ((streams.at(-1) as Readable | undefined) ?? new PassThrough().end()) : undefined;
		this.#endReason = new Promise(resolve => {
			this.#child.on('error', (error: NodeJS.ErrnoException) => {
				if (this.#child.pid !== undefined) return;
				this.#hasEnded = true;
				resolve(describeStartError(program, error));
			});
			this.#child.once('exit', (status, signal) => {
				this.#hasEnded = true;
				const description = signal === null ? `status ${status}` : `${signal}${SIGNAL_CAUSES[signal] ?? ''}`;
				resolve(`The new process ended with ${description} before it served.`);
			});
		});
		this.#standardError = followStandardError(this.#child.stderr ?? undefined, onError);
		this.whenExited = new Promise(resolve => this.#child.once('exit', resolve));
		this.#channel = new MessageChannel(
			(streams[CHANNEL_DESCRIPTOR] as Duplex | undefined) ?? new PassThrough().end(),
			message => this.#handleMessage(message as MessageFromSuccessor),
			reason => {
				this.onRunning?.('ended');
				// A process that has closed the channel usually ends next. Its end is a more informative reason, so it is awaited.
				if (reason === 'closed') return;
				this.#hasBrokenProtocol = true;
				this.#onAnswer?.(PROTOCOL_FAILURE);
			},
		);
	}

	/** The step that the process has reported last. */
	get step(): HandoverStep {
		return this.#step;
	}

	/** The process ID; undefined if the process could not be started. */
	get pid(): number | undefined {
		return this.#child.pid;
	}

	/** True once the process has handed over to another process, which serves now. */
	get hasHandedOver(): boolean {
		return this.#hasHandedOver;
	}

	/** Sends the offer and carries out the handover. Never rejects. If the handover fails, the process has been ended. */
	async run(): Promise<HandoverResult> {
		try {
			return await this.#runHandover();
		} catch (error) {
			return await this.#failHandover({
				type: 'failed',
				message: error instanceof Error ? error.message : String(error),
			});
		} finally {
			clearTimeout(this.#stepTimer);
		}
	}

	async #runHandover(): Promise<HandoverResult> {
		const pendingReady = this.#awaitAnswer(this.#readyLimitMs, 'become ready');
		this.#startStepTimer('start');
		void this.#channel.send({ ...this.#offer, readyLimit: this.#readyLimitMs });
		const readyAnswer = await pendingReady;
		if (readyAnswer.type === 'failed') return await this.#failHandover(readyAnswer);
		if (readyAnswer.type !== 'ready') return await this.#failHandover(PROTOCOL_FAILURE);
		if (this.#abortReason !== undefined)
			return await this.#failHandover({ type: 'failed', message: this.#abortReason });
		clearTimeout(this.#stepTimer);
		this.#isSwitching = true;
		this.#step = 'switch';
		const state = this.#onGo();
		const pendingDone = this.#awaitAnswer(stepLimitMs('switch', this.#readyLimitMs), 'accept connections');
		void this.#channel.send({ type: 'go', state });
		const doneAnswer = await pendingDone;
		if (doneAnswer.type === 'failed') return await this.#failHandover(doneAnswer);
		if (!isDone(doneAnswer)) return await this.#failHandover(PROTOCOL_FAILURE);
		const { generation, warnings, abandoned, unconfirmed } = doneAnswer;
		const mustConfirm = this.#offer.protocol === CONFIRMED_HANDOVER_PROTOCOL;
		if (mustConfirm && unconfirmed === undefined) return await this.#failHandover(PROTOCOL_FAILURE);
		// The process may have died after sending this message. In that case, its end is reported in the same turn of the event loop.
		await new Promise(resolve => setImmediate(resolve));
		if (this.#hasEnded) return await this.#failHandover({ type: 'failed', message: await this.#endReason });
		// The channel stays open for later messages of the process.
		this.#child.unref();
		return {
			...{ result: 'done', pid: this.#child.pid!, generation, warnings },
			abandoned: Array.isArray(abandoned) ? abandoned : [],
			...(mustConfirm && { unconfirmed }),
		};
	}

	sendRunning(message: RunningMessage): Promise<void> {
		return this.#channel.send(message);
	}

	/** Sends a signal to the process, unless it has ended. */
	sendSignal(signal: NodeJS.Signals): void {
		this.#child.kill(signal);
	}

	/** Sets whether the running successor keeps this process's event loop alive. */
	keepAlive(isKept: boolean): void {
		if (isKept) this.#child.ref();
		else this.#child.unref();
	}

	/**
	 * Aborts the handover. Returns false if the successor has already been told to accept connections, so that the caller must wait
	 * for the outcome.
	 */
	abort(reason: string): boolean {
		if (this.#isSwitching) return false;
		this.#abortReason = reason;
		this.kill();
		return true;
	}

	async #failHandover({ message, diagnostics, isCauseOnMachine }: SuccessorFailure): Promise<HandoverResult> {
		const { doing } = STEPS[this.#step];
		this.kill();
		// The wait is limited, because a process that is stuck in the kernel does not end even when it is killed.
		await withTimeLimit(
			this.#endReason.then(() => {}),
			KILL_TIMEOUT_MS,
		);
		if (!this.#hasEnded) this.#child.unref();
		this.#channel.close();
		this.onRunning?.('ended');
		this.pipe?.destroy();
		const output = await this.#lastOutput();
		const reason = this.#abortReason ?? (this.pid === undefined ? message : `${message} It was ${doing}.`);
		return {
			result: 'failed',
			message: reason,
			...(Array.isArray(diagnostics) && { diagnostics }),
			...(isCauseOnMachine === true && { isCauseOnMachine }),
			...(output !== '' && { output }),
		};
	}

	/** Returns what the process wrote to standard error before it had the offer. */
	async #lastOutput(): Promise<string> {
		if (this.#standardError === undefined) return '';
		await withTimeLimit(this.#standardError.whenEnded, LAST_OUTPUT_LIMIT_MS);
		return this.#standardError.lines.text;
	}

	/** Kills the process and all processes that it has started: if it is a wrapper, the server is one of them. */
	kill(): void {
		const { pid } = this.#child;
		if (pid === undefined) return;
		try {
			process.kill(-pid, 'SIGKILL');
		} catch {
			// All processes of the group have ended already.
		}
	}

	#handleMessage(message: MessageFromSuccessor): void {
		if (isLaterReport(message)) {
			if (message.type === 'left' || message.type === 'lost') this.#hasHandedOver = message.type === 'left';
			this.onReport?.(message.type);
		} else if (message.type === 'running') this.onRunning?.(message);
		else if (message.type !== 'step') this.#onAnswer?.(message);
		else if (Object.hasOwn(STEPS, message.step)) this.#startStepTimer(message.step);
		else this.#onAnswer?.(PROTOCOL_FAILURE);
	}

	/** Starts the time limit of a step. */
	#startStepTimer(step: HandoverStep): void {
		if (this.#isSwitching || !this.#onAnswer) return;
		this.#step = step;
		clearTimeout(this.#stepTimer);
		const limitMs = stepLimitMs(step, this.#readyLimitMs);
		this.#stepTimer = this.#startTimer(
			limitMs,
			`The new process has exceeded the limit of ${formatDuration(limitMs)} for a step.`,
		);
	}

	/** Starts a timer that reports a failure in place of the awaited answer if the answer does not arrive in time. */
	#startTimer(limitMs: number, message: string): NodeJS.Timeout {
		const receiveAnswer = this.#onAnswer;
		const expire = () => this.#onAnswer === receiveAnswer && receiveAnswer?.({ type: 'failed', message });
		// If this process was paused, an answer may have arrived meanwhile. `setImmediate` allows the answer to be read before the
		// timer takes effect.
		return setTimeout(() => setImmediate(expire), limitMs);
	}

	/** Resolves to the next message, or to the reason why there is none. */
	#awaitAnswer(limitMs: number, action: string): Promise<MessageFromSuccessor> {
		const { promise, resolve } = Promise.withResolvers<MessageFromSuccessor>();
		this.#onAnswer = message => {
			this.#onAnswer = undefined;
			resolve(message);
		};
		const timer = this.#startTimer(limitMs, `The new process did not ${action} in time (${formatDuration(limitMs)}).`);
		if (this.#hasBrokenProtocol) resolve(PROTOCOL_FAILURE);
		// The last message of an ended process may still be in the channel, so it gets some time to arrive.
		void this.#endReason.then(message => setTimeout(resolve, 100, { type: 'failed', message }));
		return promise.finally(() => clearTimeout(timer));
	}
}

function spawnSuccessor(
	program: SuccessorProgram,
	descriptors: readonly number[],
	withPipe: boolean,
	{ protocol, standardError }: Offer,
): ChildProcess {
	try {
		return spawn(program.file, program.args, {
			// The successor gets its own session, so that it does not receive the terminal's signals directly: the first process
			// forwards these signals.
			detached: true,
			stdio: [
				...(['inherit', 'inherit', standardError === undefined ? 'inherit' : 'pipe', 'pipe'] as const),
				...descriptors,
				...(withPipe ? (['pipe'] as const) : []),
			],
			env: { ...process.env, [SUCCESSOR_VARIABLE]: String(protocol) },
		});
	} catch (error) {
		throw new HandoverImpossible(describeStartError(program, error as NodeJS.ErrnoException));
	}
}

/** Reads a process's standard error, without keeping this process alive. */
function followStandardError(
	stream: Readable | undefined,
	onError: (text: string) => void,
): { readonly lines: LastLines; readonly whenEnded: Promise<void> } | undefined {
	if (stream === undefined) return undefined;
	const lines = new LastLines();
	const { promise: whenEnded, resolve } = Promise.withResolvers<void>();
	stream.setEncoding('utf8').on('data', (text: string) => {
		lines.add(text);
		onError(text);
	});
	stream.on('error', () => resolve());
	stream.on('close', () => resolve());
	(stream as Socket).unref();
	return { lines, whenEnded };
}

function describeStartError({ file }: SuccessorProgram, { code, message }: NodeJS.ErrnoException): string {
	const reason = code === undefined ? message : `${code}${START_ERRORS[code] ? `, ${START_ERRORS[code]}` : ''}`;
	return `The program ${file} cannot be started: ${reason}.`;
}

function isLaterReport(message: MessageFromSuccessor): message is { readonly type: LaterReport } {
	return (LATER_REPORTS as readonly string[]).includes(message.type);
}

function isDone(message: MessageFromSuccessor): message is Extract<MessageFromSuccessor, { type: 'done' }> {
	return message.type === 'done' && Number.isInteger(message.generation) && Array.isArray(message.warnings);
}
