/** The registry of all threads' pools, on the main thread: their memory, health checks and reports. */

import { canonicalJson } from '../../compiler/document/canonical-json.ts';
import type { SharedPool } from '../../compiler/document/shared-pools.ts';
import {
	parseResolvedUpstream,
	parseUpstream,
} from '../../compiler/modules/directives/reverse-proxy/upstream-address.ts';
import type { UpstreamSettings } from '../../compiler/modules/directives/reverse-proxy/upstream-pool.ts';
import type { LogLevel } from '../logs/log-entry.ts';
import type { UpstreamState } from '../main/handover/handed-state.ts';
import type { PoolWatcher } from '../threads/shared-rows.ts';
import { type AdaptiveLimit, adaptiveLimitOf } from './adaptive-limit.ts';
import { CheckGate } from './check-gate.ts';
import { CircuitBreaker, type CircuitState } from './circuit-breaker.ts';
import type { HealthChecker } from './health-checker.ts';
import { type PassiveHealth, passiveHealthOf } from './passive-health.ts';

import { hashText, PoolMemory, usesLatency } from './pool-memory.ts';
import { processClockNow } from './process-clock.ts';
import { SheddingWatch } from './shedding-watch.ts';
import type { TlsProvider } from './transports/tls-provision.ts';
import { UpstreamHealth } from './upstream-health.ts';

/** The state of one upstream. */
export interface UpstreamReport {
	readonly address: string;
	/** Name of the pool; undefined if it has none. */
	readonly pool: string | undefined;
	/** Number of requests in flight. */
	readonly requests: number;
	/** Number of failures within `fail_duration`. */
	readonly fails: number;
	/** False if active checks or passive failures make the upstream unavailable. */
	readonly healthy: boolean;
	readonly circuit: CircuitState;
	/**
	 * Decaying peak of the latency, which is the time until the response head, in milliseconds; undefined if not measured or
	 * unknown.
	 */
	readonly latency: number | undefined;
	/**
	 * The adaptive limit of requests that wait for their response heads; undefined if the pool does not have the setting `shed`.
	 */
	readonly concurrencyLimit?: number | undefined;
	/**
	 * True if the pool currently refuses requests because its upstreams are overloaded; undefined if the pool does not have the
	 * setting `shed`.
	 */
	readonly isShedding?: boolean | undefined;
}

export interface PoolRegistryDeps {
	log(level: LogLevel, logger: string, message: string, fields?: { readonly [name: string]: unknown }): void;
	/** Expands placeholders that do not depend on a request. */
	expand(text: string): string;
	/** Provides the certificates and keys for TLS to upstreams, except those in files. */
	readonly provideTls?: TlsProvider;
	/** The process's environment, for proxy variables. */
	readonly environment: { readonly [name: string]: string | undefined };
}

interface RegisteredUpstream {
	readonly address: string;
	/**
	 * The key of the upstream's state: its address and the settings that determine the state. A new upstream takes over the state
	 * of an earlier upstream with the same key. Undefined if the upstream has no state to keep.
	 */
	readonly stateKey: string | undefined;
	readonly slot: number;
	readonly health: UpstreamHealth;
	readonly circuit: CircuitBreaker | undefined;
	readonly adaptiveLimit: AdaptiveLimit | undefined;
}

interface RegisteredPool {
	readonly settings: UpstreamSettings;
	readonly memory: PoolMemory;
	readonly upstreams: readonly RegisteredUpstream[];
	/** The addresses that contain placeholders, as written in the configuration. */
	readonly templates: readonly string[];
	/** The addresses that the pool's dynamic source has found, by thread. */
	readonly dynamicAddresses: Map<number, readonly string[]>;
	checker: HealthChecker | undefined;
	/** Undefined unless the pool has the setting `shed`. */
	readonly sheddingWatch: SheddingWatch | undefined;
}

/** The state that is reported for an address whose state is not known. */
const UNKNOWN_STATE = { requests: 0, fails: 0, healthy: true, circuit: 'closed', latency: undefined } as const;

/**
 * Maximum number of upstream states that are kept after their pool was closed. They are kept because a pool whose only thread has
 * died is opened again.
 */
