/** The tables of all zones of `rate_limit`, on the main thread. A successor of this process continues with their counts. */

import type { RateLimiterSettings } from '../../compiler/modules/directives/rate-limit/rate-limiter.ts';
import { monotonicNowMs } from '../clock/clock.ts';
import { randomKey } from '../sockets/random-key.ts';
import { readLimitTable, SECRET_WORDS, type UsedPlace, writeLimitTable } from './limit-table.ts';

/** Maximum number of keys passed to a successor. If there are more, the keys that have used least are left out. */
const MAX_HANDOVER_KEYS = 100_000;
/**
 * Maximum number of keys that are read to choose the keys for a successor. Reading that many takes the main thread half a second.
 */
const MAX_READ_KEYS = 300_000;
/** Bytes of the record of a key: its slot in the table, the halves of its hash, and the time when its burst is full again. */
const RECORD_BYTES = 20;

/** The counts of one zone: the key of its memory, and its records in Base64. */
export type LimitTableState = readonly [key: string, records: string];

interface OpenTable {
	readonly buffer: SharedArrayBuffer;
	readonly maxKeys: number;
}

/** The owner of tables whose counts the machines of a cluster share. */
export interface SharedTables {
	/** The secret key of the hash in these tables, {@link SECRET_WORDS} words long. */
	readonly secret: Buffer;
	/** Adds a table, before it is used. */
	onTableOpened(key: string, settings: RateLimiterSettings, buffer: SharedArrayBuffer): void;
	/** Removes a table that no thread uses any longer. */
	onTableClosed(key: string): void;
}

/** The tables of this process. A successor uses the same secrets for its hashes, so that each key stays in its slot. */
export class LimitTables {
	readonly #secret: Buffer;
	readonly #sharedTables: () => SharedTables | undefined;
	readonly #openTables = new Map<string, OpenTable>();

	/**
	 * @param secret The predecessor's {@link LimitTables.secret}, if there is a predecessor.
	 * @param sharedTables Returns the owner of the tables that the machines of the cluster share; undefined outside of a cluster.
	 */
	constructor(secret?: string, sharedTables: () => SharedTables | undefined = () => undefined) {
		this.#sharedTables = sharedTables;
		const inheritedSecret = Buffer.from(secret ?? '', 'base64');
		this.#secret = inheritedSecret.length === SECRET_WORDS * 4 ? inheritedSecret : randomKey(SECRET_WORDS * 4);
	}

	/** The secret in Base64. */
	get secret(): string {
		return this.#secret.toString('base64');
	}

	/** Adds a table. Must be called after its memory has been allocated, and before the table is used. */
	onLimitsOpened(key: string, settings: RateLimiterSettings, buffer: SharedArrayBuffer): void {
		const { maxKeys } = settings;
		const sharedTables = settings.isShared ? this.#sharedTables() : undefined;
		(sharedTables?.secret ?? this.#secret).copy(new Uint8Array(buffer, 0, this.#secret.length));
		sharedTables?.onTableOpened(key, settings, buffer);
		this.#openTables.set(key, { buffer, maxKeys });
	}

	/** Removes a table that no thread uses any longer. */
	onLimitsClosed(key: string): void {
		this.#openTables.delete(key);
		this.#sharedTables()?.onTableClosed(key);
	}

	/** Returns the counts of all tables. Of very large tables, only some keys are included. */
	exportStates(): LimitTableState[] {
		const now = monotonicNowMs();
		const usedPlaces: [key: string, place: UsedPlace][] = [];
		for (const [key, { buffer, maxKeys }] of this.#openTables) {
			for (const place of readLimitTable(buffer, maxKeys, now)) {
				if (usedPlaces.length === MAX_READ_KEYS) break;
				usedPlaces.push([key, place]);
			}
		}
		if (usedPlaces.length > MAX_HANDOVER_KEYS)
			usedPlaces.sort(([, one], [, other]) => other.fullAt - one.fullAt).length = MAX_HANDOVER_KEYS;
		const placesByKey = new Map<string, UsedPlace[]>();
		for (const [key, place] of usedPlaces) {
			const places = placesByKey.get(key);
			if (places) places.push(place);
			else placesByKey.set(key, [place]);
		}
		return [...placesByKey].map(([key, places]) => [key, encodePlaces(places).toString('base64')]);
	}

	/**
	 * Continues with the counts of a predecessor. Must be called before any thread counts requests. Forgets zones that are no
	 * longer used.
	 */
	adoptStates(states: readonly LimitTableState[]): void {
		for (const [key, records] of states) {
			const table = this.#openTables.get(key);
			if (table) writeLimitTable(table.buffer, table.maxKeys, decodePlaces(Buffer.from(records, 'base64')));
		}
	}
}

function encodePlaces(places: readonly UsedPlace[]): Buffer {
	const bytes = Buffer.allocUnsafe(places.length * RECORD_BYTES);
	places.forEach(({ place, firstHash, secondHash, fullAt }, index) => {
		const recordOffset = index * RECORD_BYTES;
		bytes.writeUInt32LE(place, recordOffset);
		bytes.writeInt32LE(firstHash, recordOffset + 4);
		bytes.writeInt32LE(secondHash, recordOffset + 8);
		bytes.writeDoubleLE(fullAt, recordOffset + 12);
	});
	return bytes;
}

function* decodePlaces(bytes: Buffer): Iterable<UsedPlace> {
	for (let recordOffset = 0; recordOffset + RECORD_BYTES <= bytes.length; recordOffset += RECORD_BYTES) {
		yield {
			place: bytes.readUInt32LE(recordOffset),
			firstHash: bytes.readInt32LE(recordOffset + 4),
			secondHash: bytes.readInt32LE(recordOffset + 8),
			fullAt: bytes.readDoubleLE(recordOffset + 12),
		};
	}
}
