/** An upstream pool on one thread: selection, connections and counters. Sites with the same pool settings share it. */

import type { Exchange } from '../../compiler/exchange/exchange.ts';
import type { EventCounter, Upstream, UpstreamOutcome, UpstreamRequest } from '../../compiler/exchange/leases.ts';
import { compilePoolBalance } from '../../compiler/modules/directives/reverse-proxy/pool-choice.ts';
import {
	parseResolvedUpstream,
	parseUpstream,
	type UpstreamAddress,
} from '../../compiler/modules/directives/reverse-proxy/upstream-address.ts';
import type { UpstreamPool, UpstreamSettings } from '../../compiler/modules/directives/reverse-proxy/upstream-pool.ts';
import type { BalancerView, UpstreamChoice } from '../../compiler/modules/providers/balancers/balancer.ts';
import { bufferedBytesPerThread, RequestBodyMemory } from '../protocols/fastcgi/buffered-request-body.ts';
import { PieceMemory } from '../protocols/http1/piece-memory.ts';
import { SocketRelay } from '../sockets/socket-relay.ts';
import { adaptiveLimitOf } from './adaptive-limit.ts';
import { CircuitBreaker } from './circuit-breaker.ts';
import { DynamicAddresses } from './dynamic/dynamic-addresses.ts';
import { type PassiveHealth, passiveHealthOf } from './passive-health.ts';
import { PLAIN_POOL_DEPS, type PoolDeps } from './pool-deps.ts';
import { hashText, PoolMemory, type SharedPoolMemory, usesLatency } from './pool-memory.ts';
import { PooledUpstream, type UpstreamRecord } from './pooled-upstream.ts';
import { processClockNow } from './process-clock.ts';
import { RetryBudget } from './retry-budget.ts';
import type { ConnectorDeps } from './transports/connector.ts';
import { ConnectorFactory, keepAliveOf } from './transports/create-connector.ts';
import type { TlsProvider } from './transports/tls-provision.ts';
import { UpgradedStreams } from './upgraded-streams.ts';
import { UpstreamCall } from './upstream-call.ts';
import { UpstreamHealth } from './upstream-health.ts';

/** An upstream pool with the additional operations that only its owner uses. */
export interface OwnedUpstreamPool extends UpstreamPool {
	/** Closes idle connections and keeps no more idle connections. Requests in flight complete. */
	close(): void;
	/** Number of idle connections on this thread. */
	readonly idleConnections: number;
	/** Number of requests in flight on this thread. */
	readonly inFlight: number;
	/** Sets whether the served configuration uses the pool. If it does not, upgraded connections end after their delay. */
	setInUse(isUsed: boolean): void;
}

/** Default maximum bytes of one read from an upstream's socket. */
const DEFAULT_READ_BYTES = 65536;
/** Maximum dynamic addresses with connections; the least recently used is dropped first. */
const MAX_RESOLVED_UPSTREAMS = 1024;
/** Maximum milliseconds between sweeps of idle connections. */
const MAX_SWEEP_INTERVAL_MS = 1000;

/**
 * Creates a pool. Addresses must have been validated (see upstream-address.ts); invalid ones are omitted.
 * @param sharedMemory Memory of the whole process; without it, the pool's counts cover only this thread.
 */
export function createUpstreamPool(
	settings: UpstreamSettings,
	sharedMemory?: SharedPoolMemory,
	deps: PoolDeps = PLAIN_POOL_DEPS,
	onAddressesFound?: (addresses: readonly string[]) => void,
): OwnedUpstreamPool {
	return new Pool(settings, sharedMemory, deps, onAddressesFound);
}

