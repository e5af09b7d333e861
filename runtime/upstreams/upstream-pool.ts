/** An upstream pool on one thread: selection, connections and counters. There is one for each lease key. */

import type { Exchange } from '../../compiler/exchange/exchange.ts';
import type { Upstream, UpstreamOutcome, UpstreamRequest } from '../../compiler/exchange/leases.ts';
import { compilePoolBalance } from '../../compiler/modules/directives/reverse-proxy/pool-choice.ts';
import {
	parseResolvedUpstream,
	parseUpstream,
	type UpstreamAddress,
} from '../../compiler/modules/directives/reverse-proxy/upstream-address.ts';
import type { UpstreamPool, UpstreamSettings } from '../../compiler/modules/directives/reverse-proxy/upstream-pool.ts';
import type { BalancerView, UpstreamChoice } from '../../compiler/modules/providers/balancers/balancer.ts';
import { PieceMemory } from '../protocols/http1/piece-memory.ts';
import { SocketRelay } from '../sockets/socket-relay.ts';
import { CircuitBreaker } from './circuit-breaker.ts';
import { DynamicAddresses } from './dynamic/dynamic-addresses.ts';
import { UpgradedStreams } from './joined-streams.ts';
import { type PassiveHealth, passiveHealthOf } from './passive-health.ts';
import { PLAIN_POOL_DEPS, type PoolDeps } from './pool-deps.ts';
import { hashText, PoolMemory, type SharedPoolMemory, usesLatency } from './pool-memory.ts';
import { PooledUpstream, type UpstreamRecord } from './pooled-upstream.ts';
import { processClockNow } from './process-clock.ts';
import { RetryBudget } from './retry-budget.ts';
import type { ConnectorDeps } from './transports/connector.ts';
import { ConnectorFactory, keepAliveOf } from './transports/create-connector.ts';
import type { TlsProvider } from './transports/tls-provision.ts';
import { UpstreamCall } from './upstream-call.ts';
import { UpstreamHealth } from './upstream-health.ts';

/** A pool as its owner sees it. */
export interface OwnedUpstreamPool extends UpstreamPool {
	/** Closes idle connections and keeps no more idle connections. Requests in flight complete. */
	close(): void;
	/** Number of idle connections on this thread. */
	readonly idleConnections: number;
	/** Number of requests in flight on this thread. */
	readonly inFlight: number;
	/** Sets whether the served configuration uses the pool. If it does not, upgraded connections end after their delay. */
	inUse(used: boolean): void;
}

/** Default maximum bytes of one read from an upstream's socket. */
const READ_SIZE = 65536;
/** Maximum dynamic addresses with connections; the least recently used is dropped first. */
const MAX_RESOLVED = 1024;
/** Maximum milliseconds between sweeps of idle connections. */
const MAX_SWEEP_INTERVAL = 1000;

/**
 * Creates a pool. Addresses must have been validated (see upstream-address.ts); invalid ones are omitted.
 * @param shared Memory of the whole process; without it, the pool's counts cover only this thread.
 */
