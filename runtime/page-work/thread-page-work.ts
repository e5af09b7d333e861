/** Expensive template functions on a worker thread: host names are resolved here, all other tasks are sent to the main thread. */
import { lookup } from 'node:dns/promises';
import { HttpError } from '../../compiler/exchange/http-error.ts';
import type { PageTask, PageWork } from '../../compiler/exchange/page-work.ts';
import type { ComputedTask } from './do-page-task.ts';
import type { PageTaskReply } from './page-work-queue.ts';

/** Maximum number of concurrent lookups. Each lookup occupies a thread of the pool that also reads files. */
const MAX_LOOKUPS = 8;
/** Milliseconds after which a name lookup times out. */
const LOOKUP_TIMEOUT_MS = 5000;
/** `Retry-After`, in seconds, for clients whose tasks are rejected. */
const RETRY_AFTER_SECONDS = 5;

export class ThreadPageWork implements PageWork {
	readonly #sendTask: (task: ComputedTask) => Promise<PageTaskReply>;
	readonly #lookupsByHost = new Map<string, Promise<string>>();

	/** @param sendTask Sends a task to the main thread. */
	constructor(sendTask: (task: ComputedTask) => Promise<PageTaskReply>) {
		this.#sendTask = sendTask;
	}

	async run(task: PageTask): Promise<string> {
		if (task.task === 'addresses') return this.#lookUpAddresses(task.host);
		const answer = await this.#sendTask(task);
		if (answer === null) throw tooManyTasksError();
		if ('failure' in answer) throw new Error(answer.failure);
		return answer.result;
	}

	/** Resolves a host name. Concurrent lookups of one name share the result. */
	#lookUpAddresses(host: string): Promise<string> {
		const pendingLookup = this.#lookupsByHost.get(host);
		if (pendingLookup) return withLookupTimeout(pendingLookup, host);
		if (this.#lookupsByHost.size >= MAX_LOOKUPS) return Promise.reject(tooManyTasksError());
		const lookupResult = lookup(host, { all: true }).then(
			list => list.map(({ address }) => address).join(' '),
			error => {
				throw new Error(`lookup ${host}: ${(error as { code?: string }).code ?? 'failed'}`);
			},
		);
		const forgetLookup = (): void => void this.#lookupsByHost.delete(host);
		this.#lookupsByHost.set(host, lookupResult);
		lookupResult.then(forgetLookup, forgetLookup);
		return withLookupTimeout(lookupResult, host);
	}
}

/** Adds a timeout to a lookup, because name servers may never answer. */
function withLookupTimeout(lookupResult: Promise<string>, host: string): Promise<string> {
	return new Promise((resolve, reject) => {
		const timer = setTimeout(() => reject(new Error(`lookup ${host}: no answer in time`)), LOOKUP_TIMEOUT_MS);
		lookupResult.then(resolve, reject).finally(() => clearTimeout(timer));
	});
}

function tooManyTasksError(): HttpError {
	return new HttpError(503, 'Too many pages are waiting for expensive template functions.', {
		headers: [['Retry-After', String(RETRY_AFTER_SECONDS)]],
	});
}
