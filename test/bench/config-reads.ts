/**
 * Measures how reading `/config/` of a 10,000-site document affects 64 loaded connections. Their p99 may rise by 10 %.
 *
 * Measurements with and without reads alternate, and the medians of their p99 are compared, so that a drifting machine speed
 * favors neither kind. The server runs on one core with all its threads, one of them for requests. The load generator runs on the
 * other core. The reader runs there too, at the lowest priority, because what a client does with the bytes is not a cost of the
 * server. In the measurements without reads, the reader reads the same amount from a file, because starting a process twice a
 * second affects the generator's p99 by itself. Requires wrk, taskset and curl.
 *
 * Usage: node test/bench/config-reads.ts [--sites 10000] [--windows 12] [--seconds 2]
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { freePorts, serve, temporaryFolder, waitForPort } from '../harness.ts';
import { manySitesDocument } from './many-sites.ts';
import { median } from './measure.ts';

const { values } = parseArgs({
	options: {
		sites: { type: 'string', default: '10000' },
		windows: { type: 'string', default: '12' },
		seconds: { type: 'string', default: '2' },
	},
});

const SERVER_CORE = '0';
const LOAD_CORE = '1';

const [port, adminPort] = (await freePorts(2)) as [number, number];
const file = path.join(temporaryFolder(), 'Configfile');
writeFileSync(
	file,
	manySitesDocument(Number(values.sites), port, `{\n\tadmin 127.0.0.1:${adminPort}\n\tthreads 1\n}\n`, 0),
);
const server = await serve([file], port);
try {
	await waitForPort(adminPort);
	await promisify(execFile)('taskset', ['-a', '-p', '-c', SERVER_CORE, String(server.child.pid)]);
	const document = `http://127.0.0.1:${adminPort}/config/`;
	const copy = path.join(temporaryFolder(), 'document');
	writeFileSync(copy, new Uint8Array(await (await fetch(document)).arrayBuffer()));
	const reads: string[] = [];
	await p99();
	const quiet: number[] = [];
	const read: number[] = [];
	for (let window = 0; window < Number(values.windows); window++) {
		quiet.push(await p99Beside(`file://${copy}`, []));
		read.push(await p99Beside(document, reads));
	}
	const took = reads.map(one => Number(one.split(' ')[0]) * 1000);
	const size = Number(reads[0]!.split(' ')[1]) / 1e6;
	const ratio = median(read) / median(quiet);
	const shown = (all: readonly number[]): string =>
		`${median(all).toFixed(2)} ms (${Math.min(...all).toFixed(2)} to ${Math.max(...all).toFixed(2)})`;
	console.log(`${reads.length} reads of ${size.toFixed(1)} MB, ${median(took).toFixed(0)} ms each`);
	console.log(`p99 without reads ${shown(quiet)}, with them ${shown(read)}: ${ratio.toFixed(2)} of it`);
	process.exitCode = ratio > 1.1 ? 1 : 0;
} finally {
	await server.stop();
}

/** Returns the p99 of response times, in milliseconds, while `url` is read twice a second. */
async function p99Beside(url: string, reads: string[]): Promise<number> {
	const reader = readTwiceASecond(url, reads);
	const found = await p99();
	reader.stdin.end();
	await once(reader, 'close');
	return found;
}

/**
 * Starts a process that fetches `url` twice a second until its standard input is closed. Appends the duration of each fetch in
 * seconds, and the size of the response in bytes, to `reads`.
 */
function readTwiceASecond(url: string, reads: string[]) {
	const curl = `curl -s -o /dev/null -w '%{time_total} %{size_download}\\n' ${url}`;
	const loop = `while :; do read -t 0.5; [ $? -gt 128 ] || exit 0; ${curl}; done`;
	const reader = spawn('taskset', ['-c', LOAD_CORE, 'nice', '-n', '19', 'bash', '-c', loop], {
		stdio: ['pipe', 'pipe', 'inherit'],
	});
	reader.stdout.setEncoding('utf8').on('data', chunk => reads.push(...chunk.trim().split('\n')));
	return reader;
}

/** Returns the 99th percentile of the response time in milliseconds. Each of 64 connections sends one request after another. */
async function p99(): Promise<number> {
	const { stdout } = await promisify(execFile)('taskset', [
		...['-c', LOAD_CORE, 'wrk', '-t1', '-c64', `-d${values.seconds}s`, '--latency', '-H', 'Host: site-0.example'],
		`http://127.0.0.1:${port}/`,
	]);
	const [, value, unit] = /99%\s+([\d.]+)(us|ms|s)\b/.exec(stdout)!;
	return Number(value) * { us: 0.001, ms: 1, s: 1000 }[unit as 'us' | 'ms' | 's'];
}
