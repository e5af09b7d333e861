/** Work for pages as a data-plane thread has it done: names are looked up from here, the rest is the main thread's to give away. */
import { lookup } from 'node:dns/promises';
import { HttpError } from '../../compiler/exchange/http-error.ts';
import type { PageTask, PageWork } from '../../compiler/exchange/page-work.ts';
import type { ComputedTask } from './do-page-task.ts';
import type { QueuedAnswer } from './page-work-queue.ts';

/** Names that are looked up at one time: each takes a thread of the pool that files are read on too. */
const MOST_LOOKUPS = 8;
/** Milliseconds that a page waits for an address. */
const LOOKUP_LIMIT = 5000;
/** Seconds after which a client that was refused may come back. */
const RETRY_AFTER = 5;

export class ThreadPageWork implements PageWork {
	readonly #ask: (task: ComputedTask) => Promise<QueuedAnswer>;
	readonly #lookups = new Map<string, Promise<string>>();

	/** `ask`: has the main thread see to a task. */
	constructor(ask: (task: ComputedTask) => Promise<QueuedAnswer>) {
		this.#ask = ask;
	}

	async run(task: PageTask): Promise<string> {
		if (task.task === 'addresses') return this.#addresses(task.host);
		const answer = await this.#ask(task);
		if (answer === null) throw tooMuch();
		if ('failure' in answer) throw new Error(answer.failure);
		return answer.result;
	}

	/** Pages that ask for one name at one time share the answer. */
	#addresses(host: string): Promise<string> {
		const known = this.#lookups.get(host);
		if (known) return inTime(known, host);
		if (this.#lookups.size >= MOST_LOOKUPS) return Promise.reject(tooMuch());
		const found = lookup(host, { all: true }).then(
			list => list.map(({ address }) => address).join(' '),
			error => {
				throw new Error(`lookup ${host}: ${(error as { code?: string }).code ?? 'failed'}`);
			},
		);
		const over = (): void => void this.#lookups.delete(host);
		this.#lookups.set(host, found);
		found.then(over, over);
		return inTime(found, host);
	}
}

/** The same, or an error when it takes too long: name servers may never answer. */
function inTime(found: Promise<string>, host: string): Promise<string> {
	return new Promise((resolve, reject) => {
		const timer = setTimeout(() => reject(new Error(`lookup ${host}: no answer in time`)), LOOKUP_LIMIT);
		found.then(resolve, reject).finally(() => clearTimeout(timer));
	});
}

function tooMuch(): HttpError {
	return new HttpError(503, 'Too many pages wait for work to be done.', {
		headers: [['Retry-After', String(RETRY_AFTER)]],
	});
}
