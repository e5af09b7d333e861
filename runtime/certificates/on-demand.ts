/** Certificates that are obtained when a client first asks for their name: who may, how many at a time, and for how long. */
import { isIP } from 'node:net';
import type { CertificateQuestion, CertificateSink } from '../tls/certificate-feed.ts';
import type { CertificateKeeper } from './certificate-keeper.ts';
import { askManager, ManagerFailure } from './certificate-sources.ts';
import { ManagedCertificate, type ReadyPolicy } from './managed-certificate.ts';
import type { ManagerLog } from './manager-log.ts';
import { askPermission, type PermissionSettings } from './on-demand-permission.ts';

/** Names obtained or asked about at one time; clients that come with more names are turned away. */
const MOST_AT_ONCE = 64;
/** New names in {@link NEW_NAMES_WITHIN} milliseconds at most, permitted or not: whoever scans names must not drive the permission endpoint or the issuer. */
const MOST_NEW_NAMES = 600;
const NEW_NAMES_WITHIN = 60_000;
/** Names kept in memory at most. */
const MOST_ENTRIES = 20_000;
/** Names remembered as turned away at most, and for how many milliseconds. */
const MOST_REFUSALS = 10_000;
const REFUSED_FOR = 60_000;
/** Milliseconds before the permission to renew is asked for again. */
const RENEWAL_RETRY = 3_600_000;
/** Milliseconds for which failures of a name count after it may be tried again. */
const FAILURE_KEPT = 3_600_000;
/** Milliseconds for which a certificate that a source gave is served before the source is asked again. */
const SOURCE_FRESH = 600_000;

/** What it finds around it. */
export interface OnDemandSurroundings {
	readonly sink: CertificateSink;
	readonly log: ManagerLog;
	readonly now: () => number;
	readonly keeper: CertificateKeeper;
}

/** The certificates that are obtained on demand. */
export class OnDemandCertificates {
	readonly #around: OnDemandSurroundings;
	readonly #entries = new Map<string, ManagedCertificate>();
	readonly #pending = new Map<string, Promise<boolean>>();
	/** Names turned away, with the time until which they are. The oldest is first. */
	readonly #refused = new Map<string, number>();
	/** Ids of certificates that sources gave, with the time until which they are served. */
	readonly #sourced = new Map<string, number>();
	#policies: readonly ReadyPolicy[] = [];
	#permission: PermissionSettings = {};
	#windowBegan = 0;
	#newNames = 0;

	constructor(surroundings: OnDemandSurroundings) {
		this.#around = surroundings;
	}

	/** The policies of the document that is served now; `permission` is its `on_demand_tls`. */
	serve(policies: readonly ReadyPolicy[], permission: unknown): void {
		this.#policies = policies.filter(
			({ settings }) => settings.on_demand === true || (settings.managers?.length ?? 0) > 0,
		);
		this.#permission = (permission ?? {}) as PermissionSettings;
		this.#refused.clear();
		for (const [name, entry] of this.#entries) {
			if (this.#policyFor(name)?.key !== entry.policy.key) this.#forget(entry);
		}
	}

	/** Certificates that are looked after. */
	entries(): IterableIterator<ManagedCertificate> {
		return this.#entries.values();
	}

