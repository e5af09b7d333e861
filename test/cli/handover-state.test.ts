/** State that survives a handover: what a process has learned about its upstreams, and keys that clients depend on. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { json } from 'node:stream/consumers';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, rawExchange, runCommand, serve, temporaryFolder } from '../harness.ts';

const handover = suite('state after a handover');

interface RunningServer {
	readonly port: number;
	/** Replaces the site, keeps the rest of the configuration, and hands over. */
	handOver(site?: string): Promise<void>;
	/** Returns what an endpoint of the Admin API answers. */
	ask(endpoint: string): Promise<unknown>;
	/** Returns the head and the body of the site's answer on a new connection. */
	get(target: string): Promise<string>;
}

/** Runs a server whose first site has the directives in `site`. */
async function withServer(site: string, test: (running: RunningServer) => Promise<void>, options = ''): Promise<void> {
	const folder = temporaryFolder();
	const [port, ...extra] = (await freePorts(3)) as [number, number, number];
	const file = path.join(folder, 'Configfile');
	const socketPath = path.join(folder, 'admin.sock');
	let round = 0;
	const write = (directives: string): void =>
		writeFileSync(
			file,
			`{\n\tadmin unix/${socketPath}\n\tthreads 2\n${options}}\nhttp://127.0.0.1:${port} {\n${directives}\n}\nhttp://127.0.0.1:${extra[round % 2]} {\n\trespond more\n}\n`,
		);
	write(site);
	const server = await serve([file], port, { env: { XDG_STATE_HOME: folder } });
	try {
		await test({
			port,
			async handOver(next = site) {
				round++;
				write(next);
				const { status, stdout, stderr } = await runCommand(['reload', file, '--handover']);
				assert.is(status, 0, stderr);
				assert.match(stdout, 'which has taken over');
			},
			async ask(endpoint) {
				const clientRequest = request({
					socketPath,
					path: endpoint,
					headers: { host: 'svc', connection: 'close' },
				}).end();
				const [answer] = await once(clientRequest, 'response');
				return json(answer);
			},
			get: target => rawExchange(port, `GET ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`),
		});
	} finally {
		await server.stop();
	}
}

handover('keeps circuits open, failed upstreams out and unhealthy ones down', async () => {
	let checks = 0;
	const failing = createServer((request, answer) => {
		// Only the first check fails. A new process that lost this result would count the upstream as healthy.
		answer.writeHead(request.url === '/health' && checks++ > 0 ? 200 : 500).end();
	}).listen(0, '127.0.0.1');
	await once(failing, 'listening');
	const { port: upstream } = failing.address() as AddressInfo;
	const pool = (...lines: string[]): string =>
		`reverse_proxy 127.0.0.1:${upstream} {\n${lines.map(line => `\t${line}`).join('\n')}\n}\n`;
	const site = [
		`handle /passive {\n${pool('fail_duration 10m', 'max_fails 2', 'unhealthy_status 5xx')}}`,
		`handle /circuit {\n${pool('circuit_breaker {', 'min_requests 2', 'open_for 10m', '}')}}`,
		// Each process makes only one health check, so neither can see two passed checks in a row.
		`handle /active {\n${pool('health_uri /health', 'health_interval 10m', 'health_passes 2')}}`,
	].join('\n');
	const facts = (listed: unknown) =>
		(listed as { healthy: boolean; circuit: string; fails: number }[])
			.map(({ healthy, circuit, fails }) => `${healthy ? 'healthy' : 'unhealthy'} ${circuit} ${fails}`)
			.sort();
	try {
		await withServer(site, async ({ get, ask, handOver }) => {
			for (const target of ['/passive', '/circuit']) {
				for (let i = 0; i < 2; i++) assert.match(await get(target), /^HTTP\/1\.1 500 /);
				assert.match(await get(target), /^HTTP\/1\.1 503 /);
			}
			const before = facts(await ask('/reverse_proxy/upstreams'));
			assert.equal(before, ['healthy open 0', 'unhealthy closed 0', 'unhealthy closed 2']);
			await handOver();
			assert.equal(facts(await ask('/reverse_proxy/upstreams')), before);
			for (const target of ['/passive', '/circuit', '/active']) assert.match(await get(target), /^HTTP\/1\.1 503 /);
			await handOver();
			for (const target of ['/passive', '/circuit', '/active']) assert.match(await get(target), /^HTTP\/1\.1 503 /);
		});
	} finally {
		failing.closeAllConnections();
		failing.close();
	}
});

handover('goes on with the counts of rate limits', async () => {
	const site =
		'rate_limit few {\n\trequests 3 per 1h\n\tkey {query.key}\n}\nrate_limit many {\n\trequests 100000 per 1h\n\tkey {query.other}\n}\nrespond in';
	await withServer(site, async ({ get, handOver }) => {
		for (let i = 0; i < 3; i++) assert.match(await get('/?key=one'), /^HTTP\/1\.1 200 /);
		assert.match(await get('/?key=one'), /^HTTP\/1\.1 429 /);
		assert.match(await get('/?key=two'), /^HTTP\/1\.1 200 /);
		for (let i = 0; i < 2; i++) {
			await handOver();
			assert.match(await get('/?key=one'), /^HTTP\/1\.1 429 /);
			assert.match(await get('/?key=two'), /^HTTP\/1\.1 200 /);
		}
		assert.match(await get('/?key=two'), /^HTTP\/1\.1 429 /);
		// If the limit of a zone changes, the requests counted so far are not forgotten.
		await handOver(site.replace('key {query.key}', 'key {query.key}\n\tburst 4'));
		assert.match(await get('/?key=one'), /^HTTP\/1\.1 200 /);
	});
});

handover.run();
