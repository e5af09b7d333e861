/** The rate of `limit_rate` and of nginx's `limit_rate`, measured at the same time, for files and proxied responses. */
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, get, type IncomingMessage } from 'node:http';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { importNginx } from '../../compiler/import/nginx/import-nginx.ts';
import { diskReader } from '../../runtime/compile/disk-reader.ts';
import { freePorts, serve, temporaryFolder } from '../harness.ts';
import { nginxConfiguration, startNginx } from './nginx-process.ts';

const peers = suite('rates of responses, beside nginx');

const KIB = 1024;
const FILE_BYTES = 8 * 1024 * KIB;
/** Milliseconds over which a rate is measured. */
const PERIOD_MS = 3000;
/** nginx counts in whole seconds, so a period may contain one second's bytes more or less. */
const NGINX_TOLERANCE = 1000 / PERIOD_MS + 0.05;
const OUR_TOLERANCE = 0.05;
/**
 * Maximum number of measurements of a rate before the test fails. While other programs keep the processors busy, timers and this
 * client are late. test/runtime/protocols/paced-body.test.ts tests rates and bursts exactly, with a simulated clock.
 */
const ATTEMPTS = 5;

/** Locations, each with its rate in bytes per second and the number of bytes that are sent before the rate applies. */
const LIMITS: readonly { readonly at: string; readonly rate: number; readonly after: number }[] = [
	{ at: '/slow/', rate: 20 * KIB, after: 0 },
	{ at: '/middle/', rate: 300 * KIB, after: 0 },
	{ at: '/later/', rate: 100 * KIB, after: 1024 * KIB },
];

/** Requests a path. Returns the number of bytes that arrive within the period, which begins with the first bytes. */
async function countBytes(port: number, target: string): Promise<number> {
	const clientRequest = get({ port, host: '127.0.0.1', path: target, agent: false, headers: { host: 'a.example' } });
	const [answer] = (await once(clientRequest, 'response')) as [IncomingMessage];
	assert.is(answer.statusCode, 200);
	answer.on('error', () => {});
	return new Promise(resolve => {
		let first = 0;
		let total = 0;
		answer.on('data', (piece: Buffer) => {
			const now = performance.now();
			first ||= now;
			if (now - first <= PERIOD_MS) total += piece.length;
			else {
				clientRequest.destroy();
				resolve(total);
			}
		});
	});
}

peers('the rates agree', async () => {
	const [port, nginxPort, upstreamPort] = (await freePorts(3)) as [number, number, number];
	const folder = temporaryFolder();
	for (const name of ['site', ...LIMITS.map(({ at }) => `site${at}`)]) mkdirSync(path.join(folder, name));
	const bytes = Buffer.alloc(FILE_BYTES, 'abcdefghij');
	for (const { at } of LIMITS) writeFileSync(path.join(folder, `site${at}file.bin`), bytes);
	const locations = LIMITS.flatMap(({ at, rate, after }) => [
		`location ${at} { limit_rate ${rate / KIB}k; limit_rate_after ${after / KIB}k; root ${folder}/site; }`,
		`location /proxied${at} { limit_rate ${rate / KIB}k; limit_rate_after ${after / KIB}k; proxy_pass http://127.0.0.1:${upstreamPort}; }`,
	]).join('\n');
	const http = (listen: number): string => `access_log off;
	server {
		listen 127.0.0.1:${listen};
		server_name a.example;
		${locations}
	}`;
	// svc runs with the configuration that `svc import` makes of nginx's.
	const name = 'nginx.conf';
	const { text } = importNginx({ name, text: nginxConfiguration(http(port)), folder }, diskReader(folder));
	writeFileSync(path.join(folder, 'Configfile'), text);
	const upstream = createServer((_, answer) => answer.end(bytes));
	upstream.listen(upstreamPort, '127.0.0.1');
	await once(upstream, 'listening');
	const nginx = await startNginx(folder, nginxPort, http(nginxPort));
	const server = await serve(['-c', 'Configfile'], port, { cwd: folder });
	try {
		for (const { at, rate, after } of LIMITS) {
			const targets = [`${at}file.bin`, `/proxied${at}file.bin`];
			let wrong: string[] = [];
			for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
				const [ours, theirs] = await Promise.all(
					[port, nginxPort].map(which => Promise.all(targets.map(target => countBytes(which, target)))),
				);
				wrong = targets.flatMap((target, index) => {
					const expected = (rate * PERIOD_MS) / 1000;
					const [our, their] = [(ours![index]! - after) / expected, (theirs![index]! - after) / expected];
					if (Math.abs(our - 1) <= OUR_TOLERANCE && Math.abs(their - 1) <= NGINX_TOLERANCE) return [];
					return [`${target}: ${our.toFixed(3)} of the rate, nginx ${their.toFixed(3)}`];
				});
				if (wrong.length === 0) break;
			}
			assert.equal(wrong, []);
		}
	} finally {
		await server.stop();
		upstream.closeAllConnections();
		upstream.close();
		await nginx.stop();
	}
});

peers.run();
