/** The successor's side of a handover: receives messages from the process that started it. */
import { fstatSync } from 'node:fs';
import { Socket } from 'node:net';
import type { RunningChannel, RunningMessage } from '../../concurrency-limits/running-exchange.ts';
import type { HandedState } from './handed-state.ts';
import {
	CHANNEL_DESCRIPTOR,
	CONFIRMED_HANDOVER_PROTOCOL,
	formatDuration,
	HANDOVER_PROTOCOL,
	type HandoverStep,
	type LaterReport,
	type MessageFromSuccessor,
	type MessageToSuccessor,
	OFFER_LIMIT_MS,
	type Offer,
	READY_LIMIT_MS,
	STEPS,
	SUCCESSOR_VARIABLE,
	stepLimitMs,
	type UnconfirmedTerms,
} from './handover-protocol.ts';
import { MessageChannel } from './message-channel.ts';

/**
 * Milliseconds by which the time limits of this side exceed those of the predecessor, so that the predecessor's limits expire
 * first.
 */
const LIMIT_MARGIN_MS = 5000;

/** Reports whether this process was started as a successor. */
export function isSuccessor(): boolean {
	if (process.env[SUCCESSOR_VARIABLE] === undefined) return false;
	try {
		return fstatSync(CHANNEL_DESCRIPTOR).isSocket();
	} catch {
		return false;
	}
}

export class PredecessorChannel implements RunningChannel {
	readonly #channel: MessageChannel<MessageFromSuccessor>;
	onRunning: RunningChannel['onRunning'];
	readonly #queuedMessages: MessageToSuccessor[] = [];
	#onNextMessage: ((message: MessageToSuccessor | 'ended' | 'late') => void) | undefined;
	readonly #stepExpiry = Promise.withResolvers<never>();
	#stepTimer: NodeJS.Timeout | undefined;
	#readyLimitMs = READY_LIMIT_MS;

	constructor() {
		const stream = new Socket({ fd: CHANNEL_DESCRIPTOR, readable: true, writable: true });
		this.#channel = new MessageChannel(
			stream,
			message => {
				if (message.type === 'running') this.onRunning?.(message as RunningMessage);
				else if (this.#onNextMessage) this.#onNextMessage(message as MessageToSuccessor);
				else this.#queuedMessages.push(message as MessageToSuccessor);
			},
			() => {
				this.onRunning?.('ended');
				this.#onNextMessage?.('ended');
			},
		);
		// The promise may reject before anything waits for it, which must not count as an unhandled rejection.
		this.#stepExpiry.promise.catch(() => {});
	}

	/** Rejects if a step takes too long. This process must then end, whether its predecessor still serves or not. */
	get whenExpired(): Promise<never> {
		return this.#stepExpiry.promise;
	}

	/** Reports to the predecessor which step begins, and starts its time limit. */
	reportStep(step: HandoverStep): void {
		this.#startStepTimer(step);
		void this.#channel.send({ type: 'step', step });
	}

	#startStepTimer(step: HandoverStep): void {
		clearTimeout(this.#stepTimer);
		const limitMs = stepLimitMs(step, this.#readyLimitMs) + LIMIT_MARGIN_MS;
		this.#stepTimer = setTimeout(() => {
			this.#stepExpiry.reject(
				new Error(`The new process gave up: ${STEPS[step].doing} took longer than ${formatDuration(limitMs)}.`),
			);
		}, limitMs);
	}

	/** Whether the predecessor still waits for messages. */
	get isOpen(): boolean {
		return this.#channel.isOpen;
	}

	/** Resolves to the offer. Rejects if none arrives, or if it uses another version of the protocol. */
	async receiveOffer(): Promise<Offer> {
		const offeredVersion = process.env[SUCCESSOR_VARIABLE];
		delete process.env[SUCCESSOR_VARIABLE];
		if (offeredVersion !== String(HANDOVER_PROTOCOL) && offeredVersion !== String(CONFIRMED_HANDOVER_PROTOCOL)) {
			throw new Error(
				`This release cannot take over from one that speaks version ${offeredVersion} of the handover; restart the server instead.`,
			);
		}
		const message = await this.#nextMessage(OFFER_LIMIT_MS);
		if (typeof message === 'string' || message.type !== 'offer')
			throw new Error('The running process did not say what to take over.');
		this.#readyLimitMs = message.readyLimit ?? READY_LIMIT_MS;
		return message;
	}

	/**
	 * Reports to the predecessor that this process is able to serve. When this process must start to accept connections, resolves to
	 * the latest state of the predecessor; undefined if the predecessor has died. Rejects if the predecessor neither answers nor
	 * ends.
	 */
	async reportReady(): Promise<HandedState | undefined> {
		clearTimeout(this.#stepTimer);
		void this.#channel.send({ type: 'ready' });
		const message = await this.#nextMessage(STEPS.ready.limit);
		if (message === 'late') throw new Error('The running process did not say when to take over.');
		this.#startStepTimer('switch');
		// The predecessor has died, so this process must serve without its state.
		if (message === 'ended') return undefined;
		return message.type === 'go' ? message.state : undefined;
	}

	/** Reports to the predecessor that this process accepts connections, so that the predecessor can exit. */
	async reportDone(
		generation: number,
		warnings: Extract<MessageFromSuccessor, { type: 'done' }>['warnings'],
		abandoned: readonly string[],
		unconfirmed?: UnconfirmedTerms,
	): Promise<void> {
		clearTimeout(this.#stepTimer);
		await this.#channel.send({ type: 'done', generation, warnings, abandoned, unconfirmed });
	}

	sendRunning(message: RunningMessage): Promise<void> {
		return this.#channel.send(message);
	}

	/** Reports an event after {@link reportDone} to the predecessor, if it still exists. */
	async report(report: LaterReport): Promise<void> {
		await this.#channel.send({ type: report });
	}

	/** Reports to the predecessor why this process cannot take over. Resolves once the message has been sent. */
	async reportFailure(failure: Omit<Extract<MessageFromSuccessor, { type: 'failed' }>, 'type'>): Promise<void> {
		await this.#channel.send({ type: 'failed', ...failure });
	}

	/** Resolves to the next message, to `ended` if the predecessor has ended, or to `late` after `limitMs`. */
	#nextMessage(limitMs: number): Promise<MessageToSuccessor | 'ended' | 'late'> {
		const message = this.#queuedMessages.shift();
		if (message) return Promise.resolve(message);
		if (!this.#channel.isOpen) return Promise.resolve('ended');
		return new Promise(resolve => {
			let isWaiting = true;
			// If the whole process was paused, a message may have arrived meanwhile. `setImmediate` allows the message to be read
			// before the timeout takes effect.
			const timer = setTimeout(() => setImmediate(() => isWaiting && this.#onNextMessage?.('late')), limitMs);
			this.#onNextMessage = received => {
				isWaiting = false;
				this.#onNextMessage = undefined;
				clearTimeout(timer);
				resolve(received);
			};
		});
	}
}
