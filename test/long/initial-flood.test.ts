/**
 * 100,000 Initial packets (which open QUIC connections) a second for ten seconds, from one address and from thousands. During the
 * flood, the requests and handshakes of another client must succeed at nearly their usual pace, and memory must stay bounded.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import * as assert from 'uvu/assert';
import { TestAuthority } from '../certificates.ts';
import { freePorts, type ServerProcess, serve, temporaryFolder } from '../harness.ts';
import { affordableRate, firstPackets, startFlood } from '../runtime/protocols/http3/first-packets.ts';
import { headers, openControlStream, response } from '../runtime/protocols/http3/frames.ts';
import { http3Suite } from '../runtime/protocols/http3/http3-suite.ts';
import { connect, type QuicClient } from '../runtime/protocols/http3/quic-client.ts';

const test = http3Suite('a flood of 100,000 first packets a second');
const folder = temporaryFolder();
const SECONDS = Number(process.env.FLOOD_SECONDS ?? 10);
const RATE = Number(process.env.FLOOD_RATE ?? 100_000);
/** Maximum bytes by which a flood may increase the memory of the server. */
const MEMORY_BOUND = 64 * 1024 * 1024;
/** Response times below this number of milliseconds are good, even if they are a multiple of the usual time. */
const GOOD_MS = 150;
/** Maximum number of attempts. Several are made, because other programs may disturb a measurement. */
const MAX_TRIES = 3;
let server: ServerProcess;
let port = 0;
let packets: Buffer[];

test.before(async () => {
	[port] = (await freePorts(1)) as [number];
	const { certificate, key } = await (await TestAuthority.make()).issue({ names: ['localhost'] });
	writeFileSync(path.join(folder, 'c.pem'), certificate);
	writeFileSync(path.join(folder, 'k.pem'), key);
	const text = `{
	admin off
	threads 1
	auto_https disable_redirects
}
https://localhost:${port} {
	bind 127.0.0.1
	tls ${folder}/c.pem ${folder}/k.pem
	respond "served"
}
`;
	writeFileSync(path.join(folder, 'Configfile'), text);
	server = await serve([], port, { cwd: folder });
	packets = await firstPackets(320);
});

test.after(async () => {
	await server.stop();
});

function memory(): number {
	const status = readFileSync(`/proc/${server.child.pid}/status`, 'utf8');
	return Number(/^VmRSS:\s+(\d+)/m.exec(status)![1]) * 1024;
}

async function ask(client: QuicClient): Promise<number> {
	const startedAt = performance.now();
	const stream = client.open().write(headers(), true);
	assert.is((await response(client, stream)).body, 'served');
	stream.stop();
	return performance.now() - startedAt;
}

async function askOnNewConnection(): Promise<number> {
	const startedAt = performance.now();
	const client = await connect(port);
	openControlStream(client);
	await ask(client);
	client.close();
	return performance.now() - startedAt;
}

/** Maximum requests on one connection. The server ends connections gracefully after about twice as many. */
const MAX_REQUESTS = 1000;

/** A client that sends many requests on one connection before it opens another. */
class SteadyClient {
	#client: QuicClient | undefined;
	#requestCount = 0;

	async ask(): Promise<number> {
		if (this.#requestCount++ % MAX_REQUESTS === 0) {
			this.#client?.close();
			this.#client = await connect(port);
			openControlStream(this.#client);
		}
		return await ask(this.#client!);
	}

	close(): void {
		this.#client?.close();
	}
}

/**
 * Sends requests for `seconds`, both on one open connection and on a new connection each. Returns the 99th percentile of the
 * response times of each kind in milliseconds.
 */
async function measure(client: SteadyClient, seconds: number) {
	const requests: number[] = [];
	const newConnections: number[] = [];
	const end = performance.now() + seconds * 1000;
	while (performance.now() < end) {
		for (let i = 0; i < 5; i++) requests.push(await client.ask());
		newConnections.push(await askOnNewConnection());
	}
	const p99 = (times: number[]): number => times.sort((a, b) => a - b)[Math.floor(times.length * 0.99)]!;
	return { requests: p99(requests), newConnections: p99(newConnections), count: newConnections.length };
}

for (const [who, from] of [
	['one address', ['127.0.0.9']],
	['two thousand addresses', Array.from({ length: 2000 }, (_, i) => `127.0.${1 + (i >> 7)}.${1 + (i & 127)}`)],
] as const) {
	test(`from ${who}`, async () => {
		const client = new SteadyClient();
		try {
			for (let tries = 1; ; tries++) {
				const slow = await floodServer(client, who, from);
				if (slow === undefined) break;
				assert.ok(tries < MAX_TRIES, slow);
			}
		} finally {
			client.close();
		}
	});
}

/** Floods the server. Returns a complaint if another client had to wait too long, otherwise undefined. */
async function floodServer(client: SteadyClient, who: string, from: readonly string[]): Promise<string | undefined> {
	const usual = await measure(client, 3);
	const wanted = affordableRate(RATE);
	const before = memory();
	const stop = startFlood({ packets, port, rate: wanted, from });
	let meanwhile: Awaited<ReturnType<typeof measure>>;
	let sent = 0;
	const since = performance.now();
	try {
		meanwhile = await measure(client, SECONDS);
	} finally {
		sent = await stop();
	}
	const rate = Math.round((sent * 1000) / (performance.now() - since));
	const grown = memory() - before;
	if (process.env.FIGURES) console.log({ who, wanted, rate, usual, meanwhile, grown });
	assert.ok(rate > wanted / 2, `${rate} datagrams a second`);
	assert.ok(grown < MEMORY_BOUND, `${grown} bytes more`);
	const slow = (['requests', 'newConnections'] as const).find(
		what => meanwhile[what] >= Math.max(5 * usual[what], GOOD_MS),
	);
	return slow && `p99 of ${slow}: ${meanwhile[slow]} ms, usually ${usual[slow]} ms`;
}

test.run();
