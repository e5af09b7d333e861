/**
 * A machine of a cluster for tests of shared rate limits, as a process of its own: it decides about random requests with the code of
 * the server, and prints the times at which it has admitted them.
 */
import type { Exchange } from '../../compiler/exchange/exchange.ts';
import type { Rate } from '../../compiler/modules/directives/rate-limit/rate-limiter.ts';
import { UNDECIDED } from '../../compiler/modules/directives/rate-limit/rate-limiter.ts';
import { monotonicNowMs } from '../../runtime/clock/clock.ts';
import { Cluster } from '../../runtime/cluster/cluster.ts';
import { LimitTable, limitTableWords } from '../../runtime/rate-limits/limit-table.ts';
import { LimitTables } from '../../runtime/rate-limits/limit-tables.ts';
import { ThreadRateLimiter } from '../../runtime/rate-limits/thread-rate-limiter.ts';

/** The requests that a machine sends, and its settings. */
export interface MachinePlan {
	readonly address: string;
	/** The cluster's key, in base64. */
	readonly key: string;
	readonly durationMs: number;
	/** The keys of requests, with their limits. All machines send requests for these keys at random times. */
	readonly limits: { readonly [key: string]: Rate };
	/** Mean milliseconds between two requests of a key. */
	readonly pauseMs: number;
}

/** What a machine measures and prints as JSON. */
export interface MachineResult {
	/** Times of all requests, and of the admitted ones, by key, in milliseconds of the clock that all processes share. */
	readonly requests: { readonly [key: string]: readonly number[] };
	readonly admitted: { readonly [key: string]: readonly number[] };
	readonly waits: number;
	readonly longestWaitMs: number;
	readonly fallbacks: number;
	readonly counts: { readonly reports: number; readonly keys: number; readonly failures: number };
}

if (process.argv[2] !== undefined) {
	const result = await runMachine(JSON.parse(process.argv[2]) as MachinePlan);
	process.stdout.write(JSON.stringify(result), () => process.exit());
}

async function runMachine({ address, key, durationMs, limits, pauseMs }: MachinePlan): Promise<MachineResult> {
	const cluster = new Cluster({ address, keys: [key] }, { log: () => {} });
	// Connects before the first request, because connecting takes longer than a machine needs for a batch of requests.
	await cluster.sendCommand(['PING'], 30_000);
	const shared = cluster.limits!;
	const settings = { zone: 'all', maxKeys: 1024, isShared: true } as const;
	const buffer = new SharedArrayBuffer(4 * limitTableWords(settings.maxKeys, true));
	new LimitTables(undefined, () => shared).onLimitsOpened('table', settings, buffer);
	const counts = { waits: 0, fallbacks: 0 };
	const limiter = new ThreadRateLimiter(new LimitTable(buffer, settings.maxKeys, true), {
		counterOf: event => ({
			add: () => {
				if (event === 'waited') counts.waits++;
				if (typeof event === 'object') counts.fallbacks++;
			},
		}),
		reportUsage: place => shared.reportUsage('table', place),
	});
	const admitted: { [key: string]: number[] } = {};
	const requests: { [key: string]: number[] } = {};
	let longestWaitMs = 0;
	const end = performance.now() + durationMs;
	const request = async (name: string, rate: Rate): Promise<void> => {
		requests[name]!.push(monotonicNowMs());
		const x = { startedAt: performance.now(), isGone: false } as Exchange;
		let excessMs = limiter.take(x, name, rate, 1);
		if (excessMs === UNDECIDED) {
			excessMs = await limiter.takeAfterReport(x, name, rate, 1);
			longestWaitMs = Math.max(longestWaitMs, performance.now() - x.startedAt);
		}
		if (excessMs <= 0) admitted[name]!.push(monotonicNowMs());
	};
	const client = async (name: string, rate: Rate): Promise<void> => {
		admitted[name] = [];
		requests[name] = [];
		while (performance.now() < end) {
			// Sends several requests at once, as a browser does for one page.
			const burst = Math.ceil(Math.random() * 5);
			await Promise.all(Array.from({ length: burst }, () => request(name, rate)));
			await new Promise(resolve => setTimeout(resolve, Math.random() * 2 * burst * pauseMs));
		}
	};
	await Promise.all(Object.entries(limits).map(([name, rate]) => client(name, rate)));
	await shared.close();
	cluster.close();
	return { admitted, requests, longestWaitMs, ...counts, counts: shared.counts };
}
