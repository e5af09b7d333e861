/** Counts the handshakes of one thread, by version, resumption, and reason of failure. */
import { TLS_FAMILIES } from '../metrics/families.ts';
import type { SeriesPages, SeriesPlace } from '../metrics/series-pages.ts';

/** Counts handshakes. */
export class TlsObserver {
	readonly #pages: SeriesPages;
	readonly #done = new Map<string, SeriesPlace>();
	readonly #resumed = new Map<string, SeriesPlace>();
	readonly #failed = new Map<string, SeriesPlace>();

	constructor(pages: SeriesPages) {
		this.#pages = pages;
	}

	/** Counts a successful handshake. */
	completed(version: string, resumed: boolean): void {
		const done = this.#done.get(version) ?? this.#allocate(TLS_FAMILIES.handshakes.name, { version, result: 'ok' });
		this.#done.set(version, done);
		done.page[done.slot]!++;
		if (!resumed) return;
		const again = this.#resumed.get(version) ?? this.#allocate(TLS_FAMILIES.resumptions.name, { version });
		this.#resumed.set(version, again);
		again.page[again.slot]!++;
	}

	/** Counts a failed handshake. Each distinct reason becomes a metric label, so there must be only a few. */
	failed(reason: string): void {
		const place =
			this.#failed.get(reason) ?? this.#allocate(TLS_FAMILIES.handshakes.name, { version: '', result: reason });
		this.#failed.set(reason, place);
		place.page[place.slot]!++;
	}

	#allocate(family: string, labels: { readonly [name: string]: string }): SeriesPlace {
		return this.#pages.allocate(family, labels, 1);
	}
}
