/** Certificates on demand: obtained when a client first asks for a name, with permission and within limits. */
import { isIP } from 'node:net';
import type { CertificateRequestedByClient, CertificateSink } from './certificate-feed.ts';
import type { CertificateKeeper } from './certificate-keeper.ts';
import type { CertificatePublisher } from './certificate-publisher.ts';
import { fetchFromManager, ManagerFailure } from './certificate-sources.ts';
import { ManagedCertificate, type ReadyPolicy } from './managed-certificate.ts';
import type { ManagerLog } from './manager-log.ts';
import { askPermission, type PermissionSettings } from './on-demand-permission.ts';

/** Maximum number of names for which certificates are obtained at a time. Clients that ask for further names are rejected. */
const MAX_PENDING_NAMES = 64;
/**
 * Maximum number of new names in {@link NEW_NAMES_WINDOW_MS} milliseconds, permitted or not, so that a client that scans names
 * cannot flood the permission endpoint or the issuer.
 */
const MAX_NEW_NAMES = 600;
const NEW_NAMES_WINDOW_MS = 60_000;
/** Maximum number of names whose certificates or failures are kept in memory. */
const MAX_ENTRIES = 20_000;
/** Maximum number of rejected names remembered. */
const MAX_REFUSALS = 10_000;
/** Milliseconds for which a rejected name is remembered. */
const REFUSAL_TTL_MS = 60_000;
/** Milliseconds between two attempts to renew a certificate, each of which asks for permission first. */
const RENEWAL_RETRY_MS = 3_600_000;
/** Milliseconds for which a name without a certificate is remembered after the next attempt for it is due. */
const FAILURE_TTL_MS = 3_600_000;
/** Milliseconds for which the certificate of a `get_certificate` manager is served before the manager is asked again. */
const SOURCE_TTL_MS = 600_000;
/** Minimum milliseconds until a certificate is checked that has just been loaded. */
const MIN_CHECK_DELAY_MS = 20;

/** Dependencies of {@link OnDemandCertificates}. */
export interface OnDemandDeps {
	readonly sink: CertificateSink;
	readonly publisher: CertificatePublisher;
	readonly log: ManagerLog;
	readonly now: () => number;
	readonly keeper: CertificateKeeper;
	/** Schedules a check of all certificates in `waitMs` milliseconds, unless an earlier one is scheduled. */
	readonly scheduleCheck: (waitMs: number) => void;
}

export class OnDemandCertificates {
	readonly #deps: OnDemandDeps;
	/** Certificates by name, and names for which no certificate could be obtained. */
	readonly #entries = new Map<string, ManagedCertificate>();
	/** Results of the calls of `obtain` that are in progress, by name. */
	readonly #pendingByName = new Map<string, Promise<boolean>>();
	/** Rejected names, oldest first, each with the time until which it is rejected. */
	readonly #refusedUntil = new Map<string, number>();
	/** IDs of certificates from `get_certificate` managers, each with the time until which it is served. */
	readonly #servedUntil = new Map<string, number>();
	#policies: readonly ReadyPolicy[] = [];
	#permission: PermissionSettings = {};
	#windowStart = 0;
	#newNameCount = 0;

	constructor(deps: OnDemandDeps) {
		this.#deps = deps;
	}

	/** Applies the policies of a new active configuration. `permission` is its option `on_demand_tls`. */
	applyPolicies(policies: readonly ReadyPolicy[], permission: unknown): void {
		this.#policies = policies.filter(
			({ settings }) => settings.on_demand === true || (settings.managers?.length ?? 0) > 0,
		);
		this.#permission = (permission ?? {}) as PermissionSettings;
		this.#refusedUntil.clear();
		for (const [name, entry] of this.#entries) {
			if (this.#policyFor(name)?.key !== entry.policy.key) this.#removeEntry(entry);
		}
	}

	/** Returns all certificates on demand. */
	entries(): IterableIterator<ManagedCertificate> {
		return this.#entries.values();
	}

