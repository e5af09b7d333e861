/** OCSP responses (RFC 6960) for certificates that name a responder: fetched, checked, kept in the store, given to the threads. */
import type { Settings } from '../../compiler/document/document.ts';
import { keySegment, type Store } from '../storage/store.ts';
import { LabelledCounter } from './certificate-metrics.ts';
import type { CertificateRecord } from './certificate-records.ts';
import type { ManagerLog } from './manager-log.ts';
import { WorkQueue } from './work-queue.ts';

/** Folder of the responses in the store. */
export const STATUSES = 'ocsp';
/** Milliseconds between two looks at a response, if nothing is said. */
const STATUS_INTERVAL = 3_600_000;

/** A certificate that is served, managed or from a file, and its response. */
export interface StapledCertificate {
	/** For the log. */
	readonly name: string;
	/** What is served; undefined while there is nothing. */
	readonly record: Pick<CertificateRecord, 'name' | 'chain' | 'fingerprint' | 'hasResponder'> | undefined;
	/** DER of the response that is stapled. */
	ocsp: Uint8Array | undefined;
	/** When to ask the responder, in milliseconds since the epoch. */
	statusAt: number;
	/** Times in a row that there was no response to be had, and none left. */
	statusFailures: number;
	/** True when it is not served any more. */
	readonly gone: boolean;
	/** Its issuer has revoked it. Returns what happens next, for the log: `another is ordered`. */
	revoked(): string;
}

/** Key of a response in the store. */
export function statusKey({ name, fingerprint }: Pick<CertificateRecord, 'name' | 'fingerprint'>): string {
	return `${STATUSES}/${keySegment(name)}-${fingerprint.slice(0, 16)}`;
}

/** What it finds around it. */
export interface StaplerSurroundings<Certificate extends StapledCertificate> {
	readonly log: ManagerLog;
	readonly now: () => number;
	readonly store: () => Store | Promise<Store>;
	/** Gives the threads a certificate with its new response. */
	readonly publish: (certificate: Certificate) => void;
	/** Called when a look has ended: the next may be due earlier than was thought. */
	readonly wake?: () => void;
}

/** Keeps the responses of all certificates fresh. What fails is tried again later and breaks nothing. */
export class StatusStapler<Certificate extends StapledCertificate> {
	/** Fetched responses by result. */
	readonly fetched: LabelledCounter = new LabelledCounter();
	readonly #around: StaplerSurroundings<Certificate>;
	readonly #queue = new WorkQueue(8);
	#on = true;
	#interval = STATUS_INTERVAL;

	constructor(surroundings: StaplerSurroundings<Certificate>) {
		this.#around = surroundings;
	}

	/** Takes `ocsp_stapling` and `ocsp_interval` of the document that is served. */
	configure(settings: Settings): void {
		this.#on = settings.ocsp_stapling !== false;
		this.#interval = (settings.ocsp_interval as number | undefined) ?? STATUS_INTERVAL;
	}

	/** Fetches the certificate's status if that is due. Returns when it is due next, in milliseconds since the epoch. */
	look(certificate: Certificate): number {
		if (!certificate.record?.hasResponder) return Number.POSITIVE_INFINITY;
		if (!this.#on) {
			// A response that nobody refreshes would be stapled until after its end, and clients refuse such.
			if (certificate.ocsp) {
				certificate.ocsp = undefined;
				certificate.statusAt = 0;
				this.#around.publish(certificate);
			}
			return Number.POSITIVE_INFINITY;
		}
		if (this.#around.now() >= certificate.statusAt) void this.refresh(certificate);
		return certificate.statusAt;
	}

	/** Fetches the certificate's status now, unless the store has a fresh one. Never rejects. */
	async refresh(certificate: Certificate): Promise<void> {
		certificate.statusAt = this.#around.now() + this.#interval;
		try {
			await this.#queue.run(async () => {
				const { refreshStatus } = await import('./certificate-status.ts');
				await refreshStatus(certificate, this.#around, this.fetched);
			});
		} catch (error) {
			const cause = error instanceof Error ? error.message : String(error);
			this.#around.log('error', 'tls.ocsp', 'stapling failed unexpectedly', { name: certificate.name, cause });
		}
		this.#around.wake?.();
	}

	/** Removes the response of a certificate that has been replaced from the store. Never rejects. */
	async forget({ record }: StapledCertificate): Promise<void> {
		try {
			if (record?.hasResponder) await (await this.#around.store()).remove(statusKey(record));
		} catch (error) {
			const cause = error instanceof Error ? error.message : String(error);
			this.#around.log('debug', 'tls.ocsp', 'an OCSP response stays in the store', { name: record?.name, cause });
		}
	}
}
