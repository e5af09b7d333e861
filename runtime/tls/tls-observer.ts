/** Counts handshakes of one thread: by version, whether resumed, and why those failed that did. */
import { TLS_FAMILIES } from '../metrics/families.ts';
import type { SeriesPages, SeriesPlace } from '../metrics/series-pages.ts';

/** Counters of handshakes. */
export class TlsObserver {
	readonly #pages: SeriesPages;
	readonly #places = new Map<string, SeriesPlace>();

	constructor(pages: SeriesPages) {
		this.#pages = pages;
	}

	/** A handshake that ended well. */
	shaken(version: string, resumed: boolean): void {
		this.#count(TLS_FAMILIES.handshakes.name, { version, result: 'ok' });
		if (resumed) this.#count(TLS_FAMILIES.resumptions.name, { version });
	}

	/** One that did not; the reasons are few. */
	failed(reason: string): void {
		this.#count(TLS_FAMILIES.handshakes.name, { version: '', result: reason });
	}

	#count(family: string, labels: { readonly [name: string]: string }): void {
		const key = `${family} ${Object.values(labels).join(' ')}`;
		let place = this.#places.get(key);
		if (!place) {
			place = this.#pages.allocate(family, labels, 1);
			this.#places.set(key, place);
		}
		place.page[place.slot]!++;
	}
}
