/** The tables of all zones of `rate_limit`, on the main thread. A successor of this process continues with their counts. */
import { randomBytes } from 'node:crypto';
import { readLimitTable, SECRET_WORDS, type UsedPlace, writeLimitTable } from './limit-table.ts';

/** Maximum number of keys passed to a successor. Beyond that, the keys that have used least are left out. */
const MAX_HANDED = 100_000;
/** Maximum number of keys that are read to choose from: half a second, in which the main thread does nothing else. */
const MAX_READ = 300_000;
/** Bytes of a key: its place, the halves of its hash, and its time. */
const RECORD = 20;

/** The counts of one zone: the key of its memory, and its records in Base64. */
export type LimitTableState = readonly [key: string, records: string];

interface OpenTable {
	readonly buffer: SharedArrayBuffer;
	readonly maxKeys: number;
}

/** Tables whose hashes have one secret, so that the places of keys are the same in a successor. */
export class LimitTables {
	readonly #secret: Buffer;
	readonly #open = new Map<string, OpenTable>();

	/** @param secret Of the predecessor, from {@link LimitTables.secret}. */
	constructor(secret?: string) {
		const given = Buffer.from(secret ?? '', 'base64');
		this.#secret = given.length === SECRET_WORDS * 4 ? given : randomBytes(SECRET_WORDS * 4);
	}

	/** The secret in Base64. */
	get secret(): string {
		return this.#secret.toString('base64');
	}

	/** Adds a table whose memory has been allocated, before it is used. */
	limitsOpened(key: string, maxKeys: number, buffer: SharedArrayBuffer): void {
		this.#secret.copy(new Uint8Array(buffer, 0, this.#secret.length));
		this.#open.set(key, { buffer, maxKeys });
	}

	/** Removes a table that no thread uses any longer. */
	limitsClosed(key: string): void {
		this.#open.delete(key);
	}

	/** Returns the counts of all tables; of very large ones, only a part. */
	states(): LimitTableState[] {
		const now = monotonicNow();
		const found: [key: string, place: UsedPlace][] = [];
		for (const [key, { buffer, maxKeys }] of this.#open) {
			for (const place of readLimitTable(buffer, maxKeys, now)) {
				if (found.length === MAX_READ) break;
				found.push([key, place]);
			}
		}
		if (found.length > MAX_HANDED) found.sort(([, one], [, other]) => other.full - one.full).length = MAX_HANDED;
		const byKey = new Map<string, UsedPlace[]>();
		for (const [key, place] of found) {
			const places = byKey.get(key);
			if (places) places.push(place);
			else byKey.set(key, [place]);
		}
		return [...byKey].map(([key, places]) => [key, encoded(places).toString('base64')]);
	}

	/** Continues with the counts of a predecessor, before any thread counts. Zones that are no longer used are forgotten. */
	adopt(states: readonly LimitTableState[]): void {
		for (const [key, text] of states) {
			const table = this.#open.get(key);
			if (table) writeLimitTable(table.buffer, table.maxKeys, decoded(Buffer.from(text, 'base64')));
		}
	}
}

/** Returns the milliseconds of the clock that all processes of the machine share. */
function monotonicNow(): number {
	return Number(process.hrtime.bigint()) / 1e6;
}

function encoded(places: readonly UsedPlace[]): Buffer {
	const bytes = Buffer.allocUnsafe(places.length * RECORD);
	places.forEach(({ place, first, second, full }, index) => {
		const at = index * RECORD;
		bytes.writeUInt32LE(place, at);
		bytes.writeInt32LE(first, at + 4);
		bytes.writeInt32LE(second, at + 8);
		bytes.writeDoubleLE(full, at + 12);
	});
	return bytes;
}

function* decoded(bytes: Buffer): Iterable<UsedPlace> {
	for (let at = 0; at + RECORD <= bytes.length; at += RECORD) {
		yield {
			place: bytes.readUInt32LE(at),
			first: bytes.readInt32LE(at + 4),
			second: bytes.readInt32LE(at + 8),
			full: bytes.readDoubleLE(at + 12),
		};
	}
}
