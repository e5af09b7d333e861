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
const MAX_BODY_BYTES = 16 * 1024 * 1024;

interface StoredResponse extends CachedResponse {
	readonly head: CachedHead;
	readonly body: Uint8Array;
}

/** Stores responses in lists by key. */
export class FakeCache implements ResponseCache {
	readonly maxBodyBytes = MAX_BODY_BYTES;
	#responses = new Map<string, StoredResponse[]>();
	#invalidations = 0;

	/** Removes all responses. */
	reset(): void {
		this.#responses = new Map();
	}

	find(key: string): readonly CachedResponse[] {
		return this.#responses.get(key) ?? [];
	}

	body(response: CachedResponse, start: number, end: number): Body | undefined {
		return (response as StoredResponse).body.slice(start, end);
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

	store(head: CachedHead, _length: number | undefined, maxBytes: number, since: number): CacheWriter | undefined {
		if (since !== this.#invalidations) return undefined;
		const pieces: Uint8Array[] = [];
		let size = 0;
		let isClosed = false;
		return {
			write: bytes => {
				size += bytes.byteLength;
				if (size > maxBytes) isClosed = true;
				if (!isClosed) pieces.push(bytes.slice());
				return !isClosed;
			},
			commit: () => {
				if (isClosed) return false;
				isClosed = true;
				const selectingKey = head.selecting.join('\n');
				const otherResponses = (this.#responses.get(head.key) ?? []).filter(
					stored => stored.head.selecting.join('\n') !== selectingKey,
				);
				this.#responses.set(head.key, [...otherResponses, { head, length: size, body: Buffer.concat(pieces) }]);
				return true;
			},
			abandon: () => {
				isClosed = true;
			},
		};
	}

	refresh(response: CachedResponse, head: CachedHead): CachedResponse {
		const refreshed: StoredResponse = { ...(response as StoredResponse), head };
		const stored = this.#responses.get(head.key) ?? [];
		const index = stored.indexOf(response as StoredResponse);
		if (index !== -1) stored[index] = refreshed;
		return refreshed;
	}

	remove(response: CachedResponse): void {
		const { key } = response.head;
		const otherResponses = (this.#responses.get(key) ?? []).filter(one => one !== response);
		this.#responses.set(key, otherResponses);
	}

	invalidate(host: string, path: string, query: string | undefined): void {
		this.#invalidations++;
		for (const [key, stored] of this.#responses) {
			const matchesUrl = ({ head }: StoredResponse): boolean =>
				head.host === host && head.path === path && head.query === query;
			this.#responses.set(
				key,
				stored.filter(one => !matchesUrl(one)),
			);
		}
	}

	joinFetch(): FetchTicket {
		return { ended: undefined, done: () => {} };
	}

	countEvent(): void {}
}
