/** Expensive template functions on a worker thread: host names are resolved here, all other tasks are sent to the main thread. */
import { lookup } from 'node:dns/promises';
import { HttpError } from '../../compiler/exchange/http-error.ts';
import type { PageTask, PageWork } from '../../compiler/exchange/page-work.ts';
import type { ComputedTask } from './do-page-task.ts';
import type { PageTaskReply } from './page-work-queue.ts';

/** Maximum number of concurrent lookups. Each lookup occupies a thread of the pool that also reads files. */
const MAX_LOOKUPS = 8;
/** Milliseconds after which a name lookup times out. */
const LOOKUP_LIMIT_MS = 5000;
/** `Retry-After`, in seconds, for clients whose tasks are rejected. */
const RETRY_AFTER_SECONDS = 5;

export class ThreadPageWork implements PageWork {
	readonly #ask: (task: ComputedTask) => Promise<PageTaskReply>;
	readonly #lookups = new Map<string, Promise<string>>();

	/** @param ask Sends a task to the main thread. */
	constructor(ask: (task: ComputedTask) => Promise<PageTaskReply>) {
		this.#ask = ask;
	}

	async run(task: PageTask): Promise<string> {
		if (task.task === 'addresses') return this.#addresses(task.host);
		const answer = await this.#ask(task);
		if (answer === null) throw tooManyError();
		if ('failure' in answer) throw new Error(answer.failure);
		return answer.result;
	}

	/** Resolves a host name. Concurrent lookups of one name share the result. */
	#addresses(host: string): Promise<string> {
		const pendingLookup = this.#lookups.get(host);
		if (pendingLookup) return withLookupLimit(pendingLookup, host);
		if (this.#lookups.size >= MAX_LOOKUPS) return Promise.reject(tooManyError());
		const lookupResult = lookup(host, { all: true }).then(
			list => list.map(({ address }) => address).join(' '),
			error => {
				throw new Error(`lookup ${host}: ${(error as { code?: string }).code ?? 'failed'}`);
			},
		);
		const forget = (): void => void this.#lookups.delete(host);
		this.#lookups.set(host, lookupResult);
		lookupResult.then(forget, forget);
		return withLookupLimit(lookupResult, host);
	}
}

/** Adds a timeout to a lookup, because name servers may never answer. */
function withLookupLimit(lookupResult: Promise<string>, host: string): Promise<string> {
	return new Promise((resolve, reject) => {
		const timer = setTimeout(() => reject(new Error(`lookup ${host}: no answer in time`)), LOOKUP_LIMIT_MS);
		lookupResult.then(resolve, reject).finally(() => clearTimeout(timer));
	});
}

function tooManyError(): HttpError {
	return new HttpError(503, 'Too many pages are waiting for expensive template functions.', {
		headers: [['Retry-After', String(RETRY_AFTER_SECONDS)]],
	});
}
