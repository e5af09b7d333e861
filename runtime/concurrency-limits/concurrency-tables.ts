/** The tables of all zones of `limit_concurrent`, on the main thread. */
import type { ConcurrencyLimiterSettings } from '../../compiler/modules/directives/limit-concurrent/concurrency-limiter.ts';
import type { ConcurrencyWatcher } from '../threads/shared-rows.ts';
import { ConcurrencyTable, readConcurrency } from './concurrency-table.ts';

/** How many requests of a zone run and wait. */
export interface ConcurrencyReport {
	readonly zone: string;
	readonly running: number;
	readonly waiting: number;
}

interface OpenTable {
	readonly settings: ConcurrencyLimiterSettings;
	readonly buffer: SharedArrayBuffer;
	readonly rowCount: number;
}

/** Frees the places of dead threads, and reports how many requests run and wait. */
export class ConcurrencyTables implements ConcurrencyWatcher {
	readonly #openTables = new Map<string, OpenTable>();

	onConcurrencyOpened(
		key: string,
		settings: ConcurrencyLimiterSettings,
		buffer: SharedArrayBuffer,
		rowCount: number,
	): void {
		this.#openTables.set(key, { settings, buffer, rowCount });
	}

	onConcurrencyClosed(key: string): void {
		this.#openTables.delete(key);
	}

	onThreadEnded(key: string, thread: number): void {
		const table = this.#openTables.get(key);
		if (!table) return;
		const { settings, buffer, rowCount: rows } = table;
		new ConcurrencyTable(buffer, rows, settings.maxKeys, -1).removeThread(thread);
	}

	reports(): readonly ConcurrencyReport[] {
		return [...this.#openTables.values()].map(({ settings: { zone, maxKeys }, buffer, rowCount: rows }) => ({
			zone,
			...readConcurrency(buffer, rows, maxKeys),
		}));
	}
}
