/** A million requests over two threads and a thousand hosts: the counters are the client's count, and scrapes are quick. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, serve, temporaryFolder } from '../harness.ts';

const CONNECTIONS = 20;
const HOSTS = 1000;
const BATCHES = 50;

/** Sends every host's request `BATCHES` times over one connection; resolves to the number of answers with 200. */
async function load(port: number, first: number): Promise<number> {
	const hosts = Array.from({ length: HOSTS }, (_, at) => `h${(first + at) % HOSTS}.example`);
	const batch = hosts.map(host => `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`).join('');
	const socket = connect(port, '127.0.0.1').setNoDelay();
	let answers = 0;
	let rest = '';
	let arrived: () => void = () => {};
	socket.on('data', data => {
		const text = rest + data.toString('latin1');
		answers += text.split('HTTP/1.1 200').length - 1;
		// What may be the beginning of the next one; it holds no whole one.
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

const test = suite('counters');

test('equal what the client counted, by host, after a million requests; a scrape meanwhile takes no time', async () => {
	const [port, admin] = (await freePorts(2)) as [number, number];
	const folder = temporaryFolder();
	const file = path.join(folder, 'Configfile');
	const addresses = Array.from({ length: HOSTS }, (_, at) => `http://h${at}.example:${port}`).join(', ');
	const options = `admin 127.0.0.1:${admin}\n\tthreads 2\n\tmetrics {\n\t\tper_host\n\t}`;
	writeFileSync(file, `{\n\t${options}\n}\n${addresses} {\n\tbind 127.0.0.1\n\trespond "x"\n}\n`);
	const server = await serve([file], port, { env: { XDG_STATE_HOME: folder } });
	try {
		const scrape = async () => {
			const begun = performance.now();
			const text = await (await fetch(`http://127.0.0.1:${admin}/metrics`)).text();
			return { text, took: performance.now() - begun };
		};
		const loads = Array.from({ length: CONNECTIONS }, (_, at) => load(port, (at * HOSTS) / CONNECTIONS));
		const times: number[] = [];
		let over = false;
		const answered = Promise.all(loads).finally(() => {
			over = true;
		});
		while (!over) {
			times.push((await scrape()).took);
			await new Promise(resolve => setTimeout(resolve, 500));
		}
		const sent = (await answered).reduce((sum, one) => sum + one, 0);
		assert.is(sent, CONNECTIONS * HOSTS * BATCHES);
		const idle = await scrape();
		const counts = [...idle.text.matchAll(/^std_http_requests_total\{.*host="(h\d+\.example)"\} (\d+)$/gm)];
		assert.is(counts.length, HOSTS);
		for (const [, host, count] of counts) assert.is(Number(count), CONNECTIONS * BATCHES, host);
		const durations = idle.text.matchAll(/^std_http_request_duration_seconds_count\{.*code="200".*\} (\d+)$/gm);
		assert.is(
			[...durations].reduce((sum, [, count]) => sum + Number(count), 0),
			sent,
		);
		const median = times.sort((a, b) => a - b)[times.length >> 1]!;
		console.log(
			`${sent} requests counted; a scrape of ${(idle.text.length / 1e6).toFixed(1)} MB took ${idle.took.toFixed(0)} ms, ${median.toFixed(0)} ms under load`,
		);
	} finally {
		await server.stop();
	}
});

test.run();
