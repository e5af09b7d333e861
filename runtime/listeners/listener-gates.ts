/**
 * The admission objects of a thread's listeners: created with shared memory when a listener first has limits, kept across loads.
 */
import type { Settings } from '../../compiler/document/document.ts';
import { type ServerLimits, serverSettingsFor } from '../../compiler/document/server-settings.ts';
import type { Exchange } from '../../compiler/exchange/exchange.ts';
import { ROW_SLOT } from '../metrics/counter-row.ts';
import { overloadSlot } from '../metrics/refusals.ts';
import { CLIENT_SLOTS, ClientCounts } from '../threads/client-counts.ts';
import { ADMISSION_SLOT_COUNT, Admission } from './admission.ts';
import type { ListenerAddress } from './listener-address.ts';

export interface ListenerGatesDeps {
	/** Index of this thread's row in shared memory. */
	readonly row: number;
	/** Number of rows in shared memory, one for each thread. */
	readonly rows: number;
	/** Returns memory that all threads share under a key. */
	sharedMemory(key: string, slotCount: number): Promise<SharedArrayBuffer>;
	clientIp(x: Exchange): string;
	/** The thread's row of counters; see counter-row.ts. */
	readonly counters: Float64Array;
}

export class ListenerGates {
	readonly #deps: ListenerGatesDeps;
	readonly #admissionsByKey = new Map<string, Admission>();
	#clients: ClientCounts | undefined;

	constructor(deps: ListenerGatesDeps) {
		this.#deps = deps;
	}

	/** Creates the admission of a listener if its settings have limits. Called before the generation is activated. */
	async prepare(address: ListenerAddress, settings: Settings): Promise<void> {
		if (this.#admissionsByKey.has(address.key) || !hasLimits(serverSettingsFor(settings, address).limits)) return;
		const { row, rows, counters, clientIp } = this.#deps;
		const memory = await this.#deps.sharedMemory(address.key, ADMISSION_SLOT_COUNT);
		if (!this.#clients) {
			const clientsMemory = await this.#deps.sharedMemory('clients', CLIENT_SLOTS);
			this.#clients ??= new ClientCounts(clientsMemory, rows, row);
		}
		const admission = new Admission({
			memory,
			clients: this.#clients,
			row,
			clientIp,
			onRejected: limit => {
				counters[overloadSlot(limit)]!++;
			},
			onQueueChanged: change => {
				counters[ROW_SLOT.queued]! += change;
				if (change === 1) counters[ROW_SLOT.queuedRequests]!++;
			},
		});
		this.#admissionsByKey.set(address.key, admission);
	}

	/**
	 * Sets the limits of a listener's admission, and returns it; undefined if the listener has no admission, because it has never
	 * had limits.
	 */
	applyLimits(address: ListenerAddress, limits: ServerLimits | undefined): Admission | undefined {
		const admission = this.#admissionsByKey.get(address.key);
		admission?.configure(limits ?? {});
		return admission;
	}
}

function hasLimits(limits: ServerLimits = {}): boolean {
	const { connections, connections_per_client, requests, requests_per_client } = limits;
	return [connections, connections_per_client, requests, requests_per_client].some(limit => (limit ?? 0) > 0);
}
