/** The main thread's services for a worker thread: answers its requests, and receives its log lines, spans and metrics. */
import type { Worker } from 'node:worker_threads';
import { LOG_ENTRY_WEIGHT } from '../logs/log-entry.ts';
import { CONTROL_LOG_IN_TRANSIT } from '../threads/control-words.ts';
import type { SharedRows } from '../threads/shared-rows.ts';
import type { MainThreadRequest } from '../worker/main-thread-requests.ts';
import type { MessageToWorker, ServiceRequest } from '../worker/worker-messages.ts';
import type { WorkerPoolHost } from './worker-pool-host.ts';

/** Serves the thread that uses one row of the shared memory and, when that thread has ended, its replacement. */
export class WorkerServices {
	/** Index of the thread's row in shared memory. */
	readonly #index: number;
	readonly #host: WorkerPoolHost;
	readonly #sharedRows: SharedRows;
	readonly #controlWords: Int32Array;
	/** Log writers that the thread uses. */
	readonly #openedSinks = new Set<string>();

	constructor(index: number, host: WorkerPoolHost, sharedRows: SharedRows, controlWords: Int32Array) {
		this.#index = index;
		this.#host = host;
		this.#sharedRows = sharedRows;
		this.#controlWords = controlWords;
	}

	/** Prepares for a thread that is about to start. Returns the memory of its counters. */
	begin(): SharedArrayBuffer {
		Atomics.store(this.#controlWords, CONTROL_LOG_IN_TRANSIT + this.#index, 0);
		return this.#host.totals.addThread(this.#index);
	}

	/** Releases what the thread used, after it has ended. */
	end(): void {
		this.#host.totals.removeThread(this.#index);
		this.#host.onThreadEnded(this.#index);
		for (const sink of this.#openedSinks) this.#host.onSinkReleased(sink);
		this.#openedSinks.clear();
		this.#sharedRows.releaseThread(this.#index);
	}

	/** @param thread The thread that sent the message; it gets the reply, even if it has been replaced by then. */
	handle(message: ServiceRequest, thread: Worker): void {
		switch (message.type) {
			case 'memory_wanted': {
				const { key, request } = message;
				this.#sharedRows.whenCleared(key, this.#index, () => {
					const buffer = this.#sharedRows.takeMemory(key, request, this.#index);
					send(thread, { type: 'memory', key, buffer });
				});
				return;
			}
			case 'memory_released':
				this.#sharedRows.releaseMemory(message.key, this.#index);
				return;
			case 'upstreams_found':
				this.#host.pools.onAddressesFound(message.key, this.#index, message.addresses);
				return;
			case 'cache':
				this.#host.caches.onDiskEvent(message.store, message.event);
				return;
			case 'cluster_fetch_ended':
				this.#host.caches.onClusterFetchEnded(message.result);
				return;
			case 'page':
				this.#host.totals.addPage(this.#index, message.buffer);
				return;
			case 'series':
				this.#host.totals.addSeries(this.#index, message.series);
				return;
			case 'sink_opened':
				this.#openedSinks.add(message.sink);
				this.#host.onSinkOpened(message.sink, message.output);
				return;
			case 'sink_released':
				this.#openedSinks.delete(message.sink);
				this.#host.onSinkReleased(message.sink);
				return;
			case 'access':
				this.#recordArrival(message.text.length);
				this.#host.writeAccessLines(message.sink, message.text, message.entries);
				return;
			case 'access_segment':
				this.#host.writeAccessLines(message.sink, message.lines, message.entries);
				return;
			case 'access_dropped':
				this.#host.onAccessDropped(message.sink, message.entries);
				return;
			case 'log':
				this.#recordArrival(LOG_ENTRY_WEIGHT);
				this.#host.log(message.entry);
				return;
			case 'tracing_opened':
				this.#host.onTracingOpened();
				return;
			case 'spans':
				this.#recordArrival(message.text.length);
				this.#host.queueSpans(message.text, message.spans);
				return;
			case 'ask':
				this.#answer(thread, message.id, message.question);
				return;
			case 'challenges_taken':
				this.#host.onChallengesReceived(this.#index, message.number);
				return;
			case 'room_wanted':
				this.#host.onRoomWanted(message.listener);
				return;
		}
	}

	/** Records that text for a log or a trace has arrived, so that the thread may send more. */
	#recordArrival(size: number): void {
		Atomics.sub(this.#controlWords, CONTROL_LOG_IN_TRANSIT + this.#index, size);
	}

	#answer(thread: Worker, id: number, question: MainThreadRequest): void {
		this.#host.answer(question).then(
			answer => send(thread, { type: 'answer', id, answer }),
			(error: Error) => {
				const fields = { about: question.about, error: error.message };
				this.#host.log({ level: 'error', logger: 'runtime', message: 'a request of a worker thread failed', fields });
				send(thread, { type: 'answer', id, answer: undefined, failure: error.message });
			},
		);
	}
}

function send(thread: Worker, message: MessageToWorker): void {
	thread.postMessage(message);
}
