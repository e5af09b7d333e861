/** One upstream on one thread: its connections and its count of requests in flight. */
import type { UpstreamAddress } from '../../compiler/directives/reverse-proxy/upstream-address.ts';
import type { Upstream } from '../../compiler/exchange/leases.ts';
import type { UpstreamCounts } from './shared-counts.ts';
import type { UpstreamLink } from './transports/link.ts';

/** An upstream with the connections that this thread keeps to it. */
export class PooledUpstream implements Upstream {
	readonly address: string;
	readonly host: string;
	readonly port: number;
	readonly link: UpstreamLink;
	/** Slot in the shared counts; undefined for an address that placeholders made. */
	readonly #slot: number | undefined;
	readonly #counts: UpstreamCounts;
	#localActive = 0;

	constructor(address: UpstreamAddress, link: UpstreamLink, counts: UpstreamCounts, slot: number | undefined) {
		this.address = address.address;
		this.host = address.host;
		this.port = address.port;
		this.link = link;
		this.#counts = counts;
		this.#slot = slot;
	}

	get active(): number {
		return this.#slot === undefined ? this.#localActive : this.#counts.active(this.#slot);
	}

	/** Requests in flight of this thread. */
	get localActive(): number {
		return this.#localActive;
	}

	/** Counts a request that begins or ends. */
	count(by: 1 | -1): void {
		this.#localActive += by;
		if (this.#slot !== undefined) this.#counts.add(this.#slot, by);
	}
}
