/**
 * A cluster of many machines with one Redis: clients whose requests are spread over all machines, purges, and machines that fail and
 * return. Returns what was observed. The same settings yield the same result.
 */
import type { Rate, UnavailablePolicy } from '../../compiler/modules/directives/rate-limit/rate-limiter.ts';
import type { PurgeSelection } from '../../runtime/cache/purging.ts';
import { seededRandom } from '../zipf-trace.ts';
import type { RedisCosts } from './redis-costs.ts';
import { Samples } from './samples.ts';
import { type MachineDisk, SimulatedProcess } from './simulated-process.ts';
import { type NetworkSettings, type RedisLoad, SimulatedNetwork, SimulatedRedis } from './simulated-redis.ts';
import { type SimulatedAction, SimulatedTime } from './simulated-time.ts';

/** The machines and the load of a simulation. */
export interface ClusterSettings {
	readonly seed: number;
	readonly machines: number;
	/** Length of the observation in seconds. It begins after all machines have joined. */
	readonly seconds: number;
	/** Number of clients. The numbers of requests that they send follow Zipf's law. */
	readonly clients: number;
	/** Requests per second of all these clients together. */
	readonly requestRate: number;
	/** Number of further clients that exceed the limit, and the requests per second of each of them. */
	readonly excessiveClients: number;
	readonly excessiveRate: number;
	/** The limit: requests per minute, of which `burst` may come at once. */
	readonly limit: { readonly perMinute: number; readonly burst: number; readonly batch: number };
	readonly onError: UnavailablePolicy;
	/** Maximum milliseconds for which a request waits for Redis. */
	readonly waitMs: number;
	/** Maximum number of keys in the table of a machine. */
	readonly maxKeys: number;
	/** Purges per second. */
	readonly purgeRate: number;
	/** Fraction of the machines that are failing at any time, and the mean length of a failure in seconds. */
	readonly failingShare: number;
	readonly failureSeconds: number;
}

/** What a simulation of a cluster has shown. */
export interface ClusterResult {
	readonly settings: ClusterSettings;
	readonly requests: number;
	readonly admitted: number;
	/** Requests of excessive clients that were admitted, and the number that the limit alone would have admitted. */
	readonly excessiveAdmitted: number;
	readonly excessiveAllowed: number;
	/** For each excessive client: the highest number of requests beyond the limit at any time. */
	readonly overshoot: Samples;
	/**
	 * The highest number of requests beyond the limit for any client, and the number that the documentation promises for `on_error
	 * deny`: a batch for each process.
	 */
	readonly highestOvershoot: number;
	readonly overshootBound: number;
	/** Milliseconds from the moment at which usage has to be reported until Redis has counted it. */
	readonly reportDelays: Samples;
	/** Milliseconds for which requests waited for Redis. */
	readonly waits: Samples;
	readonly load: RedisLoad;
	/** Number of purges, and number of purges whose answer said that they were not shared yet. */
	readonly purges: number;
	readonly purgesNotShared: number;
	/**
	 * Milliseconds from a purge on a healthy machine until another healthy machine has applied it, and milliseconds until any purge
	 * was answered.
	 */
	readonly propagation: Samples;
	readonly purgeAnswers: Samples;
	/** Number of machines that a purge had not reached when it was answered. */
	readonly unconfirmed: Samples;
	/** Number of pairs of a purge and a machine that this purge has never reached. */
	readonly lostPurges: number;
	/** Number of failures by kind, and number of processes, including those that replaced a crashed one. */
	readonly failures: { readonly [kind in FailureKind]: number };
	readonly processes: number;
}

/** What happens to a machine: its process crashes, it cannot reach Redis, or its network is slow. */
type FailureKind = 'crashed' | 'cut off' | 'slow';

interface Machine {
	readonly host: string;
	readonly disk: MachineDisk;
	process: SimulatedProcess | undefined;
	failure: FailureKind | undefined;
	/** Time since which the machine has been healthy. */
	healthySince: number;
	/**
	 * The tags of the purges that the machine has applied, and the time at which it last purged everything, which includes all
	 * earlier purges.
	 */
	readonly purged: Set<string>;
	completePurgeAt: number;
}