class Pool implements OwnedUpstreamPool, BalancerView, ConnectorDeps {
	readonly settings: UpstreamSettings;
	readonly pieceMemory: PieceMemory = new PieceMemory();
	readonly requestBodyMemory: RequestBodyMemory;
	readonly threadCount: number;
	readonly #connectorFactory: ConnectorFactory;
	readonly #deps: PoolDeps;
	readonly #memory: PoolMemory;
	readonly #chooseUpstream: UpstreamChoice;
	readonly #retryBudget: RetryBudget;
	/** True if retries are enabled, so that requests are counted for the retry budget. */
	readonly #countsForBudget: boolean;
	readonly #dynamicAddresses: DynamicAddresses | undefined;
	readonly #upgradedStreams = new UpgradedStreams();
	readonly #upstreams: PooledUpstream[] = [];
	/** True if health checks or limits can make an upstream unavailable. */
	readonly #isGuarded: boolean;
	readonly #slowStartMs: number;
	readonly #passiveHealth: PassiveHealth | undefined;
	/** True if the balancing policy uses latencies. */
	readonly #isMeasured: boolean;
	/** The upstreams of dynamic addresses, by address. */
	readonly #resolvedUpstreams = new Map<string, PooledUpstream>();
	/** The list of dynamic addresses that the last lookup returned. */
	#lastAddresses: readonly string[] | undefined = undefined;
	/** The upstreams of {@link #lastAddresses}. */
	#lastResolvedUpstreams: readonly PooledUpstream[] = [];
	/** The read buffer, created with the first connection, because most pools of a large configuration never open one. */
	#readBuffer: Buffer | undefined = undefined;
	#sweepTimer: NodeJS.Timeout | undefined = undefined;
	#isClosed = false;
	/** Counts requests that were refused because the upstreams were overloaded; created with the first one. */
	#shedCounter: EventCounter | undefined = undefined;
	/** The relay, opened for the first large body, and closed with the last connection; null if not available. */
	#relay: SocketRelay | null | undefined = undefined;
	// The upstreams among which the current selection chooses.
	#candidates: readonly PooledUpstream[];
	#avoidedUpstreams: readonly Upstream[] | undefined = undefined;
	#selectionTime = 0;
	/** True while `select` tries to pass over upstreams in slow start, so that they get fewer requests. */
	#isRamping = false;
	/** True if the current selection has passed over an upstream only because of its adaptive limit. */
	#hasReachedLimit = false;