	/** Obtains a certificate for a name; false when there is to be none. Never rejects. */
	obtain(question: CertificateQuestion): Promise<boolean> {
		const { name } = question;
		const pending = this.#pending.get(name);
		if (pending) return pending;
		const policy = this.#policyFor(name);
		if (!policy || !isObtainable(name)) return Promise.resolve(false);
		const now = this.#around.now();
		if ((this.#refused.get(name) ?? 0) > now) return Promise.resolve(false);
		if (this.#pending.size >= MOST_AT_ONCE || !this.#mayAsk(now)) {
			return Promise.resolve(false);
		}
		const obtaining = this.#obtain(question, policy)
			.catch(error => {
				const cause = error instanceof Error ? error.message : String(error);
				this.#around.log('error', 'tls.on_demand', 'a certificate could not be obtained on demand', { name, cause });
				return false;
			})
			.then(obtained => {
				this.#pending.delete(name);
				if (!obtained) this.#refuse(name);
				return obtained;
			});
		this.#pending.set(name, obtaining);
		return obtaining;
	}

	/** Renews a certificate whose name is still permitted; one that is not is served until it ends. Never rejects. */
	async renew(entry: ManagedCertificate): Promise<void> {
		// What never was obtained waits for a client that asks for it again.
		if (!entry.record) return;
		entry.attemptAt = this.#around.now() + RENEWAL_RETRY;
		const { allowed, cause } = await askPermission(this.#permission, entry.policy.settings, entry.name);
		if (allowed) await this.#around.keeper.begin(entry);
		else this.#around.log('info', 'tls.on_demand', 'a certificate is not renewed', { name: entry.name, cause });
	}

	/** Gives up what has ended. Names that failed are remembered while they must not be tried again. */
	sweep(): void {
		const now = this.#around.now();
		for (const entry of this.#entries.values()) {
			const end = entry.record ? entry.record.notAfter : entry.attemptAt + FAILURE_KEPT;
			if (end <= now && !entry.work && !this.#pending.has(entry.name)) this.#forget(entry);
		}
		const stale: string[] = [];
		for (const [id, until] of this.#sourced) if (until <= now) stale.push(id);
		for (const id of stale) this.#sourced.delete(id);
		if (stale.length > 0) this.#around.sink.drop(stale);
		for (const [name, until] of this.#refused) if (until <= now) this.#refused.delete(name);
	}

	async #obtain(question: CertificateQuestion, policy: ReadyPolicy): Promise<boolean> {
		if (await this.#fromSources(question, policy)) return true;
		const { settings } = policy;
		if (!settings.on_demand && settings.subjects.length === 0) return false;
		const { name } = question;
		const permitted = await askPermission(this.#permission, settings, name);
		if (!permitted.allowed) {
			this.#around.log(permitted.failed ? 'error' : 'info', 'tls.on_demand', 'a name is not permitted', {
				name,
				cause: permitted.cause,
			});
			return false;
		}
		// The configuration may have changed meanwhile.
		if (this.#policyFor(name) !== policy) return false;
		const entry = this.#entries.get(name) ?? new ManagedCertificate(name, policy);
		if (this.#entries.size >= MOST_ENTRIES && !this.#entries.has(name)) this.#makeRoom();
		this.#entries.set(name, entry);
		await this.#around.keeper.load([entry]);
		const now = this.#around.now();
		if (!entry.record || entry.record.notAfter <= now) {
			if (now < entry.attemptAt) return false;
			await this.#around.keeper.begin(entry);
		}
		return entry.published && entry.record !== undefined;
	}

	/** Asks the `get_certificate` managers of a policy in their order. */
	async #fromSources({ name, ...rest }: CertificateQuestion, policy: ReadyPolicy): Promise<boolean> {
		for (const source of policy.settings.managers ?? []) {
			try {
				const found = await askManager(source, { name, ...rest });
				if (!found) continue;
				const id = `source/${source.manager}/${name}`;
				this.#sourced.set(id, this.#around.now() + SOURCE_FRESH);
				this.#around.sink.publish([{ id, names: [name], chain: found.chain, key: found.key }]);
				return true;
			} catch (error) {
				if (!(error instanceof ManagerFailure)) throw error;
				const fields = { name, manager: source.manager, cause: error.message };
				this.#around.log('error', 'tls.handshake', 'a source gave no certificate', fields);
			}
		}
		return false;
	}

	/** The policy that takes a name: by name, by wildcard, then one for every name. */
	#policyFor(name: string): ReadyPolicy | undefined {
		const dot = name.indexOf('.');
		const wildcard = dot === -1 ? undefined : `*${name.slice(dot)}`;
		let general: ReadyPolicy | undefined;
		let byWildcard: ReadyPolicy | undefined;
		for (const policy of this.#policies) {
			const { subjects } = policy.settings;
			if (subjects.length === 0) general ??= policy;
			else if (subjects.includes(name)) return policy;
			else if (wildcard !== undefined && subjects.includes(wildcard)) byWildcard ??= policy;
		}
		return byWildcard ?? general;
	}

	#mayAsk(now: number): boolean {
		if (now - this.#windowBegan > NEW_NAMES_WITHIN) {
			this.#windowBegan = now;
			this.#newNames = 0;
		}
		if (++this.#newNames === MOST_NEW_NAMES + 1) {
			this.#around.log('warn', 'tls.on_demand', 'too many new names: clients that ask for more are turned away', {
				names: MOST_NEW_NAMES,
				within_ms: NEW_NAMES_WITHIN,
			});
		}
		return this.#newNames <= MOST_NEW_NAMES;
	}

	#refuse(name: string): void {
		this.#refused.delete(name);
		this.#refused.set(name, this.#around.now() + REFUSED_FOR);
		if (this.#refused.size <= MOST_REFUSALS) return;
		const [oldest] = this.#refused.keys();
		this.#refused.delete(oldest!);
	}

	/** The one whose certificate ends first goes; a client that comes for it again finds it in the store. */
	#makeRoom(): void {
		let first: ManagedCertificate | undefined;
		for (const entry of this.#entries.values()) {
			if (entry.work) continue;
			if (!first || (entry.record?.notAfter ?? 0) < (first.record?.notAfter ?? 0)) first = entry;
		}
		if (first) this.#forget(first);
	}

	#forget(entry: ManagedCertificate): void {
		entry.gone = true;
		entry.work?.abort.abort(new Error('The certificate is not wanted any more.'));
		this.#entries.delete(entry.name);
		if (entry.published && entry.id) this.#around.sink.drop([entry.id]);
	}
}

/** A name that a certificate can be for: clients send anything. */
function isObtainable(name: string): boolean {
	if (isIP(name)) return true;
	if (name.length > 253) return false;
	return name.split('.').every(label => /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/.test(label));
}
