/** One name whose certificate is looked after: what it has, when something is due, what went wrong. */
import type { AutomationPolicy } from '../../compiler/tls/certificate-plan.ts';
import type { PublishedCertificate } from '../tls/certificate-feed.ts';
import { type KeyType, keyTypeOf } from './certificate-keys.ts';
import type { CertificateRecord } from './certificate-records.ts';
import type { Issuer } from './issuer.ts';
import { RENEWAL_RATIO, renewalTime } from './renewal-times.ts';
import type { StapledCertificate } from './status-stapler.ts';

/** A policy with its issuers made. */
export interface ReadyPolicy {
	readonly settings: AutomationPolicy;
	/** Of the settings without the subjects, and of its issuers: what makes two policies the same for one name. */
	readonly key: string;
	readonly issuers: readonly Issuer[];
}

/** A name that is looked after. */
export class ManagedCertificate implements StapledCertificate {
	readonly name: string;
	readonly policy: ReadyPolicy;
	readonly keyType: KeyType;
	/** What is served; it may have expired. */
	record: CertificateRecord | undefined = undefined;
	/** DER of the OCSP response that is stapled. */
	ocsp: Uint8Array | undefined = undefined;
	/** True once the store has been looked at. */
	loaded = false;
	/** True when the document wants it no more: what is under way for it comes to nothing. */
	gone = false;
	/** Whether the sink has it. */
	published = false;
	/** When to renew, in milliseconds since the epoch. */
	renewAt = 0;
	/** Not tried before this time. */
	attemptAt = 0;
	/** When to ask the issuer for its advice, and the OCSP responder for the status. */
	adviseAt = 0;
	statusAt = 0;
	statusFailures = 0;
	/** Failures in a row, and when the first of them was. */
	failures = 0;
	failingSince = 0;
	/** Why the last attempt failed; undefined when none did. */
	lastError: string | undefined = undefined;
	/** An order that is under way. */
	work: { readonly done: Promise<void>; readonly abort: AbortController } | undefined = undefined;

	constructor(name: string, policy: ReadyPolicy) {
		this.name = name;
		this.policy = policy;
		this.keyType = keyTypeOf(policy.settings.key_type) ?? 'p256';
	}

	/** What the sink calls it; undefined while there is nothing. */
	get id(): string | undefined {
		return this.record && `${this.record.issuer}/${this.name}`;
	}

	/** The issuer that gave what there is. */
	get issuer(): Issuer | undefined {
		return this.policy.issuers.find(({ storeName }) => storeName === this.record?.issuer);
	}

	/** For the sink; undefined while there is nothing. */
	get publication(): PublishedCertificate | undefined {
		if (!this.record) return undefined;
		const { chain, privateKey } = this.record;
		return { id: this.id!, names: [this.name], chain, key: privateKey, ...(this.ocsp ? { ocsp: this.ocsp } : {}) };
	}

	/** Takes a certificate; its renewal is counted from its own life. */
	take(record: CertificateRecord, processRatio: number | undefined): void {
		if (record.fingerprint !== this.record?.fingerprint) {
			this.ocsp = undefined;
			this.statusAt = 0;
			this.statusFailures = 0;
			this.adviseAt = 0;
		}
		this.record = record;
		const ratio = this.policy.settings.renewal_window_ratio ?? processRatio ?? RENEWAL_RATIO;
		this.renewAt = renewalTime(record, ratio, Math.random());
	}

	revoked(): string {
		this.renewAt = 0;
		return 'another is ordered';
	}

	/** Whether an order should begin now. */
	isDue(now: number): boolean {
		return this.loaded && !this.gone && !this.work && now >= this.attemptAt && (!this.record || now >= this.renewAt);
	}
}