	/** Obtains a certificate for a name. Resolves to false if none could be obtained. Never rejects. */
	obtain(question: CertificateRequestedByClient): Promise<boolean> {
		const { name } = question;
		const pendingObtain = this.#pendingByName.get(name);
		if (pendingObtain) return pendingObtain;
		const policy = this.#policyFor(name);
		if (!policy || !isValidName(name)) return Promise.resolve(false);
		const now = this.#deps.now();
		if ((this.#refusedUntil.get(name) ?? 0) > now) return Promise.resolve(false);
		if (this.#pendingByName.size >= MAX_PENDING_NAMES || !this.#admitNewName(now)) {
			return Promise.resolve(false);
		}
		const pendingResult = this.#obtain(question, policy)
			.catch(error => {
				const cause = error instanceof Error ? error.message : String(error);
				this.#deps.log('error', 'tls.on_demand', 'a certificate could not be obtained on demand', { name, cause });
				return false;
			})
			.then(isObtained => {
				this.#pendingByName.delete(name);
				this.#scheduleCheckOf(this.#entries.get(name));
				if (!isObtained) this.#refuseName(name);
				return isObtained;
			});
		this.#pendingByName.set(name, pendingResult);
		return pendingResult;
	}

	/**
	 * Renews a certificate if its name is still permitted; otherwise the certificate is served until it expires. Never rejects.
	 */
	async renew(entry: ManagedCertificate): Promise<void> {
		// A certificate that was never obtained is not renewed here: it is ordered again when a client asks for it.
		if (!entry.record) return;
		entry.nextAttemptAt = this.#deps.now() + RENEWAL_RETRY_MS;
		const { isAllowed, cause } = await askPermission(this.#permission, entry.policy.settings, entry.name);
		if (isAllowed) await this.#deps.keeper.startOrder(entry);
		else this.#deps.log('info', 'tls.on_demand', 'certificate not renewed', { name: entry.name, cause });
	}

	/**
	 * Drops expired certificates, and forgets names whose failure or rejection is old. Returns the milliseconds until the next
	 * certificate expires.
	 */
	removeExpired(): number {
		const now = this.#deps.now();
		let nextExpiry = Number.POSITIVE_INFINITY;
		for (const entry of this.#entries.values()) {
			const forgetAt = entry.record ? entry.record.notAfter : entry.nextAttemptAt + FAILURE_TTL_MS;
			if (forgetAt > now) nextExpiry = Math.min(nextExpiry, forgetAt);
			// Once the order or the lookup has ended, another check is made.
			else if (!entry.currentOrder && !this.#pendingByName.has(entry.name)) this.#removeEntry(entry);
		}
		const staleIds: string[] = [];
		for (const [id, until] of this.#servedUntil) {
			if (until <= now) staleIds.push(id);
			else nextExpiry = Math.min(nextExpiry, until);
		}
		for (const id of staleIds) this.#servedUntil.delete(id);
		if (staleIds.length > 0) this.#deps.sink.drop(staleIds);
		for (const [name, until] of this.#refusedUntil) if (until <= now) this.#refusedUntil.delete(name);
		return nextExpiry - now;
	}

	/** Schedules the renewal of a certificate that has just been loaded or obtained, and its removal if it is not renewed. */
	#scheduleCheckOf(entry: ManagedCertificate | undefined): void {
		if (!entry?.record) return;
		const dueAt = Math.min(Math.max(entry.renewAt, entry.nextAttemptAt), entry.record.notAfter);
		this.#deps.scheduleCheck(Math.max(dueAt - this.#deps.now(), MIN_CHECK_DELAY_MS));
	}

	async #obtain(question: CertificateRequestedByClient, policy: ReadyPolicy): Promise<boolean> {
		if (await this.#obtainFromSources(question, policy)) return true;
		const { settings } = policy;
		if (!settings.on_demand && settings.subjects.length === 0) return false;
		const { name } = question;
		const decision = await askPermission(this.#permission, settings, name);
		if (!decision.isAllowed) {
			this.#deps.log(decision.hasFailed ? 'error' : 'info', 'tls.on_demand', 'name not permitted', {
				name,
				cause: decision.cause,
			});
			return false;
		}
		// The configuration may have changed while the permission was requested.
		if (this.#policyFor(name) !== policy) return false;
		const entry = this.#entries.get(name) ?? new ManagedCertificate(name, policy);
		if (this.#entries.size >= MAX_ENTRIES && !this.#entries.has(name)) this.#evictEntry();
		this.#entries.set(name, entry);
		await this.#deps.keeper.load([entry]);
		const now = this.#deps.now();
		if (!entry.record || entry.record.notAfter <= now) {
			if (now < entry.nextAttemptAt) return false;
			await this.#deps.keeper.startOrder(entry);
		}
		return entry.isPublished && entry.record !== undefined;
	}

	/**
	 * Asks the `get_certificate` managers of a policy in order, until one provides a certificate. Resolves to false if none does.
	 */
	async #obtainFromSources(
		{ name, ...otherFields }: CertificateRequestedByClient,
		policy: ReadyPolicy,
	): Promise<boolean> {
		for (const source of policy.settings.managers ?? []) {
			try {
				const certificate = await fetchFromManager(source, { name, ...otherFields });
				if (!certificate) continue;
				const id = `source/${source.manager}/${name}`;
				const now = this.#deps.now();
				const servedUntil = Math.min(now + SOURCE_TTL_MS, certificate.notAfter);
				if (servedUntil <= now) throw new ManagerFailure("The manager's certificate has expired.");
				this.#servedUntil.set(id, servedUntil);
				this.#deps.scheduleCheck(servedUntil - now);
				this.#deps.sink.publish([{ id, names: [name], chain: certificate.chain, key: certificate.key }]);
				return true;
			} catch (error) {
				if (!(error instanceof ManagerFailure)) throw error;
				const fields = { name, manager: source.manager, cause: error.message };
				this.#deps.log('error', 'tls.handshake', 'a certificate manager failed', fields);
			}
		}
		return false;
	}

	/** Returns the policy for a name: by exact name, then by wildcard, then the policy for all names. */
	#policyFor(name: string): ReadyPolicy | undefined {
		const dot = name.indexOf('.');
		const wildcard = dot === -1 ? undefined : `*${name.slice(dot)}`;
		let catchAll: ReadyPolicy | undefined;
		let wildcardPolicy: ReadyPolicy | undefined;
		for (const policy of this.#policies) {
			const { subjects } = policy.settings;
			if (subjects.length === 0) catchAll ??= policy;
			else if (subjects.includes(name)) return policy;
			else if (wildcard !== undefined && subjects.includes(wildcard)) wildcardPolicy ??= policy;
		}
		return wildcardPolicy ?? catchAll;
	}

	#admitNewName(now: number): boolean {
		if (now - this.#windowStart > NEW_NAMES_WINDOW_MS) {
			this.#windowStart = now;
			this.#newNameCount = 0;
		}
		if (++this.#newNameCount === MAX_NEW_NAMES + 1) {
			this.#deps.log('warn', 'tls.on_demand', 'too many new names on demand; further new names are rejected', {
				names: MAX_NEW_NAMES,
				within_ms: NEW_NAMES_WINDOW_MS,
			});
		}
		return this.#newNameCount <= MAX_NEW_NAMES;
	}

