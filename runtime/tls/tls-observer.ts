/** Counts the handshakes of one thread, by version, resumption, and reason of failure. */
import { TLS_FAMILIES } from '../metrics/families.ts';
import type { SeriesPages, SeriesPlace } from '../metrics/series-pages.ts';

/** The counters of a thread's handshakes. */
export class TlsObserver {
	readonly #pages: SeriesPages;
	readonly #completedPlaceByVersion = new Map<string, SeriesPlace>();
	readonly #resumedPlaceByVersion = new Map<string, SeriesPlace>();
	readonly #failedPlaceByReason = new Map<string, SeriesPlace>();

	constructor(pages: SeriesPages) {
		this.#pages = pages;
	}

	/** Counts a successful handshake. */
	countCompleted(version: string, resumed: boolean): void {
		const place =
			this.#completedPlaceByVersion.get(version) ??
			this.#allocate(TLS_FAMILIES.handshakes.name, { version, result: 'ok' });
		this.#completedPlaceByVersion.set(version, place);
		place.page[place.slot]!++;
		if (!resumed) return;
		const resumedPlace =
			this.#resumedPlaceByVersion.get(version) ?? this.#allocate(TLS_FAMILIES.resumptions.name, { version });
		this.#resumedPlaceByVersion.set(version, resumedPlace);
		resumedPlace.page[resumedPlace.slot]!++;
	}

	/** Counts a failed handshake. Each distinct reason becomes a metric label, so there must be only a few. */
	countFailed(reason: string): void {
		const place =
			this.#failedPlaceByReason.get(reason) ??
			this.#allocate(TLS_FAMILIES.handshakes.name, { version: '', result: reason });
		this.#failedPlaceByReason.set(reason, place);
		place.page[place.slot]!++;
	}

	#allocate(family: string, labels: { readonly [name: string]: string }): SeriesPlace {
		return this.#pages.allocate(family, labels, 1);
	}
}
