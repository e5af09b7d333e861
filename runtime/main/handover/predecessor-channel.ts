/** The successor's side of a handover: receives messages from the process that started it. */
import {
	type FromSuccessor,
	HANDOVER_PROTOCOL,
	type Offer,
	SUCCESSOR_VARIABLE,
	type ToSuccessor,
} from './handover-protocol.ts';

/** Milliseconds until the offer must arrive. */
const OFFER_LIMIT = 10_000;

/** Reports whether this process was started as a successor. */
export function isSuccessor(): boolean {
	return process.env[SUCCESSOR_VARIABLE] !== undefined && process.send !== undefined;
}

/** The channel to the predecessor. */
export class PredecessorChannel {
	readonly #waiting: ToSuccessor[] = [];
	#take: ((message: ToSuccessor | undefined) => void) | undefined;

	constructor() {
		process.on('message', message => {
			if (this.#take) this.#take(message as ToSuccessor);
			else this.#waiting.push(message as ToSuccessor);
		});
		process.once('disconnect', () => this.#take?.(undefined));
	}

	/** Resolves to the offer. Rejects if none arrives, or if it uses another version of the protocol. */
	async offer(): Promise<Offer> {
		const wanted = process.env[SUCCESSOR_VARIABLE];
		delete process.env[SUCCESSOR_VARIABLE];
		if (wanted !== String(HANDOVER_PROTOCOL)) {
			throw new Error(
				`This release cannot take over from one that speaks version ${wanted} of the handover; restart the server instead.`,
			);
		}
		const timer = setTimeout(() => this.#take?.(undefined), OFFER_LIMIT);
		const message = await this.#next();
		clearTimeout(timer);
		if (message?.type !== 'offer') throw new Error('The running process did not say what to take over.');
		return message;
	}

	/** Reports to the predecessor that this process is able to serve. Resolves when this process must start to accept connections. */
	async ready(): Promise<void> {
		this.#send({ type: 'ready' });
		// If there is no message, the predecessor has died, and no other process serves.
		await this.#next();
	}

	/** Reports to the predecessor that this process accepts connections, so that the predecessor can exit. */
	done(generation: number, warnings: Extract<FromSuccessor, { type: 'done' }>['warnings']): void {
		this.#send({ type: 'done', generation, warnings });
		process.removeAllListeners('message');
	}

	/** Reports to the predecessor why this process cannot take over. Resolves once the message has been sent. */
	async failed(failure: Omit<Extract<FromSuccessor, { type: 'failed' }>, 'type'>): Promise<void> {
		await this.#send({ type: 'failed', ...failure });
	}

	async #next(): Promise<ToSuccessor | undefined> {
		// Messages that arrived before this process listened are delivered first, even if the predecessor has died since.
		if (!process.connected) await new Promise(resolve => setImmediate(resolve));
		const message = this.#waiting.shift();
		if (message || !process.connected) return message;
		return await new Promise(resolve => {
			this.#take = taken => {
				this.#take = undefined;
				resolve(taken);
			};
		});
	}

	#send(message: FromSuccessor): Promise<void> {
		if (!process.connected) return Promise.resolve();
		return new Promise(resolve => void process.send!(message, () => resolve()));
	}
}