const MAX_REMEMBERED_STATES = 4096;

/** Milliseconds between two checks of whether a pool refuses requests. */
const SHEDDING_CHECK_MS = 1000;

const SHEDDING_LOGGER = 'http.reverse_proxy.shed';

/** Maximum concurrent health checks. */
const MAX_CONCURRENT_CHECKS = 256;

export class PoolRegistry implements PoolWatcher {
	readonly #deps: PoolRegistryDeps;
	readonly #poolsByKey = new Map<string, RegisteredPool>();
	readonly #rememberedStates = new Map<string, Int32Array>();
	/** The newest state of each upstream, by its key. */
	readonly #statesByKey = new Map<string, Int32Array>();
	readonly #checkGate = new CheckGate(MAX_CONCURRENT_CHECKS);
	/** The named pools of the configuration, whether or not a thread has opened them. */
	#namedPools: readonly SharedPool[] = [];
	#isClosed = false;
	/** Runs while any pool has the setting `shed`. */
	#sheddingTimer: NodeJS.Timeout | undefined = undefined;

	constructor(deps: PoolRegistryDeps) {
		this.#deps = deps;
	}

	onPoolOpened(key: string, settings: UpstreamSettings, buffer: SharedArrayBuffer, rowCount: number): void {
		const memory = new PoolMemory(settings, { buffer, rows: rowCount, row: 0 });
		const passiveHealth = passiveHealthOf(settings);
		const stateSettings = hasState(settings)
			? canonicalJson({ ...settings, to: [], name: '', balance: null, dynamic: null })
			: undefined;
		const upstreams: RegisteredUpstream[] = [];
		const templates: string[] = [];
		for (const text of settings.to) {
			const parsed = parseUpstream(text);
			if (parsed.kind !== 'static') {
				templates.push(text);
				continue;
			}
			for (const { address } of parsed.addresses) {
				const slot = upstreams.length;
				upstreams.push({
					address,
					stateKey: stateSettings && `${address} ${stateSettings}`,
					slot,
					...createStateReaders(settings, memory, slot, passiveHealth),
				});
			}
		}
		for (const upstream of upstreams) this.#copyState(memory, upstream);
		const pool: RegisteredPool = {
			settings,
			memory,
			upstreams,
			templates,
			dynamicAddresses: new Map(),
			checker: undefined,
			sheddingWatch: settings.shed && new SheddingWatch(memory.shedCount),
		};
		this.#poolsByKey.set(key, pool);
		if (pool.sheddingWatch)
			this.#sheddingTimer ??= setInterval(() => this.#reportShedding(), SHEDDING_CHECK_MS).unref();
		if (settings.health !== undefined && upstreams.length > 0) void this.#beginChecks(key, pool);
	}

