/** A private response cache for dry runs, initially empty. */
import type { Body } from '../exchange/body.ts';
import type {
	CachedHead,
	CachedResponse,
	CacheWriter,
	FetchTicket,
	ResponseCache,
} from '../exchange/response-cache.ts';

/** Maximum bytes of a stored body. */
const LARGEST = 16 * 1024 * 1024;

interface Kept extends CachedResponse {
	readonly head: CachedHead;
	readonly body: Uint8Array;
}

/** Stores responses in lists by key. */
export class FakeCache implements ResponseCache {
	readonly maxBodyBytes = LARGEST;
	#kept = new Map<string, Kept[]>();
	#invalidations = 0;

	/** Removes all responses. */
	reset(): void {
		this.#kept = new Map();
	}

	find(key: string): readonly CachedResponse[] {
		return this.#kept.get(key) ?? [];
	}

	body(response: CachedResponse, start: number, end: number): Body | undefined {
		return (response as Kept).body.slice(start, end);
	}

	loadFromDisk(): undefined {
		return undefined;
	}

	pin(): (() => void) | undefined {
		return () => {};
	}

	urlEpoch(): number {
		return this.#invalidations;
	}

	store(head: CachedHead, _length: number | undefined, most: number, since: number): CacheWriter | undefined {
		if (since !== this.#invalidations) return undefined;
		const pieces: Uint8Array[] = [];
		let size = 0;
		let over = false;
		return {
			write: bytes => {
				size += bytes.byteLength;
				if (size > most) over = true;
				if (!over) pieces.push(bytes.slice());
				return !over;
			},
			commit: () => {
				if (over) return false;
				over = true;
				const selecting = head.selecting.join('\n');
				const others = (this.#kept.get(head.key) ?? []).filter(one => one.head.selecting.join('\n') !== selecting);
				this.#kept.set(head.key, [...others, { head, length: size, body: Buffer.concat(pieces) }]);
				return true;
			},
			abandon: () => {
				over = true;
			},
		};
	}

	refresh(response: CachedResponse, head: CachedHead): CachedResponse {
		const refreshed: Kept = { ...(response as Kept), head };
		const all = this.#kept.get(head.key) ?? [];
		const at = all.indexOf(response as Kept);
		if (at !== -1) all[at] = refreshed;
		return refreshed;
	}

	remove(response: CachedResponse): void {
		const { key } = response.head;
		const others = (this.#kept.get(key) ?? []).filter(one => one !== response);
		this.#kept.set(key, others);
	}

	invalidate(host: string, path: string, query: string | undefined): void {
		this.#invalidations++;
		for (const [key, all] of this.#kept) {
			const isOf = ({ head }: Kept): boolean => head.host === host && head.path === path && head.query === query;
			this.#kept.set(
				key,
				all.filter(one => !isOf(one)),
			);
		}
	}

	joinFetch(): FetchTicket {
		return { ended: undefined, done: () => {} };
	}

	countEvent(): void {}
}
