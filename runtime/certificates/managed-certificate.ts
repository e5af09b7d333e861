/** The state of one managed name: its certificate, the times of its next renewal and checks, and past failures. */
import type { AutomationPolicy } from '../../compiler/codegen/plan/certificate-plan.ts';
import type { PublishedCertificate } from './certificate-feed.ts';
import { type KeyType, keyTypeOf } from './certificate-keys.ts';
import type { CertificateRecord } from './certificate-records.ts';
import type { Issuer } from './issuer.ts';
import { DEFAULT_RENEWAL_RATIO, renewalTime } from './renewal-times.ts';
import type { StapledCertificate } from './status-stapler.ts';

/** An automation policy with the issuers that its settings name. */
export interface ReadyPolicy {
	readonly settings: AutomationPolicy;
	/** A text made from the issuers and all settings except the subjects. Policies with equal keys treat a name in the same way. */
	readonly key: string;
	readonly issuers: readonly Issuer[];
}

/** A name whose certificate is obtained and renewed automatically. */
export class ManagedCertificate implements StapledCertificate {
	readonly name: string;
	readonly policy: ReadyPolicy;
	readonly keyType: KeyType;
	/** The current certificate, which may have expired. */
	record: CertificateRecord | undefined = undefined;
	/** The stapled OCSP response in DER. */
	ocsp: Uint8Array | undefined = undefined;
	/** True once the store has been searched for a certificate of this name. */
	isLoaded = false;
	/** True once no configuration needs the certificate any more. Its order in progress is then canceled. */
	isDropped = false;
	/** The ID under which the certificate has been published to threads; undefined if it has not been. */
	publishedId: string | undefined = undefined;
	/** Time at which to renew the certificate, in milliseconds since the epoch. */
	renewAt = 0;
	/** Earliest time of the next attempt, in milliseconds since the epoch. */
	nextAttemptAt = 0;
	/** Time at which to ask the issuer for renewal information, in milliseconds since the epoch. */
	adviseAt = 0;
	/** Time at which to ask the OCSP responder for the status, in milliseconds since the epoch. */
	statusCheckAt = 0;
	statusFailures = 0;
	/** Number of consecutive failures to obtain the certificate. */
	failures = 0;
	/** Time of the first of the consecutive failures, in milliseconds since the epoch. */
	failingSince = 0;
	/** Why the last attempt failed; undefined if it succeeded. */
	lastError: string | undefined = undefined;
	/** The order in progress; undefined if there is none. */
	currentOrder: { readonly done: Promise<void>; readonly abort: AbortController } | undefined = undefined;

	constructor(name: string, policy: ReadyPolicy) {
		this.name = name;
		this.policy = policy;
		this.keyType = keyTypeOf(policy.settings.key_type) ?? 'p256';
	}

	/** The ID under which the certificate is published; undefined if there is no certificate. */
	get id(): string | undefined {
		return this.record && `${this.record.issuer}/${this.name}`;
	}

	get isPublished(): boolean {
		return this.publishedId !== undefined;
	}

	/** The issuer of the current certificate. */
	get issuer(): Issuer | undefined {
		return this.policy.issuers.find(({ storeName }) => storeName === this.record?.issuer);
	}

	/** The certificate in the form that threads serve; undefined if there is no certificate. */
	get publication(): PublishedCertificate | undefined {
		if (!this.record) return undefined;
		const { chain, privateKey } = this.record;
		return { id: this.id!, names: [this.name], chain, key: privateKey, ...(this.ocsp ? { ocsp: this.ocsp } : {}) };
	}

	/**
	 * Sets the current certificate and computes the time of its renewal.
	 * @param globalRatio The renewal ratio to use if the policy does not set one.
	 */
	setRecord(record: CertificateRecord, globalRatio: number | undefined): void {
		if (record.fingerprint !== this.record?.fingerprint) {
			this.ocsp = undefined;
			this.statusCheckAt = 0;
			this.statusFailures = 0;
			this.adviseAt = 0;
		}
		this.record = record;
		const ratio = this.policy.settings.renewal_window_ratio ?? globalRatio ?? DEFAULT_RENEWAL_RATIO;
		this.renewAt = renewalTime(record, ratio, Math.random());
	}

	onRevoked(): string {
		this.renewAt = 0;
		return 'a new one is being ordered';
	}

	/** Reports whether an order for the certificate should start now. */
	isDue(now: number): boolean {
		return (
			this.isLoaded &&
			!this.isDropped &&
			!this.currentOrder &&
			now >= this.nextAttemptAt &&
			(!this.record || now >= this.renewAt)
		);
	}
}