	onPoolClosed(key: string): void {
		const pool = this.#poolsByKey.get(key);
		if (!pool) return;
		this.#poolsByKey.delete(key);
		if (!Array.from(this.#poolsByKey.values()).some(({ sheddingWatch }) => sheddingWatch)) this.#stopSheddingTimer();
		pool.checker?.stop();
		for (const { stateKey, slot } of pool.upstreams) {
			if (stateKey === undefined) continue;
			const state = stateOf(pool.memory, slot);
			if (this.#statesByKey.get(stateKey)?.buffer === state.buffer) this.#statesByKey.delete(stateKey);
			if (this.#rememberedStates.size >= MAX_REMEMBERED_STATES)
				this.#rememberedStates.delete(this.#rememberedStates.keys().next().value!);
			this.#rememberedStates.set(stateKey, state.slice());
		}
	}

	onAddressesFound(key: string, thread: number, addresses: readonly string[]): void {
		this.#poolsByKey.get(key)?.dynamicAddresses.set(thread, addresses);
	}

	onThreadEnded(thread: number): void {
		for (const { dynamicAddresses } of this.#poolsByKey.values()) dynamicAddresses.delete(thread);
	}

	/** Returns the states of at most {@link MAX_REMEMBERED_STATES} upstreams, for a successor of this process. */
	exportStates(): UpstreamState[] {
		const states: UpstreamState[] = [];
		for (const [key, words] of [...this.#statesByKey, ...this.#rememberedStates].slice(0, MAX_REMEMBERED_STATES)) {
			const wordsCopy = words.slice();
			states.push([key, Buffer.from(wordsCopy.buffer, 0, wordsCopy.byteLength).toString('base64')]);
		}
		return states;
	}

	/**
	 * Takes over the states that the predecessor returned from {@link exportStates}: circuits, passive failures and results of
	 * health checks. Both processes have the same clock.
	 */
	restoreStates(states: readonly UpstreamState[]): void {
		for (const [key, text] of states) {
			const bytes = Buffer.from(text, 'base64');
			const words = new Int32Array(bytes.length >> 2);
			bytes.copy(new Uint8Array(words.buffer), 0, 0, words.byteLength);
			const state = this.#statesByKey.get(key);
			if (state === undefined) this.#rememberedStates.set(key, words);
			else if (state.length === words.length) state.set(words);
		}
	}

	/** Sets the named pools of the configuration, which {@link allReports} includes. */
	setNamedPools(pools: readonly SharedPool[]): void {
		this.#namedPools = pools;
	}

	/**
	 * Returns the upstreams of {@link reports}, including those that dynamic sources have found, and the upstreams of named pools
	 * that no thread has opened.
	 */
	allReports(): UpstreamReport[] {
		const reports = this.reports(true);
		const openPoolNames = new Set(Array.from(this.#poolsByKey.values(), ({ settings }) => settings.name));
		const knownAddresses = new Set(reports.map(({ address }) => address));
		for (const { pool, to } of this.#namedPools) {
			if (pool !== undefined && openPoolNames.has(pool)) continue;
			for (const address of to.flatMap(addressesOf)) {
				if (pool === undefined && knownAddresses.has(address)) continue;
				knownAddresses.add(address);
				reports.push({ address, pool, ...UNKNOWN_STATE });
			}
		}
		return reports;
	}

	/**
	 * Returns the upstreams of all open pools, in the order of the configuration within each pool. If
	 * `includeDynamic` is true, the upstreams that a pool's dynamic source has found follow.
	 */
	reports(includeDynamic = false): UpstreamReport[] {
		const now = processClockNow();
		const reports: UpstreamReport[] = [];
		// Threads open pools in varying order. The report must not depend on it, so the pools are sorted.
		const pools = [...this.#poolsByKey].sort(
			([aKey, a], [bKey, b]) => compareTexts(a.settings.name ?? '', b.settings.name ?? '') || compareTexts(aKey, bKey),
		);
		for (const [, registeredPool] of pools) {
			const { settings, memory, upstreams, templates, dynamicAddresses: addressesByThread } = registeredPool;
			const pool = settings.name;
			for (const upstream of upstreams) {
				reports.push(reportOf(upstream, registeredPool, now));
			}
			for (const address of templates) {
				reports.push({ address, pool, ...UNKNOWN_STATE });
			}
			if (!includeDynamic) continue;
			for (const text of new Set([...addressesByThread.values()].flat().sort())) {
				const address = parseResolvedUpstream(text)?.address;
				if (address === undefined) continue;
				const slot = memory.findSlot(hashText(address));
				if (slot === undefined) reports.push({ address, pool, ...UNKNOWN_STATE });
				else
					reports.push(reportOf({ address, slot, ...createStateReaders(settings, memory, slot) }, registeredPool, now));
			}
		}
		return reports;
	}

	/** Number of requests that wait for an upstream. */
	get waiting(): number {
		let sum = 0;
		for (const { memory } of this.#poolsByKey.values()) sum += memory.waitingCount;
		return sum;
	}

	/** Stops all health checks. */
	close(): void {
		this.#isClosed = true;
		this.#stopSheddingTimer();
		for (const { checker } of this.#poolsByKey.values()) checker?.stop();
	}

	/** Starts a pool's health checks. The code for them is loaded when the first pool needs it. */
	async #beginChecks(key: string, pool: RegisteredPool): Promise<void> {
		try {
			const { HealthChecker } = await import('./health-checker.ts');
			if (this.#isClosed || this.#poolsByKey.get(key) !== pool) return;
			pool.checker = new HealthChecker(pool.settings, pool.upstreams, this.#deps, this.#checkGate);
		} catch (error) {
			const cause = error instanceof Error ? error.message : String(error);
			this.#deps.log('error', 'http.reverse_proxy', 'health checks cannot be started', { cause });
		}
	}

	#stopSheddingTimer(): void {
		clearInterval(this.#sheddingTimer);
		this.#sheddingTimer = undefined;
	}

	/** Logs which pools have begun or ceased to refuse requests since the last call. */
	#reportShedding(): void {
		const now = performance.now();
		for (const { settings, memory, upstreams, sheddingWatch } of this.#poolsByKey.values()) {
			const change = sheddingWatch?.update(memory.shedCount, now);
			if (!change) continue;
			const names = { ...(settings.name !== undefined && { pool: settings.name }), upstreams: settings.to };
			if (change.change === 'begun') {
				const limits = upstreams.map(({ adaptiveLimit }) => adaptiveLimit?.limit);
				this.#deps.log('warn', SHEDDING_LOGGER, 'upstreams are overloaded: requests are refused', { ...names, limits });
			} else {
				const fields = { ...names, refused: change.refused, duration: change.durationMs / 1000 };
				this.#deps.log('info', SHEDDING_LOGGER, 'upstreams are no longer overloaded', fields);
			}
		}
	}

	/**
	 * Copies the state of the same upstream from the newest pool that has it, so that unrelated changes of the configuration do not
	 * reset it.
	 */
	#copyState(memory: PoolMemory, { stateKey, slot }: RegisteredUpstream): void {
		if (stateKey === undefined) return;
		const state = stateOf(memory, slot);
		const previousState = this.#statesByKey.get(stateKey) ?? this.#rememberedStates.get(stateKey);
		this.#rememberedStates.delete(stateKey);
		if (previousState?.length === state.length) state.set(previousState);
		this.#statesByKey.set(stateKey, state);
	}
}

/** Creates the objects that interpret the health and circuit state of one upstream. */
function createStateReaders(
	settings: UpstreamSettings,
	memory: PoolMemory,
	slot: number,
	passiveHealth: PassiveHealth | undefined = passiveHealthOf(settings),
): Pick<RegisteredUpstream, 'health' | 'circuit' | 'adaptiveLimit'> {
	return {
		health: new UpstreamHealth(memory, slot, passiveHealth, settings.slow_start ?? 0),
		circuit: settings.circuit && new CircuitBreaker(memory, slot, settings.circuit),
		adaptiveLimit: adaptiveLimitOf(settings, memory, slot),
	};
}

function reportOf(
	{ address, slot, health, circuit, adaptiveLimit }: Omit<RegisteredUpstream, 'stateKey'>,
	{ settings, memory, sheddingWatch }: RegisteredPool,
	now: number,
): UpstreamReport {
	return {
		address,
		pool: settings.name,
		requests: memory.requestsInFlight(slot),
		fails: health.countFails(now),
		healthy: !health.isDown && health.isPassing(now),
		circuit: circuit?.state ?? 'closed',
		latency: health.latencyMs(now),
		concurrencyLimit: adaptiveLimit?.limit,
		isShedding: sheddingWatch?.isShedding,
	};
}

/** Returns the addresses that an upstream of the configuration denotes. An address with placeholders is returned as written. */
function addressesOf(text: string): readonly string[] {
	const parsed = parseUpstream(text);
	return parsed.kind === 'static' ? parsed.addresses.map(({ address }) => address) : [text];
}

/** Reports whether a pool's upstreams have any state; most pools have no settings that need it. */
function hasState(settings: UpstreamSettings): boolean {
	const { health, fail_duration, circuit, shed } = settings;
	const hasChecks = health !== undefined || fail_duration !== undefined || circuit !== undefined;
	return hasChecks || shed !== undefined || usesLatency(settings);
}

function compareTexts(a: string, b: string): number {
	return a < b ? -1 : a > b ? 1 : 0;
}

function stateOf(memory: PoolMemory, slot: number): Int32Array {
	const at = memory.stateIndex(slot);
	return memory.words.subarray(at, at + memory.layout.stateSize);
}
