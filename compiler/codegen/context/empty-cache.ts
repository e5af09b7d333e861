/** A response cache that stores nothing, for handler graphs that are built but not served. */
import type { Body } from '../../exchange/body.ts';
import type {
	CachedHead,
	CachedResponse,
	CacheWriter,
	FetchTicket,
	ResponseCache,
} from '../../exchange/response-cache.ts';

export class EmptyCache implements ResponseCache {
	readonly maxBodyBytes = 0;

	find(): readonly CachedResponse[] {
		return [];
	}

	body(): Body | undefined {
		return undefined;
	}

	loadFromDisk(): undefined {
		return undefined;
	}

	pin(): (() => void) | undefined {
		return undefined;
	}

	urlEpoch(): number {
		return 0;
	}

	store(): CacheWriter | undefined {
		return undefined;
	}

	refresh(response: CachedResponse, head: CachedHead): CachedResponse {
		return { head, length: response.length };
	}

	remove(): void {}

	invalidate(): void {}

	joinFetch(): FetchTicket {
		return { ended: undefined, done: () => {} };
	}

	countEvent(): void {}
}