export function createUpstreamPool(
	settings: UpstreamSettings,
	shared?: SharedPoolMemory,
	deps: PoolDeps = PLAIN_POOL_DEPS,
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
	readonly #choose: UpstreamChoice;
	readonly #budget: RetryBudget;
	/** True if retries are enabled, so that requests are counted for the retry budget. */
	readonly #budgeted: boolean;
	readonly #dynamic: DynamicAddresses | undefined;
	readonly #streams = new UpgradedStreams();
	readonly #upstreams: PooledUpstream[] = [];
	/** True if health checks or limits can make an upstream unavailable. */
	readonly #guarded: boolean;
	readonly #slowStart: number;
	readonly #passive: PassiveHealth | undefined;
	/** True if the policy uses latencies. */
	readonly #measured: boolean;
	/** The upstreams of dynamic addresses, by address. */
	readonly #resolved = new Map<string, PooledUpstream>();
	/** The last list of dynamic addresses. */
	#lastTexts: readonly string[] | undefined = undefined;
	/** The upstreams of the last list of dynamic addresses. */
	#lastResolved: readonly PooledUpstream[] = [];
	/** The read buffer, created with the first connection, because most pools of a large configuration never open one. */
	#readBuffer: Buffer | undefined = undefined;
	#timer: NodeJS.Timeout | undefined = undefined;
	#closed = false;
	/** The relay, opened for the first large body, and closed with the last connection; null if not available. */
	#relay: SocketRelay | null | undefined = undefined;
	// The upstreams among which the current selection chooses.
	#candidates: readonly PooledUpstream[];
	#avoid: readonly Upstream[] | undefined = undefined;
	#now = 0;
	/** True while a selection may pass over upstreams in slow start. */
	#ramp = false;

	constructor(
		settings: UpstreamSettings,
		shared: SharedPoolMemory | undefined,
		deps: PoolDeps,
		found: ((addresses: readonly string[]) => void) | undefined,
	) {
		this.settings = settings;
		this.threads = shared?.threads ?? 1;
		this.#deps = deps;
		this.#links = new ConnectorFactory(settings, this);
		this.#memory = new PoolMemory(settings, shared);
		this.#budget = new RetryBudget(this.#memory, settings.retry_budget);
		this.#budgeted = settings.retries !== undefined || settings.retry_duration !== undefined;
		this.#slowStart = settings.slow_start ?? 0;
		this.#passive = passiveHealthOf(settings);
		this.#measured = usesLatency(settings);
		this.#guarded =
			settings.health !== undefined ||
			(settings.fail_duration ?? 0) > 0 ||
			(settings.unhealthy_request_count ?? 0) > 0 ||
			settings.circuit !== undefined;
		this.#choose = compilePoolBalance(settings, {
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
		if (this.#guarded) this.#now = processClockNow();
		this.#ramp = this.#slowStart > 0;
		const chosen = candidates[this.#choose(this, x)];
		if (chosen || !this.#ramp) return chosen;
		// No other upstream is available, so an upstream in slow start gets the request.
		this.#ramp = false;
		return candidates[this.#choose(this, x)];
	}

	lookUp(names: readonly string[]): readonly string[] | undefined | Promise<readonly string[] | undefined> {
		return this.#dynamic?.lookUp(names);
	}

	mayRetry(upstream: Upstream, free: boolean): boolean {
		if (!free && !this.#budget.take(processClockNow())) return false;
		this.#deps.upstreamObserver?.retried(upstream.address);
		return true;
	}

	pause(x: Exchange, milliseconds: number): Promise<boolean> {
		if (x.isGone) return Promise.resolve(false);
		this.#memory.addWaiting(1);
		return new Promise(resolve => {
			let over = false;
			const end = () => {
				if (over) return;
				over = true;
				clearTimeout(timer);
				this.#memory.addWaiting(-1);
				resolve(!x.isGone);
			};
			const timer = setTimeout(end, milliseconds);
			x.onGone(end);
		});
	}

	elapsed(_x: Exchange, startedAt: number): number {
		return performance.now() - startedAt;
	}

	registerStream(close: () => void, delay: number): () => void {
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

	/** Closes the relay. Bodies in progress continue without it. */
	#closeRelay(): void {
		this.#relay?.close();
		if (this.#relay) this.#relay = undefined;
	}

	// Implements BalancerView, during `select`.

	get size(): number {
		return this.#candidates.length;
	}

	isAvailable(index: number): boolean {
		const upstream = this.#candidates[index]!;
		if (this.#avoid?.includes(upstream)) return false;
		if (!this.#guarded) return true;
		if (!upstream.available(this.#now)) return false;
		if (!this.#ramp) return true;
		const share = upstream.record?.health.share(this.#now) ?? 1;
		return share === 1 || Math.random() < share;
	}

	requestsInFlight(index: number): number {
		return this.#candidates[index]!.active;
	}

	dial(index: number): string {
		return this.#candidates[index]!.dial;
	}

	latency(index: number): number | undefined {
		return this.#candidates[index]!.record?.health.latency(processClockNow());
	}

	nextTurn(): number {
		return this.#memory.turn();
	}

	random(bound: number): number {
		return Math.floor(Math.random() * bound);
	}

	// Implements ConnectorDeps.

	readonly readBuffer = (): Buffer => {
		// On Windows, reads of several sockets are in progress at the same time, so each needs a buffer of its own.
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

	readonly onStderr = (text: string, status: number): void => this.#deps.onStderr?.(text, status);

	onIdle(): void {
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
		// The same array means the same addresses: a lookup returns a new array only if something has changed.
		if (texts === this.#lastTexts) return this.#lastResolved;
		const upstreams: PooledUpstream[] = [];
		const now = processClockNow();
		for (const text of texts) {
			const address = parseResolvedUpstream(text);
			if (!address) continue;
			let upstream = this.#resolved.get(address.address);
			if (upstream) {
				// Moves the entry to the end: the first entry is always the least recently used one, which is dropped first.
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

	/** Makes further requests use new connections. Busy connections close after their last request. */
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