	constructor(
		settings: UpstreamSettings,
		sharedMemory: SharedPoolMemory | undefined,
		deps: PoolDeps,
		onAddressesFound: ((addresses: readonly string[]) => void) | undefined,
	) {
		this.settings = settings;
		this.threadCount = sharedMemory?.threads ?? 1;
		this.#deps = deps;
		this.requestBodyMemory = deps.requestBodyMemory ?? new RequestBodyMemory(bufferedBytesPerThread(this.threadCount));
		this.#connectorFactory = new ConnectorFactory(settings, this);
		this.#memory = new PoolMemory(settings, sharedMemory);
		this.#retryBudget = new RetryBudget(this.#memory, settings.retry_budget);
		this.#countsForBudget = settings.retries !== undefined || settings.retry_duration !== undefined;
		this.#slowStartMs = settings.slow_start ?? 0;
		this.#passiveHealth = passiveHealthOf(settings);
		this.#isMeasured = usesLatency(settings);
		this.#isGuarded =
			settings.health !== undefined ||
			(settings.fail_duration ?? 0) > 0 ||
			(settings.unhealthy_request_count ?? 0) > 0 ||
			settings.circuit !== undefined ||
			settings.shed !== undefined;
		this.#chooseUpstream = compilePoolBalance(settings, {
			clientIp: x => deps.clientIp(x),
			trustsPeer: x => deps.trustsPeer(x),
		});
		for (const text of settings.to) {
			const parsed = parseUpstream(text);
			if (parsed.kind !== 'static') continue;
			for (const address of parsed.addresses) {
				this.#upstreams.push(this.#createUpstream(address, this.#upstreams.length));
			}
		}
		this.#candidates = this.#upstreams;
		this.#dynamicAddresses = settings.dynamic && new DynamicAddresses(settings.dynamic, onAddressesFound);
	}

	get idleConnections(): number {
		let sum = 0;
		for (const upstream of this.#allUpstreams()) sum += upstream.connector.idleCount;
		return sum;
	}

	get inFlight(): number {
		let sum = 0;
		for (const upstream of this.#allUpstreams()) sum += upstream.localActive;
		return sum;
	}

	select(
		x: Exchange,
		avoidedUpstreams?: readonly Upstream[],
		resolvedAddresses?: readonly string[],
	): Upstream | undefined {
		const candidates = resolvedAddresses === undefined ? this.#upstreams : this.#upstreamsOf(resolvedAddresses);
		if (
			candidates.length === 1 &&
			avoidedUpstreams === undefined &&
			!this.#isGuarded &&
			this.settings.balance === undefined
		) {
			return candidates[0];
		}
		this.#candidates = candidates;
		this.#avoidedUpstreams = avoidedUpstreams;
		this.#hasReachedLimit = false;
		if (this.#isGuarded) this.#selectionTime = processClockNow();
		this.#isRamping = this.#slowStartMs > 0;
		const chosen = candidates[this.#chooseUpstream(this, x)];
		if (chosen || !this.#isRamping) return chosen;
		// No other upstream is available, so an upstream in slow start gets the request.
		this.#isRamping = false;
		return candidates[this.#chooseUpstream(this, x)];
	}

	countShed(): boolean {
		if (!this.#hasReachedLimit) return false;
		this.#memory.countShed();
		this.#shedCounter ??= this.#deps.shedCounter?.(this.settings.name ?? this.settings.to.join(' '));
		this.#shedCounter?.add();
		return true;
	}

	lookUp(names: readonly string[]): readonly string[] | undefined | Promise<readonly string[] | undefined> {
		return this.#dynamicAddresses?.lookUp(names);
	}

	mayRetry(upstream: Upstream, isFree: boolean): boolean {
		if (!isFree && !this.#retryBudget.takeRetry(processClockNow())) return false;
		this.#deps.upstreamObserver?.recordRetry(upstream.address);
		return true;
	}

	pause(x: Exchange, milliseconds: number): Promise<boolean> {
		if (x.isGone) return Promise.resolve(false);
		this.#memory.addWaiting(1);
		return new Promise(resolve => {
			let isOver = false;
			const end = () => {
				if (isOver) return;
				isOver = true;
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

	registerStream(close: () => void, delayMs: number): () => void {
		return this.#upgradedStreams.register(close, delayMs);
	}

	setInUse(isUsed: boolean): void {
		if (isUsed) this.#upgradedStreams.revive();
		else this.#upgradedStreams.retire();
	}

	send(x: Exchange, upstream: Upstream, request: UpstreamRequest, outcome: UpstreamOutcome): void {
		if (this.#countsForBudget) this.#retryBudget.addRequest();
		new UpstreamCall(x, upstream as PooledUpstream, request, outcome, this.#deps);
	}

	close(): void {
		this.#isClosed = true;
		if (this.#sweepTimer) clearInterval(this.#sweepTimer);
		this.#sweepTimer = undefined;
		for (const upstream of this.#allUpstreams()) upstream.connector.close();
		this.#resolvedUpstreams.clear();
		this.#lastAddresses = undefined;
		this.#dynamicAddresses?.close();
		this.#closeRelay();
	}

	/** Closes the relay. Bodies in progress continue without it. */
	#closeRelay(): void {
		this.#relay?.close();
		if (this.#relay) this.#relay = undefined;
	}

	// Implements BalancerView, through which the balancing policy sees {@link #candidates} during `select`.

	get size(): number {
		return this.#candidates.length;
	}

	isAvailable(index: number): boolean {
		const upstream = this.#candidates[index]!;
		if (this.#avoidedUpstreams?.includes(upstream)) return false;
		if (!this.#isGuarded) return true;
		if (!upstream.isAvailable(this.#selectionTime)) return false;
		if (this.#isRamping) {
			const share = upstream.record?.health.trafficShare(this.#selectionTime) ?? 1;
			if (share < 1 && Math.random() >= share) return false;
		}
		if (upstream.admitsRequest(this.#selectionTime)) return true;
		this.#hasReachedLimit = true;
		return false;
	}

	requestsInFlight(index: number): number {
		return this.#candidates[index]!.active;
	}

	addressOf(index: number): string {
		return this.#candidates[index]!.dial;
	}

	latencyMs(index: number): number | undefined {
		return this.#candidates[index]!.record?.health.latencyMs(processClockNow());
	}

	nextTurn(): number {
		return this.#memory.nextTurn();
	}

	random(bound: number): number {
		return Math.floor(Math.random() * bound);
	}

	// Implements ConnectorDeps.

	readonly readBuffer = (): Buffer => {
		// On Windows, reads of several sockets are in progress at the same time, so each needs a buffer of its own.
		const { transport } = this.settings;
		const bufferBytes = (transport?.type === 'http' ? transport.read_buffer : undefined) ?? DEFAULT_READ_BYTES;
		if (process.platform === 'win32') return Buffer.allocUnsafeSlow(bufferBytes);
		this.#readBuffer ??= Buffer.allocUnsafeSlow(bufferBytes);
		return this.#readBuffer;
	};

	readonly openRelay = (): SocketRelay | undefined => {
		if (this.#relay === undefined && !this.#isClosed) this.#relay = SocketRelay.open() ?? null;
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
		if (this.#sweepTimer !== undefined || this.#isClosed) return;
		const intervalMs = Math.min(MAX_SWEEP_INTERVAL_MS, Math.max(50, keepAliveOf(this.settings).timeoutMs / 4));
		this.#sweepTimer = setInterval(() => this.#sweep(), intervalMs);
		this.#sweepTimer.unref();
	}

	#createUpstream(address: UpstreamAddress, slot: number | undefined): PooledUpstream {
		return new PooledUpstream(
			address,
			this.#connectorFactory.create(address),
			this.#memory,
			slot === undefined ? undefined : this.#createRecord(slot),
			this.#deps.onAvailabilityChange,
		);
	}

	#createRecord(slot: number): UpstreamRecord {
		const { settings } = this;
		const passive = this.#passiveHealth;
		return {
			slot,
			health: new UpstreamHealth(this.#memory, slot, passive, this.#slowStartMs),
			circuit: settings.circuit && new CircuitBreaker(this.#memory, slot, settings.circuit),
			adaptiveLimit: adaptiveLimitOf(settings, this.#memory, slot),
			passive,
			maxRequests: settings.unhealthy_request_count ?? 0,
			isGuarded: this.#isGuarded,
			isMeasured: this.#isMeasured,
		};
	}

	#upstreamsOf(addressTexts: readonly string[]): readonly PooledUpstream[] {
		// The same array means the same addresses: a lookup returns a new array only if something has changed.
		if (addressTexts === this.#lastAddresses) return this.#lastResolvedUpstreams;
		const upstreams: PooledUpstream[] = [];
		const now = processClockNow();
		for (const text of addressTexts) {
			const address = parseResolvedUpstream(text);
			if (!address) continue;
			let upstream = this.#resolvedUpstreams.get(address.address);
			if (upstream) {
				// Moves the entry to the end: the first entry is always the least recently used one, which is dropped first.
				this.#resolvedUpstreams.delete(address.address);
				if (upstream.record) this.#memory.markUsed(upstream.record.slot, now);
			} else {
				upstream = this.#createUpstream(address, this.#memory.claimSlot(hashText(address.address), now));
				if (this.#isClosed) upstream.connector.close();
				if (this.#resolvedUpstreams.size >= MAX_RESOLVED_UPSTREAMS) this.#dropOldest();
			}
			this.#resolvedUpstreams.set(address.address, upstream);
			upstreams.push(upstream);
		}
		if (this.#dynamicAddresses) {
			this.#lastAddresses = addressTexts;
			this.#lastResolvedUpstreams = upstreams;
		}
		return upstreams;
	}

	#dropOldest(): void {
		for (const [text, upstream] of this.#resolvedUpstreams) {
			upstream.connector.close();
			this.#resolvedUpstreams.delete(text);
			return;
		}
	}

	#sweep(): void {
		const now = performance.now();
		if (this.#connectorFactory.takeReplaced()) this.#reconnect();
		for (const upstream of this.#allUpstreams()) upstream.connector.sweep(now);
		if (this.idleConnections > 0) return;
		clearInterval(this.#sweepTimer);
		this.#sweepTimer = undefined;
		this.#closeRelay();
	}

	/** Makes further requests use new connections. Busy connections close after their last request. */
	#reconnect(): void {
		for (const upstream of this.#allUpstreams()) {
			upstream.connector.close();
			upstream.connector = this.#connectorFactory.create(upstream.upstreamAddress);
		}
	}

	*#allUpstreams(): IterableIterator<PooledUpstream> {
		yield* this.#upstreams;
		yield* this.#resolvedUpstreams.values();
	}
}
