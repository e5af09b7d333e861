/**
 * Measures the processor time per request of our own code (engine, site table and handler), over connections in memory. The
 * difference from the result of the bench is the cost of the system and Node. There are three kinds of request heads: equal ones,
 * ones with different paths, and ones that also carry the fields of a browser. For `rate_limit`, the difference between a site
 * with it and one without is measured, in alternating rounds.
 *
 * Usage: node test/bench/engine-alone.ts [requests a round]
 */
import { buildSite } from '../../compiler/codegen/build-site.ts';
import { UNKNOWN_HOST_FACTS } from '../../compiler/codegen/placeholders/index.ts';
import { SiteTable } from '../../compiler/codegen/site-table.ts';
import type { Settings, Step } from '../../compiler/document/document.ts';
import type { Leases } from '../../compiler/exchange/leases.ts';
import type { RateLimiterSettings } from '../../compiler/modules/directives/rate-limit/rate-limiter.ts';
import { ROW_LENGTH } from '../../runtime/metrics/counter-row.ts';
import { ModuleCounters } from '../../runtime/metrics/module-counters.ts';
import { SeriesPages } from '../../runtime/metrics/series-pages.ts';
import { createHttp1Server } from '../../runtime/protocols/http1/http1-server.ts';
import { DEFAULT_LIMITS } from '../../runtime/protocols/http1/limits.ts';
import { LimitTable, limitTableWords } from '../../runtime/rate-limits/limit-table.ts';
import { ThreadRateLimiter } from '../../runtime/rate-limits/thread-rate-limiter.ts';
import { DirectSocket } from '../../runtime/sockets/direct-socket.ts';
import type { StreamHandle } from '../../runtime/sockets/stream-handle.ts';
import { CONTROL_GENERATION, CONTROL_SLOTS } from '../../runtime/threads/control-words.ts';
import { LeaseRegistry } from '../../runtime/threads/lease-registry.ts';
import { ThreadActivity } from '../../runtime/threads/thread-activity.ts';
import { ThreadTls } from '../../runtime/tls/thread-tls.ts';
import { Generation, Generations } from '../../runtime/worker/generation.ts';
import { RequestHost } from '../../runtime/worker/request-host.ts';
import { median } from './measure.ts';

const CONNECTION_COUNT = 64;
const HEAD_COUNT = 4096;
/** Number of different keys in the measurements of `rate_limit` with many keys. */
const KEY_COUNT = 50_000;
const ROUND_COUNT = 7;

const BROWSER = [
	'User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0',
	'Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
	'Accept-Language: en-US,en;q=0.5',
	'Accept-Encoding: gzip, deflate, br, zstd',
	'',
].join('\r\n');

/** A connection that accepts every write at once. */
class MemoryHandle {
	onread: StreamHandle['onread'] = () => undefined;
	readonly writeQueueSize = 0;
	memory: Uint8Array = new Uint8Array(0);
	written = 0;

	useUserBuffer(memory: Uint8Array): void {
		this.memory = memory;
	}

	readStart(): number {
		return 0;
	}

	readStop(): number {
		return 0;
	}

	writeLatin1String(_request: null, text: string): number {
		this.written += text.length;
		return 0;
	}

	writeBuffer(): number {
		return 0;
	}

	writev(): number {
		return 0;
	}

	shutdown(): number {
		return 0;
	}

	close(): void {}

	getpeername(name: { address?: string; port?: number }): number {
		name.address = '192.0.2.1';
		name.port = 1;
		return 0;
	}
}

interface MemoryConnection {
	readonly handle: MemoryHandle;
	readonly socket: DirectSocket;
}

/** The answer of all sites. */
const RESPOND: Step = { handler: 'respond', body: 'Hello, world!\n' };

const moduleCounters = new ModuleCounters(
	new SeriesPages(
		() => {},
		() => {},
	),
);

/** Provides the tables of rate limits. The usage in a shared table is never reported to Redis. */
const LEASES: Leases = {
	lease(kind, settings) {
		if (kind !== 'rate_limiter') throw new Error(`There is no lease for ${kind}.`);
		const { zone, maxKeys, isShared } = settings as RateLimiterSettings;
		const buffer = new SharedArrayBuffer(limitTableWords(maxKeys, isShared) * Int32Array.BYTES_PER_ELEMENT);
		return new ThreadRateLimiter(new LimitTable(buffer, maxKeys, isShared), {
			counterOf: event => moduleCounters.rateLimitCounter(zone, event),
			reportUsage: () => Promise.resolve(),
		}) as never;
	},
};

/** The settings of a cluster. Without them, a rate limit zone cannot be `shared`. */
const CLUSTER_SETTINGS: Settings = { cluster: { address: '127.0.0.1:6379', keys: ['unused'] } };

