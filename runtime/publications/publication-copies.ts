/** The encrypted publications that a machine can load again: from memory, from its disk or from Redis. */
import { ClusterError } from '../cluster/cluster-error.ts';
import { PublicationRefused } from '../cluster/publication.ts';
import { isSamePublication, type PublicationReference } from '../cluster/rollout-decision.ts';
import type { SharedRollout } from '../cluster/shared-rollout.ts';
import type { PublicationDisk } from './publication-disk.ts';
import type { StoredPublication } from './publication-folder.ts';

/** The copies that a machine has, and what it can read from Redis. */
export class PublicationCopies {
	readonly #rollouts: Pick<SharedRollout, 'readPublication'>;
	readonly #disk: PublicationDisk;
	/** The publication that this process has loaded most recently. */
	#loaded: StoredPublication | undefined;
	/** The last publication that proved good while this process served it. It is also stored on the disk. */
	#lastGood: StoredPublication | undefined;
	/**
	 * The publication that an earlier process has left on the disk. If Redis has lost its data since then, another publication may
	 * have the same number by now, so without an identity, this one is used only if Redis does not have a publication with its
	 * number.
	 */
	#earlierLastGood: StoredPublication | undefined;

	constructor(rollouts: Pick<SharedRollout, 'readPublication'>, disk: PublicationDisk) {
		this.#rollouts = rollouts;
		this.#disk = disk;
	}

	/** The last publication that proved good, in this process or an earlier one. */
	get lastGood(): StoredPublication | undefined {
		return this.#lastGood ?? this.#earlierLastGood;
	}

	/** Reads the publication that an earlier process has left on the disk. */
	async readDisk(): Promise<StoredPublication | undefined> {
		this.#earlierLastGood = await this.#disk.use(folder => folder.lastGood());
		return this.#earlierLastGood;
	}

	/** Notes which publication this process has loaded; undefined for the configuration in the machine's own file. */
	onLoaded(publication: StoredPublication | undefined): void {
		this.#loaded = publication;
	}

	/** Reports whether a publication proved good in this process, and is on the disk. */
	hasKept(publication: PublicationReference): boolean {
		return this.#lastGood !== undefined && isSamePublication(this.#lastGood, publication);
	}

	/** Writes a publication that has proved good to the disk. Its trial is then over. */
	async keep(publication: StoredPublication): Promise<void> {
		await this.#disk.use(async folder => {
			await folder.saveLastGood(publication);
			await folder.endTrial();
			this.#lastGood = publication;
		});
	}

	/** Returns an encrypted publication. Rejects with ClusterError and PublicationRefused. */
	async fetch(wanted: PublicationReference): Promise<Buffer> {
		const { number, identity } = wanted;
		for (const stored of [this.#loaded, this.#lastGood])
			if (stored && isSamePublication(stored, wanted)) return stored.sealed;
		const stored = this.#earlierLastGood;
		const earlier = stored && isSamePublication(stored, wanted) ? stored.sealed : undefined;
		if (earlier && identity !== undefined && stored?.identity === identity) return earlier;
		try {
			const sealed = await this.#rollouts.readPublication(number);
			if (sealed) return sealed;
		} catch (error) {
			if (!(error instanceof ClusterError && earlier)) throw error;
		}
		if (earlier) return earlier;
		throw new PublicationRefused('publication/missing', `Publication ${number} is no longer in Redis.`);
	}
}
