/**
 * A server whose cache is full receives requests for ten million keys. Measures how long its threads are blocked at a time,
 * including by evictions, stores and garbage collection, with and without the disk tier.
 */
import { once } from 'node:events';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, LAUNCHER, serve, temporaryFolder } from '../../harness.ts';
import { sendZipf } from '../../zipf-load.ts';
import { responseSizeForRank, zipfTrace } from '../../zipf-trace.ts';
import type { EventLoopStalls } from './loop-holds.ts';

const CEILING_MIB = 16;
/** Number of requests until the cache is full and the code is compiled. */
const WARM_UP_REQUESTS = 12_000;
/** Number of requests that are measured after the cache is full. */
const MEASURED_REQUESTS = 16_000;
/** Maximum CPU time, in milliseconds, for which a thread may be blocked at a time. */
const MAX_BLOCKED_MS = 20;

const stalls = suite('threads of a server whose cache is at its size limit');

for (const disk of [false, true]) {
	stalls(
		`are never blocked for more than ${MAX_BLOCKED_MS} ms at a time${disk ? ', with a disk tier' : ''}`,
		async () => {
			const content = Buffer.alloc(8200, 'x');
			const origin = createServer((request, response) => {
				const size = responseSizeForRank(Number(request.url!.slice(2)));
				response.writeHead(200, {
					'Content-Type': 'text/plain',
					'Cache-Control': 'max-age=3600',
					'Content-Length': size,
				});
				response.end(content.subarray(0, size));
			}).listen(0, '127.0.0.1');
			await once(origin, 'listening');
			const [port, admin] = (await freePorts(2)) as [number, number];
			const folder = temporaryFolder();
			const file = path.join(folder, 'Configfile');
			const behind = disk ? `\n\t\tdisk ${path.join(folder, 'disk')} 32MiB` : '';
			writeFileSync(
				file,
				`{
	admin 127.0.0.1:${admin}
	threads 2
	cache {
		ceiling ${CEILING_MIB}MiB${behind}
	}
}
http://:${port} {
	cache
	reverse_proxy 127.0.0.1:${(origin.address() as { port: number }).port}
}
`,
			);
			const holds = temporaryFolder();
			const watch = path.join(import.meta.dirname, 'loop-holds.ts');
			// NODE_OPTIONS has no effect on the packaged binary, so the server runs through the launcher. It has no effect on threads
			// that start from a bundle either, so `SVC_THREAD_CODE` is empty.
			const env = { NODE_OPTIONS: `--import=${watch}`, LOOP_HOLDS: holds, SVC_THREAD_CODE: '' };
			const server = await serve(['--config', file], port, { env, command: LAUNCHER });
			try {
				const ranks = zipfTrace(11);
				await sendZipf(port, ranks, WARM_UP_REQUESTS);
				writeFileSync(path.join(holds, 'begin'), '');
				await new Promise(resolve => setTimeout(resolve, 400));
				await sendZipf(port, ranks, MEASURED_REQUESTS);
				await new Promise(resolve => setTimeout(resolve, 400));
				const report = await (await fetch(`http://127.0.0.1:${admin}/cache`)).json();
				const { bytes, ceiling, evicted } = report as { bytes: number; ceiling: number; evicted: number };
				assert.ok(bytes > ceiling * 0.95, 'the cache did not fill up');
				assert.ok(evicted > 2000, 'too few evictions');
				const threads = readdirSync(holds)
					.filter(name => name.endsWith('.json'))
					.map((name): [string, EventLoopStalls] => [name, JSON.parse(readFileSync(path.join(holds, name), 'utf8'))]);
				assert.ok(threads.length >= 3, 'expected the main thread and two workers');
				for (const [name, one] of threads) {
					console.log(`${disk ? 'disk, ' : ''}thread ${path.parse(name).name}: ${JSON.stringify(one)}`);
					assert.ok(one.longest <= MAX_BLOCKED_MS, `thread blocked for ${one.longest} ms`);
				}
			} finally {
				await server.stop();
				origin.closeAllConnections();
				origin.close();
				rmSync(holds, { recursive: true, force: true });
			}
		},
	);
}

stalls.run();
