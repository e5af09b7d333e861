/** A pool of upstreams on one thread: choice, kept connections and counts; one for each lease key. */

import type { Exchange } from '../../compiler/exchange/exchange.ts';
import type { Upstream, UpstreamOutcome, UpstreamRequest } from '../../compiler/exchange/leases.ts';
import {
	parseResolvedUpstream,
	parseUpstream,
	type UpstreamAddress,
} from '../../compiler/modules/directives/reverse-proxy/upstream-address.ts';
import type { UpstreamPool, UpstreamSettings } from '../../compiler/modules/directives/reverse-proxy/upstream-pool.ts';
import type { BalancerView, Choice } from '../../compiler/modules/providers/balancers/balancer.ts';
import { compileBalance } from '../../compiler/modules/providers/balancers/index.ts';
import { PieceMemory } from '../protocols/http1/piece-memory.ts';
import { SocketRelay } from '../sockets/socket-relay.ts';
import { CircuitBreaker } from './circuit-breaker.ts';
import { DynamicAddresses } from './dynamic/dynamic-addresses.ts';
import { JoinedStreams } from './joined-streams.ts';
import { type PassiveHealth, passiveOf } from './passive-health.ts';
import { PLAIN_SURROUNDINGS, type PoolDeps } from './pool-deps.ts';
import { goesByLatency, hashText, PoolMemory, type SharedPoolMemory } from './pool-memory.ts';
import { PooledUpstream, type UpstreamRecord } from './pooled-upstream.ts';
import { processNow } from './process-clock.ts';
import { RetryBudget } from './retry-budget.ts';
import type { ConnectorDeps } from './transports/connector.ts';
import { ConnectorFactory, keepAliveOf } from './transports/create-connector.ts';
import type { TlsProvider } from './transports/tls-provision.ts';
import { UpstreamCall } from './upstream-call.ts';
import { UpstreamHealth } from './upstream-health.ts';

/** A pool as its owner sees it. */
export interface OwnedUpstreamPool extends UpstreamPool {
	/** Ends idle connections and keeps none from now on; requests in flight finish. */
	close(): void;
	/** Idle connections of this thread. */
	readonly idleConnections: number;
	/** Requests in flight of this thread. */
	readonly inFlight: number;
	/** Whether the configuration that is served uses the pool: when it does not, joined streams end after their delay. */
	inUse(used: boolean): void;
}

/** Bytes that one read of an upstream's socket can give when nothing is said. */
const READ_SIZE = 65536;
/** Resolved addresses whose connections are kept; the least recently used goes first. */
const MAX_RESOLVED = 1024;
/** Milliseconds between two looks at idle connections, at most. */
const MAX_SWEEP_INTERVAL = 1000;

/**
 * Opens a pool. Addresses must have been checked (see upstream-address.ts): those that are invalid are left out.
 * @param shared Memory of the whole process; without it the pool knows this thread's only.
 */
export function createUpstreamPool(
	settings: UpstreamSettings,
	shared?: SharedPoolMemory,
	deps: PoolDeps = PLAIN_SURROUNDINGS,
	found?: (addresses: readonly string[]) => void,
): OwnedUpstreamPool {
	return new Pool(settings, shared, deps, found);
}

class Pool implements OwnedUpstreamPool, BalancerView, ConnectorDeps {
	readonly settings: UpstreamSettings;
	readonly pieces: PieceMemory = new PieceMemory();
	readonly threads: number;
	readonly #links: ConnectorFactory;
	readonly #deps: PoolDeps;
	readonly #memory: PoolMemory;
	readonly #choose: Choice;
	readonly #budget: RetryBudget;
	/** Whether anything is tried again. */
	readonly #budgeted: boolean;
	readonly #dynamic: DynamicAddresses | undefined;
	readonly #streams = new JoinedStreams();
	readonly #upstreams: PooledUpstream[] = [];
	/** Whether anything can make an upstream unavailable. */
	readonly #guarded: boolean;
	readonly #slowStart: number;
	readonly #passive: PassiveHealth | undefined;
	/** Whether the policy goes by latencies. */
	readonly #measured: boolean;
	/** Upstreams whose addresses placeholders or look-ups made. */
	readonly #resolved = new Map<string, PooledUpstream>();
	/** The last list of made addresses, and what it stands for. */
	#lastTexts: readonly string[] | undefined = undefined;
	#lastResolved: readonly PooledUpstream[] = [];
	/** Made with the first connection: most pools of a large configuration have none. */
	#readBuffer: Buffer | undefined = undefined;
	#timer: NodeJS.Timeout | undefined = undefined;
	#closed = false;
	/** Opened with the first large body, closed when no connection is left; null where there is none. */
	#relay: SocketRelay | null | undefined = undefined;
	// What a choice is being made from.
	#candidates: readonly PooledUpstream[];
	#avoid: readonly Upstream[] | undefined = undefined;
	#now = 0;
	/** Whether upstreams that come back get only a part of their turns. */
	#ramp = false;

