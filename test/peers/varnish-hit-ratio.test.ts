/** Compares our cache with Varnish at equal size, under the same requests for ten million keys: hit ratio, memory and delays. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, type ServerProcess, serve, temporaryFolder, waitForPort } from '../harness.ts';
import { sendZipf } from '../zipf-load.ts';
import { responseSizeForRank, zipfTrace } from '../zipf-trace.ts';

const MIB = 1024 * 1024;
const CEILING_MIB = 24;
const REQUESTS = 60_000;
/** Number of warm-up requests, after which the caches are full. */
const WARM_UP_REQUESTS = 25_000;

const peers = suite('varnish beside us');

let origin: Server;
let varnish: ChildProcess;
let server: ServerProcess;
let ourPort = 0;
let itsPort = 0;
let adminPort = 0;
/** Number of requests that reached the origin. */
let originRequestCount = 0;

peers.before(async () => {
	const content = Buffer.alloc(8200, 'x');
	origin = createServer((request, response) => {
		originRequestCount++;
		const size = responseSizeForRank(Number(request.url!.slice(2)));
		response.writeHead(200, {
			'Content-Type': 'text/plain',
			'Cache-Control': 'max-age=3600',
			'Content-Length': size,
			ETag: `"${size}"`,
		});
		response.end(content.subarray(0, size));
	}).listen(0, '127.0.0.1');
	await once(origin, 'listening');
	const upstream = (origin.address() as { port: number }).port;
	[ourPort, itsPort, adminPort] = (await freePorts(3)) as [number, number, number];
	const folder = temporaryFolder();
	const file = path.join(folder, 'Configfile');
	writeFileSync(
		file,
		`{
	admin 127.0.0.1:${adminPort}
	cache {
		ceiling ${CEILING_MIB}MiB
	}
}
http://:${ourPort} {
	cache
	reverse_proxy 127.0.0.1:${upstream}
}
`,
	);
	server = await serve(['--config', file], ourPort);
	const args = ['-a', `127.0.0.1:${itsPort}`, '-b', `127.0.0.1:${upstream}`, '-s', `malloc,${CEILING_MIB}m`];
	varnish = spawn('varnishd', ['-j', 'none', '-F', '-n', temporaryFolder(), ...args], { stdio: 'ignore' });
	await waitForPort(itsPort);
});

peers.after(async () => {
	await server?.stop();
	varnish?.kill();
	origin.closeAllConnections();
	origin.close();
});

/**
 * Sends requests for random keys. Resolves to the share of requests that did not reach the origin, and to the longest delay in
 * milliseconds.
 */
async function hitRatio(port: number): Promise<{ ratio: number; longest: number }> {
	const ranks = zipfTrace(7);
	await sendZipf(port, ranks, WARM_UP_REQUESTS);
	const before = originRequestCount;
	const longest = await sendZipf(port, ranks, REQUESTS - WARM_UP_REQUESTS);
	return { ratio: 1 - (originRequestCount - before) / (REQUESTS - WARM_UP_REQUESTS), longest };
}

function residentBytes(pid: number): number {
	return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))![1]) * 1024;
}

peers('at the same size, the hit ratio is at least as high', async () => {
	const ours = await hitRatio(ourPort);
	const its = await hitRatio(itsPort);
	const told = await (await fetch(`http://127.0.0.1:${adminPort}/cache`)).json();
	const { bytes, ceiling } = told as { bytes: number; ceiling: number };
	console.log(
		`hit ratio ${ours.ratio.toFixed(4)}, of varnish ${its.ratio.toFixed(4)}; longest wait ${ours.longest.toFixed(0)} and ${its.longest.toFixed(0)} ms; ${(bytes / ceiling).toFixed(3)} of the ceiling, ${(residentBytes(server.child.pid!) / MIB).toFixed(0)} MiB resident`,
	);
	assert.ok(ours.ratio >= its.ratio, `${ours.ratio} is less than ${its.ratio}`);
	assert.ok(bytes <= ceiling && bytes > ceiling * 0.95, `${bytes} of ${ceiling}`);
});

peers.run();
