/** OCSP stapling (RFC 6960): keeps responses fresh for certificates that name an OCSP responder. */
import type { Settings } from '../../compiler/document/document.ts';
import { type Store, toKeySegment } from '../storage/store.ts';
import { LabelledCounter } from './certificate-metrics.ts';
import type { CertificateRecord } from './certificate-records.ts';
import type { ManagerLog } from './manager-log.ts';
import { WorkQueue } from './work-queue.ts';

/** The folder of OCSP responses in the store. */
export const OCSP_RESPONSES_FOLDER = 'ocsp';
/** Default milliseconds between two checks of a response. */
const DEFAULT_INTERVAL_MS = 3_600_000;

/** A served certificate, managed or from a file, with its OCSP response. */
export interface StapledCertificate {
	/** The name in log entries. */
	readonly name: string;
	/** The current certificate, if there is one. */
	readonly record: Pick<CertificateRecord, 'name' | 'chain' | 'fingerprint' | 'hasResponder'> | undefined;
	/** The stapled response in DER. */
	ocsp: Uint8Array | undefined;
	/** Time at which to ask the responder, in milliseconds since the epoch. */
	statusCheckAt: number;
	/** Number of consecutive failures without any usable response. */
	statusFailures: number;
	/** True if the certificate is no longer served. */
	readonly isDropped: boolean;
	/** Called when the issuer has revoked the certificate. Returns what happens next, for the log. */
	onRevoked(): string;
}

/** Returns the store key of a response. */
export function statusKey({ name, fingerprint }: Pick<CertificateRecord, 'name' | 'fingerprint'>): string {
	return `${OCSP_RESPONSES_FOLDER}/${toKeySegment(name)}-${fingerprint.slice(0, 16)}`;
}

/** Dependencies of {@link StatusStapler}. */
export interface StaplerDeps<Certificate extends StapledCertificate> {
	readonly log: ManagerLog;
	readonly now: () => number;
	readonly store: () => Store | Promise<Store>;
	/** Publishes a certificate with its new response to threads. */
	readonly publish: (certificate: Certificate) => void;
	/** Called after a refresh of a response, because its next refresh may be due earlier than the next periodic check. */
	readonly wake?: () => void;
}

/** Keeps the OCSP responses of all certificates fresh. Failures are retried later and never affect serving. */
export class StatusStapler<Certificate extends StapledCertificate> {
	/** OCSP fetches by result. */
	readonly fetchCounter: LabelledCounter = new LabelledCounter();
	readonly #deps: StaplerDeps<Certificate>;
	readonly #refreshQueue = new WorkQueue(8);
	#isEnabled = true;
	#intervalMs = DEFAULT_INTERVAL_MS;

	constructor(deps: StaplerDeps<Certificate>) {
		this.#deps = deps;
	}

	/** Applies `ocsp_stapling` and `ocsp_interval` of the active configuration. */
	configure(settings: Settings): void {
		this.#isEnabled = settings.ocsp_stapling !== false;
		this.#intervalMs = (settings.ocsp_interval as number | undefined) ?? DEFAULT_INTERVAL_MS;
	}

	/**
	 * Refreshes a certificate's response if it is due. Returns the time at which it is due next, in milliseconds since the epoch.
	 */
	refreshIfDue(certificate: Certificate): number {
		if (!certificate.record?.hasResponder) return Number.POSITIVE_INFINITY;
		if (!this.#isEnabled) {
			// The response is no longer refreshed, so it is removed: otherwise it would still be stapled after its expiry.
			if (certificate.ocsp) {
				certificate.ocsp = undefined;
				certificate.statusCheckAt = 0;
				this.#deps.publish(certificate);
			}
			return Number.POSITIVE_INFINITY;
		}
		if (this.#deps.now() >= certificate.statusCheckAt) void this.refresh(certificate);
		return certificate.statusCheckAt;
	}

	/** Refreshes a certificate's response now, from the store if the response there is still fresh. Never rejects. */
	async refresh(certificate: Certificate): Promise<void> {
		certificate.statusCheckAt = this.#deps.now() + this.#intervalMs;
		try {
			await this.#refreshQueue.run(async () => {
				const { refreshStatus } = await import('./certificate-status.ts');
				await refreshStatus(certificate, this.#deps, this.fetchCounter);
			});
		} catch (error) {
			const cause = error instanceof Error ? error.message : String(error);
			this.#deps.log('error', 'tls.ocsp', 'stapling failed unexpectedly', { name: certificate.name, cause });
		}
		this.#deps.wake?.();
	}

	/** Removes the response of a replaced certificate from the store. Never rejects. */
	async forgetResponse({ record }: StapledCertificate): Promise<void> {
		try {
			if (record?.hasResponder) await (await this.#deps.store()).remove(statusKey(record));
		} catch (error) {
			const cause = error instanceof Error ? error.message : String(error);
			this.#deps.log('debug', 'tls.ocsp', 'an OCSP response could not be removed from the store', {
				name: record?.name,
				cause,
			});
		}
	}
}