	constructor(
		settings: UpstreamSettings,
		shared: SharedPoolMemory | undefined,
		deps: PoolDeps,
		found: ((addresses: readonly string[]) => void) | undefined,
	) {
		this.settings = settings;
		this.threads = shared?.rows ?? 1;
		this.#deps = deps;
		this.#links = new ConnectorFactory(settings, this);
		this.#memory = new PoolMemory(settings, shared);
		this.#budget = new RetryBudget(this.#memory, settings.retry_budget);
		this.#budgeted = settings.retries !== undefined || settings.retry_duration !== undefined;
		this.#slowStart = settings.slow_start ?? 0;
		this.#passive = passiveOf(settings);
		this.#measured = goesByLatency(settings);
		this.#guarded =
			settings.health !== undefined ||
			(settings.fail_duration ?? 0) > 0 ||
			(settings.unhealthy_request_count ?? 0) > 0 ||
			settings.circuit !== undefined;
		this.#choose = compileBalance(settings.balance, {
			clientIp: x => deps.clientIp(x),
			trustsPeer: x => deps.trustsPeer(x),
		});
		for (const text of settings.to) {
			const parsed = parseUpstream(text);
			if (parsed.kind !== 'static') continue;
			for (const address of parsed.addresses) {
				this.#upstreams.push(this.#make(address, this.#upstreams.length));
			}
		}
		this.#candidates = this.#upstreams;
		this.#dynamic = settings.dynamic && new DynamicAddresses(settings.dynamic, found);
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

	select(x: Exchange, avoid?: readonly Upstream[], resolved?: readonly string[]): Upstream | undefined {
		const candidates = resolved === undefined ? this.#upstreams : this.#resolve(resolved);
		if (candidates.length === 1 && avoid === undefined && !this.#guarded && this.settings.balance === undefined) {
			return candidates[0];
		}
		this.#candidates = candidates;
		this.#avoid = avoid;
		if (this.#guarded) this.#now = processNow();
		this.#ramp = this.#slowStart > 0;
		const chosen = candidates[this.#choose(this, x)];
		if (chosen || !this.#ramp) return chosen;
		// Nobody else is there: one that comes back gets all.
		this.#ramp = false;
		return candidates[this.#choose(this, x)];
	}

	lookUp(names: readonly string[]): readonly string[] | undefined | Promise<readonly string[] | undefined> {
		return this.#dynamic?.lookUp(names);
	}

	mayRetry(upstream: Upstream, free: boolean): boolean {
		if (!free && !this.#budget.take(processNow())) return false;
		this.#deps.upstreamObserver?.retried(upstream.address);
		return true;
	}

	waiting(by: 1 | -1): void {
		this.#memory.addWaiting(by);
	}

	joined(close: () => void, delay: number): () => void {
		return this.#streams.join(close, delay);
	}

	inUse(used: boolean): void {
		if (used) this.#streams.revive();
		else this.#streams.retire();
	}

	send(x: Exchange, upstream: Upstream, request: UpstreamRequest, outcome: UpstreamOutcome): void {
		if (this.#budgeted) this.#budget.request();
		new UpstreamCall(x, upstream as PooledUpstream, request, outcome, this.#deps);
	}

	close(): void {
		this.#closed = true;
		if (this.#timer) clearInterval(this.#timer);
		this.#timer = undefined;
		for (const upstream of this.#all()) upstream.link.close();
		this.#resolved.clear();
		this.#lastTexts = undefined;
		this.#dynamic?.close();
		this.#closeRelay();
	}

	/** Bodies under way go on without it. */
	#closeRelay(): void {
		this.#relay?.close();
		if (this.#relay) this.#relay = undefined;
	}

	// BalancerView, during `select`.

	get size(): number {
		return this.#candidates.length;
	}

	available(index: number): boolean {
		const upstream = this.#candidates[index]!;
		if (this.#avoid?.includes(upstream)) return false;
		if (!this.#guarded) return true;
		if (!upstream.available(this.#now)) return false;
		if (!this.#ramp) return true;
		const share = upstream.record?.health.share(this.#now) ?? 1;
		return share === 1 || Math.random() < share;
	}

	active(index: number): number {
		return this.#candidates[index]!.active;
	}

	dial(index: number): string {
		return this.#candidates[index]!.dial;
	}

	latency(index: number): number | undefined {
		return this.#candidates[index]!.record?.health.latency(processNow());
	}

	turn(): number {
		return this.#memory.turn();
	}

	random(bound: number): number {
		return Math.floor(Math.random() * bound);
	}

	// ConnectorDeps.

	readonly readBuffer = (): Buffer => {
		// There, reads of several sockets are under way at once, each into the buffer that it was given.
		const { transport } = this.settings;
		const size = (transport?.type === 'http' ? transport.read_buffer : undefined) ?? READ_SIZE;
		if (process.platform === 'win32') return Buffer.allocUnsafeSlow(size);
		this.#readBuffer ??= Buffer.allocUnsafeSlow(size);
		return this.#readBuffer;
	};

	readonly relay = (): SocketRelay | undefined => {
		if (this.#relay === undefined && !this.#closed) this.#relay = SocketRelay.open() ?? null;
		return this.#relay ?? undefined;
	};

	get environment(): { readonly [name: string]: string | undefined } {
		return this.#deps.environment;
	}

	get provideTls(): TlsProvider | undefined {
		return this.#deps.provideTls;
	}

	readonly complained = (text: string, status: number): void => this.#deps.complained?.(text, status);

	idled(): void {
		if (this.#timer !== undefined || this.#closed) return;
		const interval = Math.min(MAX_SWEEP_INTERVAL, Math.max(50, keepAliveOf(this.settings).timeout / 4));
		this.#timer = setInterval(() => this.#sweep(), interval);
		this.#timer.unref();
	}

	#make(address: UpstreamAddress, slot: number | undefined): PooledUpstream {
		return new PooledUpstream(
			address,
			this.#links.link(address),
			this.#memory,
			slot === undefined ? undefined : this.#record(slot),
		);
	}

	#record(slot: number): UpstreamRecord {
		const { settings } = this;
		const passive = this.#passive;
		return {
			slot,
			health: new UpstreamHealth(this.#memory, slot, passive, this.#slowStart),
			circuit: settings.circuit && new CircuitBreaker(this.#memory, slot, settings.circuit),
			passive,
			maxRequests: settings.unhealthy_request_count ?? 0,
			guarded: this.#guarded,
			measured: this.#measured,
		};
	}

	#resolve(texts: readonly string[]): readonly PooledUpstream[] {
		// A list that was looked up is the same object until it is looked up again.
		if (texts === this.#lastTexts) return this.#lastResolved;
		const upstreams: PooledUpstream[] = [];
		const now = processNow();
		for (const text of texts) {
			const address = parseResolvedUpstream(text);
			if (!address) continue;
			let upstream = this.#resolved.get(address.address);
			if (upstream) {
				// Back to the end: a Map iterates in the order of insertion.
				this.#resolved.delete(address.address);
				if (upstream.record) this.#memory.touch(upstream.record.slot, now);
			} else {
				upstream = this.#make(address, this.#memory.claim(hashText(address.address), now));
				if (this.#closed) upstream.link.close();
				if (this.#resolved.size >= MAX_RESOLVED) this.#dropOldest();
			}
			this.#resolved.set(address.address, upstream);
			upstreams.push(upstream);
		}
		if (this.#dynamic) {
			this.#lastTexts = texts;
			this.#lastResolved = upstreams;
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
		if (this.#links.outdated()) this.#reconnect();
		for (const upstream of this.#all()) upstream.link.sweep(now);
		if (this.idleConnections > 0) return;
		clearInterval(this.#timer);
		this.#timer = undefined;
		this.#closeRelay();
	}

	/** Requests take new connections from now on; those in use end after their last call. */
	#reconnect(): void {
		for (const upstream of this.#all()) {
			upstream.link.close();
			upstream.link = this.#links.link(upstream.where);
		}
	}

	*#all(): IterableIterator<PooledUpstream> {
		yield* this.#upstreams;
		yield* this.#resolved.values();
	}
}
