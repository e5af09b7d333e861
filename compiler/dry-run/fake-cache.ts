/** A private response cache for dry runs, initially empty. */
import type { Body } from '../exchange/body.ts';
import type {
	CachedHead,
	CachedResponse,
	CacheWriter,
	FetchTicket,
	ResponseCache,
} from '../exchange/response-cache.ts';

const MAX_BODY_BYTES = 16 * 1024 * 1024;

interface StoredResponse extends CachedResponse {
	readonly head: CachedHead;
	readonly body: Uint8Array;
}

/** Stores each response under its key, in memory. */
export class FakeCache implements ResponseCache {
	readonly maxBodyBytes = MAX_BODY_BYTES;
	#responsesByKey = new Map<string, StoredResponse[]>();
	#invalidationCount = 0;

	/** Removes all responses. */
	reset(): void {
		this.#responsesByKey = new Map();
	}

	find(key: string): readonly CachedResponse[] {
		return this.#responsesByKey.get(key) ?? [];
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
		return this.#invalidationCount;
	}

	store(
		head: CachedHead,
		_length: number | undefined,
		maxBytes: number,
		knownInvalidationCount: number,
	): CacheWriter | undefined {
		if (knownInvalidationCount !== this.#invalidationCount) return undefined;
		const chunks: Uint8Array[] = [];
		let writtenBytes = 0;
		let isClosed = false;
		return {
			write: bytes => {
				writtenBytes += bytes.byteLength;
				if (writtenBytes > maxBytes) isClosed = true;
				if (!isClosed) chunks.push(bytes.slice());
				return !isClosed;
			},
			commit: () => {
				if (isClosed) return false;
				isClosed = true;
				const selectingKey = head.selecting.join('\n');
				const otherResponses = (this.#responsesByKey.get(head.key) ?? []).filter(
					storedResponse => storedResponse.head.selecting.join('\n') !== selectingKey,
				);
				this.#responsesByKey.set(head.key, [
					...otherResponses,
					{ head, length: writtenBytes, body: Buffer.concat(chunks) },
				]);
				return true;
			},
			abandon: () => {
				isClosed = true;
			},
		};
	}

	refresh(response: CachedResponse, head: CachedHead): CachedResponse {
		const refreshed: StoredResponse = { ...(response as StoredResponse), head };
		const responses = this.#responsesByKey.get(head.key) ?? [];
		const index = responses.indexOf(response as StoredResponse);
		if (index !== -1) responses[index] = refreshed;
		return refreshed;
	}

	remove(response: CachedResponse): void {
		const { key } = response.head;
		const otherResponses = (this.#responsesByKey.get(key) ?? []).filter(one => one !== response);
		this.#responsesByKey.set(key, otherResponses);
	}

	invalidate(host: string, path: string, query: string | undefined): void {
		this.#invalidationCount++;
		for (const [key, responses] of this.#responsesByKey) {
			const matchesUrl = ({ head }: StoredResponse): boolean =>
				head.host === host && head.path === path && head.query === query;
			this.#responsesByKey.set(
				key,
				responses.filter(response => !matchesUrl(response)),
			);
		}
	}

	joinFetch(): FetchTicket {
		return { ended: undefined, done: () => {} };
	}

	countEvent(): void {}
}