/** Creates a listener with one site, and connections to it. */
function openConnections(pipeline: readonly Step[]): MemoryConnection[] {
	const control = new Int32Array(new SharedArrayBuffer(CONTROL_SLOTS * Int32Array.BYTES_PER_ELEMENT));
	const generations = new Generations(control, new LeaseRegistry());
	const built = buildSite({ addresses: ['http://127.0.0.1:8080'], pipeline }, 0, {
		settings: CLUSTER_SETTINGS,
		upstreams: {},
		routes: {},
		leases: LEASES,
		facts: UNKNOWN_HOST_FACTS,
	});
	const table = new SiteTable([{ site: 0, hosts: ['127.0.0.1'], paths: [] }]);
	generations.prepare(
		new Generation(1, [{ built, leases: [] }], new Map([['here', { table, servedHosts: undefined }]]), []),
	);
	control[CONTROL_GENERATION] = 1;
	const host = new RequestHost('here', {
		generations,
		activity: new ThreadActivity(),
		counters: new Float64Array(new SharedArrayBuffer(ROW_LENGTH * Float64Array.BYTES_PER_ELEMENT)),
		limits: DEFAULT_LIMITS,
		tls: new ThreadTls(() => {}),
		clientIp: x => x.connection.remoteAddress,
		isDraining: false,
		logsDebug: false,
		log() {},
		onConnectionEnded() {},
	});
	const server = createHttp1Server(host);
	return Array.from({ length: CONNECTION_COUNT }, () => {
		const handle = new MemoryHandle();
		const socket = new DirectSocket(handle as unknown as StreamHandle);
		server.accept(socket, 'http', undefined);
		return { handle, socket };
	});
}

const count = Number(process.argv[2] ?? 200_000);

/** Returns the request heads that `text` returns for the numbers from 0 to `headCount` − 1. */
function requestHeads(headCount: number, text: (index: number) => string): Buffer[] {
	return Array.from({ length: headCount }, (_, index) => Buffer.from(text(index), 'latin1'));
}

/** Sends `count` requests, and returns the processor time per request in nanoseconds. */
function measureRound(open: readonly MemoryConnection[], heads: readonly Buffer[]): number {
	const before = process.cpuUsage();
	for (let i = 0; i < count; i++) {
		const { handle, socket } = open[i % CONNECTION_COUNT]!;
		const head = heads[(i * 31) % heads.length]!;
		handle.memory.set(head);
		socket.handleRead(head.length);
	}
	const { user, system } = process.cpuUsage(before);
	return ((user + system) * 1000) / count;
}

/** Lets V8 compile the code, and then returns the results of all rounds. If there are several sites, they take turns. */
function measureRounds(sites: readonly (readonly MemoryConnection[])[], heads: readonly Buffer[]): number[][] {
	for (let turn = 0; turn < 2; turn++) for (const open of sites) measureRound(open, heads);
	const results: number[][] = sites.map(() => []);
	for (let round = 0; round < ROUND_COUNT; round++)
		for (const [index, open] of sites.entries()) results[index]!.push(measureRound(open, heads));
	if (sites.some(open => open.some(({ handle }) => handle.written === 0)))
		throw new Error('a connection got no response');
	return results;
}

const unlimited = openConnections([RESPOND]);
const repeatedHead = (): string => 'GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n';
const shapes: { readonly [name: string]: (index: number) => string } = {
	'repeated heads': repeatedHead,
	'different heads': index => `GET /page/${index * 7919} HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n`,
	'different heads with the fields of a browser': index =>
		`GET /page/${index * 7919} HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n${BROWSER}\r\n`,
};
for (const [name, text] of Object.entries(shapes)) {
	const [rounds] = measureRounds([unlimited], requestHeads(HEAD_COUNT, text)) as [number[]];
	console.log(`${name}: ${Math.round(median(rounds))} ns per request (${Math.round(Math.min(...rounds))} at least)`);
}

const keyHeads = requestHeads(KEY_COUNT, index => `GET /?key=${index} HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n`);
const zone = { name: 'all', requests: 1_000_000_000, window: 1000 };
const keyZone = { ...zone, key: '{http.request.uri.query.key}' };
const limits: readonly [name: string, zone: object, heads: readonly Buffer[]][] = [
	['by address', zone, requestHeads(1, repeatedHead)],
	['by address, announced', { ...zone, announce: 'always' }, requestHeads(1, repeatedHead)],
	[`by parameter, ${KEY_COUNT} keys`, keyZone, keyHeads],
	['by address, shared', { ...zone, shared: {} }, requestHeads(1, repeatedHead)],
	[`by parameter, ${KEY_COUNT} keys, shared`, { ...keyZone, shared: {} }, keyHeads],
];
for (const [name, limitedZone, heads] of limits) {
	const limited = openConnections([{ handler: 'rate_limit', zones: [limitedZone] }, RESPOND]);
	const [without, withLimit] = measureRounds([unlimited, limited], heads) as [number[], number[]];
	const differences = withLimit.map((ns, round) => ns - without[round]!);
	const range = `${Math.round(Math.min(...differences))} to ${Math.round(Math.max(...differences))}`;
	console.log(`rate_limit ${name}: adds ${Math.round(median(differences))} ns per request (${range})`);
}
process.exit();
