/**
 * Sends a million requests over two threads and a thousand hosts. The counters must equal the client's counts. Scrape times are
 * printed.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, serve, temporaryFolder } from '../harness.ts';

const CONNECTIONS = 20;
const HOSTS = 1000;
const BATCHES = 50;

/** Sends `BATCHES` batches over one connection; a batch has one request for each host. Resolves to the number of 200 responses. */
async function sendBatches(port: number, first: number): Promise<number> {
	const hosts = Array.from({ length: HOSTS }, (_, at) => `h${(first + at) % HOSTS}.example`);
	const batch = hosts.map(host => `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`).join('');
	const socket = connect(port, '127.0.0.1').setNoDelay();
	let answers = 0;
	let rest = '';
	let arrived: () => void = () => {};
	socket.on('data', data => {
		const text = rest + data.toString('latin1');
		answers += text.split('HTTP/1.1 200').length - 1;
		// Keeps the last characters, which may contain the beginning of the next status line but never a complete one.
		rest = text.slice(-11);
		arrived();
	});
	socket.on('error', () => {});
	await once(socket, 'connect');
	for (let i = 1; i <= BATCHES && !socket.destroyed; i++) {
		socket.write(batch);
		while (answers < i * HOSTS && !socket.destroyed) {
			await new Promise<void>(resolve => {
				arrived = resolve;
				socket.once('close', resolve);
			});
			socket.removeAllListeners('close');
		}
	}
	socket.destroy();
	return answers;
}

/** Scrapes five times a second until its standard input ends, and prints the milliseconds that each scrape took. */
const SCRAPER = `
const { get } = require('node:http');
let over = false;
process.stdin.resume().on('end', () => { over = true; });
(async () => {
	while (!over) {
		const begun = performance.now();
		await new Promise(resolve => get(process.argv[1], { agent: false }, response => response.resume().on('end', resolve)));
		console.log((performance.now() - begun).toFixed(1));
		await new Promise(resolve => setTimeout(resolve, 200));
	}
})();
`;

/** Returns the CPU time that a process has used so far, in milliseconds; NaN on systems other than Linux. */
function cpuMilliseconds(pid: number): number {
	if (process.platform !== 'linux') return Number.NaN;
	const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
	return (Number(fields[11]) + Number(fields[12])) * 10;
}

const test = suite('counters');

test("the per-host counters equal the client's counts after a million requests with concurrent scrapes", async () => {
	const [port, admin] = (await freePorts(2)) as [number, number];
	const folder = temporaryFolder();
	const file = path.join(folder, 'Configfile');
	const addresses = Array.from({ length: HOSTS }, (_, at) => `http://h${at}.example:${port}`).join(', ');
	const options = `admin 127.0.0.1:${admin}\n\tthreads 2\n\tmetrics {\n\t\tper_host\n\t}`;
	writeFileSync(file, `{\n\t${options}\n}\n${addresses} {\n\tbind 127.0.0.1\n\trespond "x"\n}\n`);
	const server = await serve([file], port, { env: { XDG_STATE_HOME: folder } });
	try {
		const text = async () => (await fetch(`http://127.0.0.1:${admin}/metrics`)).text();
		// A separate process scrapes, because the event loop of this process is busy with the load.
		const scraper = spawn(process.execPath, ['-e', SCRAPER, `http://127.0.0.1:${admin}/metrics`], {
			stdio: ['pipe', 'pipe', 'inherit'],
		});
		let output = '';
		scraper.stdout.setEncoding('utf8').on('data', chunk => {
			output += chunk;
		});
		const loads = Array.from({ length: CONNECTIONS }, (_, at) => sendBatches(port, (at * HOSTS) / CONNECTIONS));
		const sent = (await Promise.all(loads)).reduce((sum, one) => sum + one, 0);
		scraper.stdin.end();
		await once(scraper, 'close');
		assert.is(sent, CONNECTIONS * HOSTS * BATCHES);
		const idle = await text();
		const counts = [...idle.matchAll(/^std_http_requests_total\{.*host="(h\d+\.example)"\} (\d+)$/gm)];
		assert.is(counts.length, HOSTS);
		for (const [, host, count] of counts) assert.is(Number(count), CONNECTIONS * BATCHES, host);
		const durations = idle.matchAll(/^std_http_request_duration_seconds_count\{.*code="200".*\} (\d+)$/gm);
		assert.is(
			[...durations].reduce((sum, [, count]) => sum + Number(count), 0),
			sent,
		);
		const before = cpuMilliseconds(server.child.pid!);
		for (let count = 0; count < 20; count++) await text();
		const cost = (cpuMilliseconds(server.child.pid!) - before) / 20;
		const times = output
			.trim()
			.split('\n')
			.map(Number)
			.sort((a, b) => a - b);
		assert.ok(times.length > 2, `${times.length} scrapes`);
		const at = (part: number): string => times[Math.floor((times.length - 1) * part)]!.toFixed(0);
		console.log(
			`${sent} requests counted; ${times.length} scrapes of ${(idle.length / 1e6).toFixed(1)} MB under load: median ${at(0.5)} ms, slowest ${at(1)} ms; ${cost.toFixed(0)} ms of processor time each`,
		);
	} finally {
		await server.stop();
	}
});

test.run();
