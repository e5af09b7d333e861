/** Resolves one name by DNS: A and AAAA records with a port, or SRV records. */
import { lookup, Resolver } from 'node:dns/promises';
import type { DynamicSource } from '../../../compiler/modules/directives/reverse-proxy/upstream-pool.ts';

/** Default milliseconds after which a list of addresses is refreshed. */
const DEFAULT_REFRESH_MS = 60_000;
/** Milliseconds until a failed lookup is retried. */
const RETRY_DELAY_MS = 1000;
/** Timeout of one query to one DNS server, in milliseconds. */
const DEFAULT_DIAL_TIMEOUT_MS = 5000;
/** Maximum addresses used from one answer. */
const MAX_ADDRESSES = 1024;

const NO_ADDRESSES: readonly string[] = [];

/** Looks up one name, and caches its addresses. */
export class SourceLookup {
	/** The addresses found, each `host:port`; empty if none are known. */
	addresses: readonly string[] = NO_ADDRESSES;
	readonly #source: Exclude<DynamicSource, { source: 'multi' }>;
	/** The name, with placeholders expanded: `name port` for `a`, `name` for `srv`. */
	readonly #name: string;
	readonly #resolver: Resolver;
	#foundAt = Number.NEGATIVE_INFINITY;
	#refreshAt = Number.NEGATIVE_INFINITY;
	#pendingRefresh: Promise<void> | undefined = undefined;

	constructor(source: Exclude<DynamicSource, { source: 'multi' }>, name: string) {
		this.#source = source;
		this.#name = name;
		const timeoutMs = source.dial_timeout ?? DEFAULT_DIAL_TIMEOUT_MS;
		this.#resolver = new Resolver({ timeout: timeoutMs > 0 ? timeoutMs : DEFAULT_DIAL_TIMEOUT_MS, tries: 2 });
		if (source.resolvers && source.resolvers.length > 0) this.#resolver.setServers(source.resolvers.map(toNodeServer));
	}

	/**
	 * Refreshes a stale list. Returns a promise only if the request must wait for the result: the first time, or if the list has
	 * been stale for a whole refresh interval. The promise never rejects.
	 */
	refresh(): Promise<void> | undefined {
		const now = performance.now();
		if (now < this.#refreshAt) return undefined;
		const refreshMs = this.#source.refresh ?? DEFAULT_REFRESH_MS;
		this.#pendingRefresh ??= this.#resolve(refreshMs).finally(() => {
			this.#pendingRefresh = undefined;
		});
		return now - this.#foundAt < refreshMs * 2 ? undefined : this.#pendingRefresh;
	}

	async #resolve(refreshMs: number): Promise<void> {
		try {
			const newAddresses = (await this.#queryAddresses()).sort().slice(0, MAX_ADDRESSES);
			const now = performance.now();
			this.#foundAt = now;
			this.#refreshAt = now + refreshMs;
			if (
				newAddresses.length !== this.addresses.length ||
				newAddresses.some((address, i) => address !== this.addresses[i])
			) {
				this.addresses = newAddresses;
			}
		} catch {
			const now = performance.now();
			const gracePeriodMs = this.#source.source === 'srv' ? (this.#source.grace_period ?? 0) : 0;
			// Stale addresses are used until the grace period ends. After that, the pool falls back to its static upstreams (`to`).
			if (now - this.#foundAt >= refreshMs + gracePeriodMs) this.addresses = NO_ADDRESSES;
			this.#refreshAt = now + Math.min(RETRY_DELAY_MS, refreshMs);
		}
	}

	async #queryAddresses(): Promise<string[]> {
		const source = this.#source;
		if (source.source === 'srv') {
			const records = await this.#resolver.resolveSrv(this.#name);
			return records.map(({ name, port }) => `${name.replace(/\.$/, '')}:${port}`);
		}
		const spaceIndex = this.#name.lastIndexOf(' ');
		const name = this.#name.slice(0, spaceIndex);
		const port = this.#name.slice(spaceIndex + 1);
		const allowsVersion = (version: 'ipv4' | 'ipv6') =>
			source.versions === undefined || source.versions.includes(version);
		if (!source.resolvers || source.resolvers.length === 0) {
			// Uses the system's resolver, which includes the hosts file.
			const results = await lookup(name, { all: true });
			return results
				.filter(({ family }) => allowsVersion(family === 6 ? 'ipv6' : 'ipv4'))
				.map(({ address, family }) => (family === 6 ? `[${address}]:${port}` : `${address}:${port}`));
		}
		const [ipv4Result, ipv6Result] = await Promise.allSettled([
			allowsVersion('ipv4') ? this.#resolver.resolve4(name) : [],
			allowsVersion('ipv6') ? this.#resolver.resolve6(name) : [],
		]);
		const addresses = [
			...(ipv4Result.status === 'fulfilled' ? ipv4Result.value.map(address => `${address}:${port}`) : []),
			...(ipv6Result.status === 'fulfilled' ? ipv6Result.value.map(address => `[${address}]:${port}`) : []),
		];
		if (addresses.length === 0) throw ipv4Result.status === 'rejected' ? ipv4Result.reason : new Error('no addresses');
		return addresses;
	}
}

/** Converts `udp/1.1.1.1:53` or `1.1.1.1` to the form in which Node's resolver expects a server. */
function toNodeServer(text: string): string {
	const address = text.replace(/^(?:udp|tcp)[46]?\//, '');
	return address.includes(':') && !address.startsWith('[') && address.indexOf(':') !== address.lastIndexOf(':')
		? `[${address}]`
		: address;
}