/** Factor by which messages of a slow machine take longer. */
const SLOWNESS = 100;
/** Milliseconds within which a machine that has failed is connected to Redis again. */
const MAX_RECOVERY_MS = 3000;
/** Exponent of Zipf's law. The larger it is, the more requests come from popular clients. */
const ZIPF_EXPONENT = 0.9;
/** Seconds within which the machines join, and seconds after the observation in which all machines are healthy again. */
const JOIN_SECONDS = 6;
const SETTLING_SECONDS = 12;

const NETWORK: NetworkSettings = { delayMs: 0.25, meanJitterMs: 0.05, lossShare: 1e-4, retransmissionMs: 200 };
/** A cluster's key, in Base64. */
const KEY = Buffer.alloc(32, 7).toString('base64');

/** Simulates a cluster. Resolves to what was observed. */
export async function simulateCluster(settings: ClusterSettings, costs: RedisCosts): Promise<ClusterResult> {
	const simulation = new ClusterSimulation(settings, costs);
	return simulation.run();
}

class ClusterSimulation {
	readonly #settings: ClusterSettings;
	readonly #random: () => number;
	readonly #time = new SimulatedTime();
	readonly #redis: SimulatedRedis;
	readonly #rate: Rate;
	readonly #machines: Machine[] = [];
	/** For each client, the time at which its whole burst is available again, counting all of its admitted requests. */
	readonly #fullAtTimes: Float64Array;
	readonly #highestExcess: Float64Array;
	readonly #purgeStarts = new Map<string, number>();
	/** The purges that a healthy machine has begun. */
	readonly #measuredPurges = new Set<string>();
	/** The purges that Redis has accepted, or will get once the machines that began them can reach it again. */
	readonly #sharedPurges = new Set<string>();
	readonly #unsharedPurges = new Map<string, SimulatedProcess>();
	#isObserving = false;
	#requests = 0;
	#admitted = 0;
	#excessiveAdmitted = 0;
	readonly #reportDelays = new Samples();
	readonly #waits = new Samples();
	readonly #propagation = new Samples();
	readonly #purgeAnswers = new Samples();
	readonly #unconfirmed = new Samples();
	readonly #failures = { crashed: 0, 'cut off': 0, slow: 0 };
	#processes = 0;

