/** A pool of upstreams on one thread: choice, kept connections and counts; one for each lease key. */
import {
	parseResolvedUpstream,
	parseUpstream,
	type UpstreamAddress,
} from '../../compiler/directives/reverse-proxy/upstream-address.ts';
import type { Exchange } from '../../compiler/exchange/exchange.ts';
import type { HeaderList } from '../../compiler/exchange/header-list.ts';
import type {
	Upstream,
	UpstreamPool,
	UpstreamRequest,
	UpstreamResponse,
	UpstreamSettings,
} from '../../compiler/exchange/leases.ts';
import type { Balancer, BalancerView } from '../../compiler/providers/balancers/balancer.ts';
import { balancerById } from '../../compiler/providers/balancers/index.ts';
import { PieceMemory } from '../protocols/http1/piece-memory.ts';
import { PooledUpstream } from './pooled-upstream.ts';
import { poolSlots, type SharedUpstreamCounts, UpstreamCounts } from './shared-counts.ts';
import { createLink, keepAliveOf } from './transports/create-link.ts';
import type { LinkSurroundings } from './transports/link.ts';
import { UpstreamCall } from './upstream-call.ts';

export { poolSlots } from './shared-counts.ts';

/** A pool as its owner sees it. */
export interface OwnedUpstreamPool extends UpstreamPool {
	/** Ends idle connections and keeps none from now on; requests in flight finish. */
	close(): void;
	/** Idle connections of this thread. */
	readonly idleConnections: number;
	/** Requests in flight of this thread. */
	readonly inFlight: number;
}

/** Bytes that one read of an upstream's socket can give. */
const READ_SIZE = 65536;
/** Resolved addresses whose connections are kept; the least recently used goes first. */
const MAX_RESOLVED = 1024;
/** Milliseconds between two looks at idle connections, at most. */
const MAX_SWEEP_INTERVAL = 1000;

/**
 * Opens a pool. Addresses must have been checked (see upstream-address.ts): those that are invalid are left out.
 * @param shared Counts of the whole process; without them the pool knows this thread's only.
 */
export function createUpstreamPool(settings: UpstreamSettings, shared?: SharedUpstreamCounts): OwnedUpstreamPool {
	return new Pool(settings, shared);
}

class Pool implements OwnedUpstreamPool, BalancerView, LinkSurroundings {
	readonly settings: UpstreamSettings;
	readonly pieces: PieceMemory = new PieceMemory();
	readonly threads: number;
	readonly #counts: UpstreamCounts;
	readonly #balancer: Balancer;
	readonly #upstreams: PooledUpstream[] = [];
	/** Upstreams whose addresses placeholders made. */
	readonly #resolved = new Map<string, PooledUpstream>();
	/** Made with the first connection: most pools of a large configuration have none. */
	#readBuffer: Buffer | undefined = undefined;
	#timer: NodeJS.Timeout | undefined = undefined;
	#closed = false;
	// What a choice is being made from.
	#candidates: readonly PooledUpstream[];
	#avoid: readonly Upstream[] | undefined = undefined;

	constructor(settings: UpstreamSettings, shared: SharedUpstreamCounts | undefined) {
		this.settings = settings;
		this.threads = shared?.rows ?? 1;
		this.#counts = new UpstreamCounts(poolSlots(settings), shared);
		this.#balancer = balancerById(settings.balance?.policy ?? 'random') ?? balancerById('random')!;
		for (const text of settings.to) {
			const parsed = parseUpstream(text);
			if (parsed.kind !== 'static') continue;
			for (const address of parsed.addresses) {
				this.#upstreams.push(this.#make(address, this.#upstreams.length));
			}
		}
		this.#candidates = this.#upstreams;
	}

	get idleConnections(): number {
		let sum = 0;
		for (const upstream of this.#all()) sum += upstream.link.idle;
		return sum;
	}

	get inFlight(): number {
		let sum = 0;
		for (const upstream of this.#all()) sum += upstream.localActive;
		return sum;
	}

	select(_x: Exchange, avoid?: readonly Upstream[], resolved?: readonly string[]): Upstream | undefined {
		const candidates = resolved === undefined ? this.#upstreams : this.#resolve(resolved);
		if (candidates.length === 1 && avoid === undefined) return candidates[0];
		this.#candidates = candidates;
		this.#avoid = avoid;
		return candidates[this.#balancer.choose(this)];
	}

	send(
		x: Exchange,
		upstream: Upstream,
		request: UpstreamRequest,
		onInform: ((status: number, headers: HeaderList) => void) | undefined,
	): Promise<UpstreamResponse> {
		return new Promise((resolve, reject) => {
			new UpstreamCall(x, upstream as PooledUpstream, request, onInform, resolve, reject);
		});
	}

	close(): void {
		this.#closed = true;
		if (this.#timer) clearInterval(this.#timer);
		this.#timer = undefined;
		for (const upstream of this.#all()) upstream.link.close();
		this.#resolved.clear();
	}

	// BalancerView, during `select`.

	get size(): number {
		return this.#candidates.length;
	}

	available(index: number): boolean {
		return this.#avoid === undefined || !this.#avoid.includes(this.#candidates[index]!);
	}

	active(index: number): number {
		return this.#candidates[index]!.active;
	}

	turn(): number {
		return this.#counts.turn();
	}

	random(bound: number): number {
		return Math.floor(Math.random() * bound);
	}

	// LinkSurroundings.

	readonly readBuffer = (): Buffer => {
		// There, reads of several sockets are under way at once, each into the buffer that it was given.
		if (process.platform === 'win32') return Buffer.allocUnsafeSlow(READ_SIZE);
		this.#readBuffer ??= Buffer.allocUnsafeSlow(READ_SIZE);
		return this.#readBuffer;
	};

	idled(): void {
		if (this.#timer !== undefined || this.#closed) return;
		const interval = Math.min(MAX_SWEEP_INTERVAL, Math.max(50, keepAliveOf(this.settings).timeout / 4));
		this.#timer = setInterval(() => this.#sweep(), interval);
		this.#timer.unref();
	}

	#make(address: UpstreamAddress, slot: number | undefined): PooledUpstream {
		return new PooledUpstream(address, createLink(address, this.settings, this), this.#counts, slot);
	}

	#resolve(texts: readonly string[]): readonly PooledUpstream[] {
		const upstreams: PooledUpstream[] = [];
		for (const text of texts) {
			const address = parseResolvedUpstream(text);
			if (!address) continue;
			let upstream = this.#resolved.get(address.address);
			if (upstream) {
				// Back to the end: a Map iterates in the order of insertion.
				this.#resolved.delete(address.address);
			} else {
				upstream = this.#make(address, undefined);
				if (this.#closed) upstream.link.close();
				if (this.#resolved.size >= MAX_RESOLVED) this.#dropOldest();
			}
			this.#resolved.set(address.address, upstream);
			upstreams.push(upstream);
		}
		return upstreams;
	}

	#dropOldest(): void {
		for (const [text, upstream] of this.#resolved) {
			upstream.link.close();
			this.#resolved.delete(text);
			return;
		}
	}

	#sweep(): void {
		const now = performance.now();
		for (const upstream of this.#all()) upstream.link.sweep(now);
		if (this.idleConnections > 0) return;
		clearInterval(this.#timer);
		this.#timer = undefined;
	}

	*#all(): IterableIterator<PooledUpstream> {
		yield* this.#upstreams;
		yield* this.#resolved.values();
	}
}
