/** OCSP responses (RFC 6960) for certificates that name a responder: fetched, checked, kept in the store, given to the threads. */
import type { Settings } from '../../compiler/document/document.ts';
import type { Store } from '../storage/store.ts';
import { LabelledCounter } from './certificate-metrics.ts';
import type { ManagedCertificate } from './managed-certificate.ts';
import type { ManagerLog } from './manager-log.ts';
import { WorkQueue } from './work-queue.ts';

/** Folder of the responses in the store. */
export const STATUSES = 'ocsp';
/** Milliseconds between two looks at a response, if nothing is said. */
const STATUS_INTERVAL = 3_600_000;

/** What it finds around it. */
export interface StaplerSurroundings {
	readonly log: ManagerLog;
	readonly now: () => number;
	readonly store: () => Store;
	/** Gives the threads a certificate with its new response. */
	readonly publish: (entry: ManagedCertificate) => void;
}

/** Keeps the responses of all certificates fresh. What fails is tried again later and breaks nothing. */
export class StatusStapler {
	/** Fetched responses by result. */
	readonly fetched: LabelledCounter = new LabelledCounter();
	readonly #around: StaplerSurroundings;
	readonly #queue = new WorkQueue(8);
	#on = true;
	#interval = STATUS_INTERVAL;

	constructor(surroundings: StaplerSurroundings) {
		this.#around = surroundings;
	}

	/** Takes `ocsp_stapling` and `ocsp_interval` of the document that is served. */
	configure(settings: Settings): void {
		this.#on = settings.ocsp_stapling !== false;
		this.#interval = (settings.ocsp_interval as number | undefined) ?? STATUS_INTERVAL;
	}

	/** Fetches the certificate's status if that is due. */
	look(entry: ManagedCertificate): void {
		const now = this.#around.now();
		if (!this.#on || !entry.record?.hasResponder || now < entry.statusAt) return;
		entry.statusAt = now + this.#interval;
		void this.#queue
			.run(async () => {
				const { refreshStatus } = await import('./certificate-status.ts');
				await refreshStatus(entry, this.#around, this.fetched);
			})
			.catch(error => {
				const cause = error instanceof Error ? error.message : String(error);
				this.#around.log('error', 'tls.ocsp', 'stapling failed unexpectedly', { name: entry.name, cause });
			});
	}
}