	constructor(settings: ClusterSettings, costs: RedisCosts) {
		this.#settings = settings;
		this.#random = seededRandom(settings.seed);
		this.#redis = new SimulatedRedis(this.#time, costs);
		const { perMinute, burst, batch } = settings.limit;
		const intervalMs = 60_000 / perMinute;
		this.#rate = {
			intervalMs,
			capacityMs: burst * intervalMs,
			maxDelayMs: 0,
			shared: { batchMs: batch * intervalMs, waitMs: settings.waitMs, onError: settings.onError },
		};
		this.#fullAtTimes = new Float64Array(settings.clients + settings.excessiveClients);
		this.#highestExcess = new Float64Array(settings.clients + settings.excessiveClients);
	}

	async run(): Promise<ClusterResult> {
		const { machines, seconds, requestRate, excessiveClients, excessiveRate, purgeRate, failingShare } = this.#settings;
		for (let index = 0; index < machines; index++) {
			const machine: Machine = {
				host: `machine-${String(index).padStart(4, '0')}`,
				disk: { purgePosition: undefined },
				process: undefined,
				failure: undefined,
				healthySince: 0,
				purged: new Set(),
				completePurgeAt: 0,
			};
			this.#machines.push(machine);
			this.#time.after(this.#random() * 5000, () => this.#startProcess(machine));
		}
		await this.#time.run(JOIN_SECONDS * 1000);
		this.#isObserving = true;
		const loadBefore = structuredClone(this.#redis.load);
		this.#repeat(requestRate, () => this.#sendRequest(this.#popularClient()));
		this.#repeat(excessiveClients * excessiveRate, () =>
			this.#sendRequest(this.#settings.clients + Math.floor(this.#random() * excessiveClients)),
		);
		this.#repeat(purgeRate, () => this.#purge());
		this.#repeat((machines * failingShare) / this.#settings.failureSeconds, () => this.#failMachine());
		await this.#time.run(seconds * 1000);
		const load = loadSince(loadBefore, this.#redis.load);
		this.#isObserving = false;
		for (const machine of this.#machines) this.#healMachine(machine);
		await this.#time.run(SETTLING_SECONDS * 1000);
		return this.#result(load);
	}

	#result(load: RedisLoad): ClusterResult {
		const { limit, excessiveClients, clients, seconds, excessiveRate } = this.#settings;
		const overshoot = new Samples();
		let highestOvershoot = 0;
		for (const [client, excessMs] of this.#highestExcess.entries()) {
			const requests = Math.max(0, excessMs / this.#rate.intervalMs);
			highestOvershoot = Math.max(highestOvershoot, requests);
			if (client >= clients) overshoot.add(requests);
		}
		// A purge that is not shared yet is lost if its process ends.
		for (const [tag, process] of this.#unsharedPurges) if (process.isRunning) this.#sharedPurges.add(tag);
		let lostPurges = 0;
		for (const machine of this.#machines) {
			for (const tag of this.#sharedPurges) {
				const purgedAt = this.#purgeStarts.get(tag)!;
				if (!machine.purged.has(tag) && machine.completePurgeAt < purgedAt) lostPurges++;
			}
		}
		const allowedEach = Math.min(limit.burst + (limit.perMinute / 60) * seconds, excessiveRate * seconds);
		return {
			settings: this.#settings,
			requests: this.#requests,
			admitted: this.#admitted,
			excessiveAdmitted: this.#excessiveAdmitted,
			excessiveAllowed: allowedEach * excessiveClients,
			overshoot,
			highestOvershoot: Math.round(highestOvershoot * 10) / 10,
			overshootBound: this.#processes * limit.batch,
			reportDelays: this.#reportDelays,
			waits: this.#waits,
			load,
			purges: this.#sharedPurges.size,
			purgesNotShared: this.#unsharedPurges.size,
			propagation: this.#propagation,
			purgeAnswers: this.#purgeAnswers,
			unconfirmed: this.#unconfirmed,
			lostPurges,
			failures: this.#failures,
			processes: this.#processes,
		};
	}

	/** Repeats an action at random times, `perSecond` times a second on average, until the observation ends. */
	#repeat(perSecond: number, action: SimulatedAction): void {
		if (perSecond === 0) return;
		const next = (): void => {
			this.#time.after((-Math.log(1 - this.#random()) * 1000) / perSecond, () => {
				if (!this.#isObserving) return false;
				next();
				return action();
			});
		};
		next();
	}

	#popularClient(): number {
		const { clients } = this.#settings;
		const exponent = 1 - ZIPF_EXPONENT;
		return Math.floor(((clients ** exponent - 1) * this.#random() + 1) ** (1 / exponent)) - 1;
	}

	#sendRequest(client: number): boolean {
		const machine = this.#machines[Math.floor(this.#random() * this.#machines.length)]!;
		// The load balancer sends no requests to a machine without a process.
		if (!machine.process) return false;
		this.#requests++;
		return machine.process.request(`client ${client}`, isAdmitted => {
			if (isAdmitted) this.#countAdmitted(client);
		});
	}

	#countAdmitted(client: number): void {
		const { now } = this.#time;
		const fullAt = Math.max(this.#fullAtTimes[client]!, now) + this.#rate.intervalMs;
		this.#fullAtTimes[client] = fullAt;
		const excessMs = fullAt - now - this.#rate.capacityMs;
		if (excessMs > this.#highestExcess[client]!) this.#highestExcess[client] = excessMs;
		this.#admitted++;
		if (client >= this.#settings.clients) this.#excessiveAdmitted++;
	}

	#startProcess(machine: Machine): void {
		this.#processes++;
		const network = new SimulatedNetwork(this.#redis, this.#time, NETWORK, KEY, this.#random);
		const { maxKeys } = this.#settings;
		machine.process = new SimulatedProcess(
			machine.host,
			this.#time,
			network,
			KEY,
			{ rate: this.#rate, maxKeys },
			machine.disk,
			{
				onReported: milliseconds => {
					if (this.#isObserving && machine.failure === undefined) this.#reportDelays.add(milliseconds);
				},
				onWaited: milliseconds => this.#waits.add(milliseconds),
				onPurged: selection => this.#onPurged(machine, selection),
			},
		);
	}

	#onPurged(machine: Machine, selection: PurgeSelection): void {
		if (!('tag' in selection)) {
			machine.completePurgeAt = this.#time.now;
			return;
		}
		const purgedAt = this.#purgeStarts.get(selection.tag);
		if (machine.purged.has(selection.tag) || purgedAt === undefined) return;
		machine.purged.add(selection.tag);
		if (this.#isObserving && isHealthySince(machine, purgedAt) && this.#measuredPurges.has(selection.tag))
			this.#propagation.add(this.#time.now - purgedAt);
	}

	#purge(): void {
		const machine = this.#machines[Math.floor(this.#random() * this.#machines.length)]!;
		if (!machine.process) return;
		const tag = `product-${this.#purgeStarts.size}`;
		const startedAt = this.#time.now;
		this.#purgeStarts.set(tag, startedAt);
		if (isHealthySince(machine, startedAt)) this.#measuredPurges.add(tag);
		const { process } = machine;
		process.purge({ tag }).then(
			({ unconfirmed }) => {
				this.#sharedPurges.add(tag);
				this.#purgeAnswers.add(this.#time.now - startedAt);
				this.#unconfirmed.add(unconfirmed.length);
			},
			() => {
				this.#unsharedPurges.set(tag, process);
			},
		);
	}

	#failMachine(): void {
		const machine = this.#machines[Math.floor(this.#random() * this.#machines.length)]!;
		if (machine.failure !== undefined || !machine.process) return;
		const kind = (['crashed', 'cut off', 'slow'] as const)[Math.floor(this.#random() * 3)]!;
		this.#failures[kind]++;
		machine.failure = kind;
		if (kind === 'crashed') {
			machine.process.kill();
			machine.process = undefined;
		} else if (kind === 'cut off') machine.process.network.cutOff();
		else machine.process.network.slowness = SLOWNESS;
		const seconds = -Math.log(1 - this.#random()) * this.#settings.failureSeconds;
		this.#time.after(seconds * 1000, () => this.#healMachine(machine));
	}

	#healMachine(machine: Machine): void {
		if (machine.failure === undefined) return;
		if (machine.failure === 'crashed') this.#startProcess(machine);
		else if (machine.failure === 'cut off') machine.process!.network.heal();
		else machine.process!.network.slowness = 1;
		machine.failure = undefined;
		machine.healthySince = this.#time.now + MAX_RECOVERY_MS;
	}
}

function isHealthySince({ failure, healthySince }: Machine, time: number): boolean {
	return failure === undefined && healthySince < time;
}

/** Returns what a server has done between two moments. */
function loadSince(before: RedisLoad, after: RedisLoad): RedisLoad {
	const kinds = Object.keys(after.commands) as (keyof RedisLoad['commands'])[];
	const commands = { ...after.commands };
	for (const kind of kinds) commands[kind] -= before.commands[kind];
	return {
		commands,
		keys: after.keys - before.keys,
		receivedBytes: after.receivedBytes - before.receivedBytes,
		sentBytes: after.sentBytes - before.sentBytes,
		busyMs: after.busyMs - before.busyMs,
		longestQueue: after.longestQueue,
	};
}
