/** Counts the handshakes of one thread, by version, resumption, and reason of failure. */
import { TLS_FAMILIES } from '../metrics/families.ts';
import type { SeriesPages, SeriesPlace } from '../metrics/series-pages.ts';

/** Counts handshakes. */
export class TlsObserver {
	readonly #pages: SeriesPages;
	readonly #completedPlaces = new Map<string, SeriesPlace>();
	readonly #resumedPlaces = new Map<string, SeriesPlace>();
	readonly #failedPlaces = new Map<string, SeriesPlace>();

	constructor(pages: SeriesPages) {
		this.#pages = pages;
	}

	/** Counts a successful handshake. */
	completed(version: string, resumed: boolean): void {
		const place =
			this.#completedPlaces.get(version) ?? this.#allocate(TLS_FAMILIES.handshakes.name, { version, result: 'ok' });
		this.#completedPlaces.set(version, place);
		place.page[place.slot]!++;
		if (!resumed) return;
		const resumedPlace = this.#resumedPlaces.get(version) ?? this.#allocate(TLS_FAMILIES.resumptions.name, { version });
		this.#resumedPlaces.set(version, resumedPlace);
		resumedPlace.page[resumedPlace.slot]!++;
	}

	/** Counts a failed handshake. Each distinct reason becomes a metric label, so there must be only a few. */
	failed(reason: string): void {
		const place =
			this.#failedPlaces.get(reason) ?? this.#allocate(TLS_FAMILIES.handshakes.name, { version: '', result: reason });
		this.#failedPlaces.set(reason, place);
		place.page[place.slot]!++;
	}

	#allocate(family: string, labels: { readonly [name: string]: string }): SeriesPlace {
		return this.#pages.allocate(family, labels, 1);
	}
}
