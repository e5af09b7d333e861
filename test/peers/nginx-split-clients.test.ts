/** Requests distributed by `split` and by nginx's `split_clients`: the same keys get the same branches. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, serve, temporaryFolder } from '../harness.ts';
import { startNginx } from './nginx-process.ts';

const peers = suite('split beside nginx');

/** Keys of many lengths. The hash reads its input in blocks, so the last block must occur in every possible length. */
const KEYS = [
	...Array.from({ length: 2000 }, (_, i) => `visitor-${i}`),
	...Array.from({ length: 500 }, (_, i) => `10.${i >> 8}.${i & 255}.9`),
	...Array.from({ length: 100 }, (_, i) => 'x'.repeat(i + 1)),
];

peers('each key gets the same branch', async () => {
	const [port, nginxPort] = (await freePorts(2)) as [number, number];
	const folder = temporaryFolder();
	writeFileSync(
		path.join(folder, 'Configfile'),
		`http://127.0.0.1:${port} {
	split {header.X-Key} {
		10% {
			respond "a"
		}
		0.5% {
			respond "b"
		}
		33.33% {
			respond "c"
		}
		* {
			respond "d"
		}
	}
}
`,
	);
	const nginx = await startNginx(
		folder,
		nginxPort,
		`access_log off;
	keepalive_requests 100000;
	split_clients "$http_x_key" $branch {
		10% a;
		0.5% b;
		33.33% c;
		* d;
	}
	server {
		listen 127.0.0.1:${nginxPort};
		location / { return 200 $branch; }
	}`,
	);
	const server = await serve(['-c', 'Configfile'], port, { cwd: folder });
	try {
		const ours = await branches(port);
		const theirs = await branches(nginxPort);
		assert.equal(ours, theirs);
		const count = (name: string): number => ours.filter(body => body === name).length;
		for (const [name, part] of Object.entries({ a: 0.1, b: 0.005, c: 0.3333, d: 0.5617 })) {
			const tolerance = 5 * Math.sqrt(KEYS.length * part * (1 - part));
			assert.ok(Math.abs(count(name) - KEYS.length * part) < tolerance, `${name}: ${count(name)} of ${KEYS.length}`);
		}
	} finally {
		await server.stop();
		await nginx.stop();
	}
});

async function branches(port: number): Promise<string[]> {
	const found: string[] = [];
	for (const key of KEYS) {
		const response = await fetch(`http://127.0.0.1:${port}/`, { headers: { 'X-Key': key } });
		found.push(await response.text());
	}
	return found;
}

peers.run();
