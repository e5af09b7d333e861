/** A response cache that stores nothing, for handler graphs that are built but not served. */
import type { Body } from './body.ts';
import type { CachedHead, CachedResponse, CacheWriter, FetchTicket, ResponseCache } from './response-cache.ts';

/** Rejects every response and never contains one. */
export class EmptyCache implements ResponseCache {
	readonly largest = 0;

	find(): readonly CachedResponse[] {
		return [];
	}

	body(): Body | undefined {
		return undefined;
	}

	recall(): undefined {
		return undefined;
	}

	hold(): (() => void) | undefined {
		return undefined;
	}

	moment(): number {
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

	turn(): FetchTicket {
		return { ended: undefined, done: () => {} };
	}

	count(): void {}
}
