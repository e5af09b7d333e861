/** The tables of all zones of `limit_concurrent`, on the main thread. */
import type { ConcurrencyLimiterSettings } from '../../compiler/modules/directives/limit-concurrent/concurrency-limiter.ts';
import type { ConcurrencyWatcher } from '../threads/shared-rows.ts';
import {
	ConcurrencyTable,
	type KeyHash,
	readConcurrency,
	readRunningKeys,
	setConcurrencySecret,
} from './concurrency-table.ts';
import type { RunningCounts } from './running-exchange.ts';

/** The numbers of running and waiting requests of a zone. */
export interface ConcurrencyReport {
	readonly zone: string;
	readonly running: number;
	readonly waiting: number;
}

/** Milliseconds until a count is set again whose table a dead thread has locked. The thread's end is reported meanwhile. */
const RETRY_MS = 20;

interface OpenTable {
	readonly settings: ConcurrencyLimiterSettings;
	readonly buffer: SharedArrayBuffer;
	readonly rowCount: number;
	/** The main thread's view of the table. */
	readonly view: ConcurrencyTable;
}

/** Removes the requests of dead threads, and reports how many requests run and wait. */
export class ConcurrencyTables implements ConcurrencyWatcher {
	readonly #openTables = new Map<string, OpenTable>();
	/** How many requests run in other processes, by table and key; see {@link setForeignCount}. */
	readonly #foreignCounts = new Map<string, Map<string, number>>();
	readonly #secret: () => Buffer;

	/** @param secret Returns the secret with which keys are hashed. A process and its successor have the same secret. */
	constructor(secret: () => Buffer) {
		this.#secret = secret;
	}

	onConcurrencyOpened(
		key: string,
		settings: ConcurrencyLimiterSettings,
		buffer: SharedArrayBuffer,
		rowCount: number,
	): void {
		setConcurrencySecret(buffer, rowCount, this.#secret());
		const view = new ConcurrencyTable(buffer, rowCount, settings.maxKeys, -1);
		this.#openTables.set(key, { settings, buffer, rowCount, view });
		for (const keyName of this.#foreignCounts.get(key)?.keys() ?? []) this.#applyForeignCount(key, keyName);
	}

	onConcurrencyClosed(key: string): void {
		this.#openTables.delete(key);
	}

	onThreadEnded(key: string, thread: number): boolean {
		return this.#openTables.get(key)?.view.removeThread(thread) ?? true;
	}

	/** Returns how many requests run in this process, by table and key. */
	runningCounts(): RunningCounts {
		const tables: { [table: string]: { [keyName: string]: number } } = {};
		for (const [table, { settings, buffer, rowCount }] of this.#openTables) {
			for (const { hash, running } of readRunningKeys(buffer, rowCount, settings.maxKeys)) {
				tables[table] ??= {};
				tables[table][`${hash[0]},${hash[1]}`] = running;
			}
		}
		return tables;
	}

	/** Sets how many requests of a key run in other processes. A table that is opened later begins with these counts. */
	setForeignCount(table: string, keyName: string, count: number): void {
		let countsByKey = this.#foreignCounts.get(table);
		if (!countsByKey) {
			countsByKey = new Map();
			this.#foreignCounts.set(table, countsByKey);
		}
		if (count === 0) countsByKey.delete(keyName);
		else countsByKey.set(keyName, count);
		if (countsByKey.size === 0) this.#foreignCounts.delete(table);
		this.#applyForeignCount(table, keyName);
	}

	#applyForeignCount(table: string, keyName: string): void {
		const count = this.#foreignCounts.get(table)?.get(keyName) ?? 0;
		if (this.#openTables.get(table)?.view.setForeignCount(parseKeyName(keyName), count) === false)
			setTimeout(() => this.#applyForeignCount(table, keyName), RETRY_MS).unref();
	}

	reports(): readonly ConcurrencyReport[] {
		return [...this.#openTables.values()].map(({ settings: { zone, maxKeys }, buffer, rowCount }) => ({
			zone,
			...readConcurrency(buffer, rowCount, maxKeys),
		}));
	}
}

/** Parses the name of a key in {@link RunningCounts}, which consists of the halves of the key's hash. */
function parseKeyName(keyName: string): KeyHash {
	const [first, second] = keyName.split(',').map(Number) as [number, number];
	return [first, second];
}