	#refuseName(name: string): void {
		this.#refusedUntil.delete(name);
		this.#refusedUntil.set(name, this.#deps.now() + REFUSAL_TTL_MS);
		if (this.#refusedUntil.size <= MAX_REFUSALS) return;
		const [oldest] = this.#refusedUntil.keys();
		this.#refusedUntil.delete(oldest!);
	}

	/** Removes the certificate that expires first from memory. It stays in the store and can be loaded again. */
	#evictEntry(): void {
		let candidate: ManagedCertificate | undefined;
		for (const entry of this.#entries.values()) {
			if (entry.currentOrder) continue;
			if (!candidate || (entry.record?.notAfter ?? 0) < (candidate.record?.notAfter ?? 0)) candidate = entry;
		}
		if (candidate) this.#removeEntry(candidate);
	}

	#removeEntry(entry: ManagedCertificate): void {
		entry.isDropped = true;
		entry.currentOrder?.abort.abort(new Error('The certificate is no longer needed.'));
		this.#entries.delete(entry.name);
		this.#deps.publisher.withdraw([entry]);
	}
}

/** Reports whether a name can have a certificate. Clients may send any text as a name. */
function isValidName(name: string): boolean {
	if (isIP(name)) return true;
	if (name.length > 253) return false;
	return name.split('.').every(label => /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/.test(label));
}
