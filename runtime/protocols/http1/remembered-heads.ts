/** Caches for parts of messages that repeat: heads of an upstream's responses, and field lines of requests. */
import { HeaderList, isSameFieldName } from '../../../compiler/exchange/header-list.ts';
import type { ResponseHead } from './client-head.ts';
import { hasExactFields } from './response-head.ts';

/** Maximum bytes of a cached head, or of the cached lines of a field list. */
const MAX_CACHED_BYTES = 2048;

const LF = 10;

/** Number of cached heads, and number of cached field lists. */
const SLOT_COUNT = 64;

/** A cached response head, which was received twice on a connection. */
export interface CachedHead {
	readonly text: string;
	/** Bytes of the head, including the empty line. */
	readonly bytes: Buffer;
	readonly head: ResponseHead;
	readonly items: readonly string[];
}

/**
 * The response heads cached for all connections of a pool. Each head exists only once, so that strings derived from its fields
 * can be looked up by identity instead of by their characters.
 */
export class CachedHeads {
	readonly #slots: (CachedHead | undefined)[] = new Array(SLOT_COUNT).fill(undefined);

	/** Returns the cached copy of a head, which is added if it is new. `text` is at `start` of `data`, followed by an empty line. */
	intern(text: string, data: Buffer, start: number, head: ResponseHead): CachedHead {
		const slotIndex = text.length % SLOT_COUNT;
		const cached = this.#slots[slotIndex];
		if (cached?.text === text) return cached;
		const items: string[] = [];
		for (let i = 0, { headers } = head; i < headers.size; i++)
			items.push(flatCopy(headers.nameAt(i)), flatCopy(headers.valueAt(i)));
		const newHead = { text, bytes: Buffer.from(data.subarray(start, start + text.length + 2)), head, items };
		this.#slots[slotIndex] = newHead;
		return newHead;
	}
}

/** Copies a substring. A substring that refers to a longer string is slower to compare and to write. */
function flatCopy(text: string): string {
	return Buffer.from(text, 'latin1').toString('latin1');
}

/** Cache of a connection's last response head. A head is cached once it has been received twice. */
export class LastHead {
	readonly #heads: CachedHeads;
	#lastText = '';
	#cachedHead: CachedHead | undefined = undefined;

	constructor(heads: CachedHeads) {
		this.#heads = heads;
	}

	/** Size, in bytes, of the head that `find` last returned, including its empty line. */
	get sizeBytes(): number {
		return this.#cachedHead?.bytes.length ?? 0;
	}

	/** Returns the head at `start` if it is the cached one. The caller may modify its fields. */
	find(data: Buffer, start: number, end: number): ResponseHead | undefined {
		const cached = this.#cachedHead;
		if (cached === undefined) return undefined;
		const { bytes, items } = cached;
		const headEnd = start + bytes.length;
		if (headEnd > end || data[headEnd - 1] !== LF || data.compare(bytes, 0, bytes.length, start, headEnd) !== 0) {
			this.#cachedHead = undefined;
			return undefined;
		}
		const { protocol, status, reason, framing, length, persistent, connection } = cached.head;
		return {
			protocol,
			status,
			reason,
			headers: new HeaderList(items.slice()),
			framing,
			length,
			persistent,
			connection,
		};
	}

	/** Must be called for a final head that `find` did not return. `text` is at `start` of `data`, followed by an empty line. */
	headReceived(text: string, data: Buffer, start: number, head: ResponseHead): void {
		if (text.length > MAX_CACHED_BYTES) return;
		if (text === this.#lastText) this.#cachedHead = this.#heads.intern(text, data, start, head);
		else this.#lastText = text;
	}
}

/** The field lines of a request, formatted. */
export interface FieldLines {
	readonly text: string;
	/** Whether the lines include `TE`. */
	readonly hasTe: boolean;
}

interface CachedLines extends FieldLines {
	readonly items: readonly string[];
	text: string;
	/** Whether the lines have been used for a second time. */
	isReused: boolean;
}

/** Cache of formatted field lines, because most clients repeat theirs. */
export class FieldLineCache {
	readonly #slots: (CachedLines | undefined)[] = new Array(SLOT_COUNT).fill(undefined);

	format(headers: HeaderList): FieldLines {
		const size = headers.size;
		if (size === 0) return { text: '', hasTe: false };
		const slotIndex = (size * 31 + headers.valueAt(0).length * 7 + headers.valueAt(size >> 1).length) % SLOT_COUNT;
		const cached = this.#slots[slotIndex];
		if (cached !== undefined && hasExactFields(headers, cached.items)) {
			if (!cached.isReused) {
				cached.isReused = true;
				// Converting to bytes and back flattens the string, so that its parts are not joined again at each use.
				cached.text = Buffer.from(cached.text, 'latin1').toString('latin1');
			}
			return cached;
		}
		const items: string[] = [];
		let text = '';
		let hasTe = false;
		for (let i = 0; i < size; i++) {
			const name = headers.nameAt(i);
			const value = headers.valueAt(i);
			items.push(name, value);
			text += `${name}: ${value}\r\n`;
			if (name.length === 2 && isSameFieldName(name, 'te')) hasTe = true;
		}
		const fieldLines = { text, hasTe, items, isReused: false };
		if (text.length <= MAX_CACHED_BYTES) this.#slots[slotIndex] = fieldLines;
		return fieldLines;
	}
}
