/**
 * Reading `/config/` of a document of 10,000 sites under 64 connections of load: p99 may move by a tenth.
 *
 * Rounds with reads and rounds without take turns, and the median of the rounds' ratios counts: a machine whose speed
 * drifts favours neither. Needs wrk.
 *
 * Usage: node test/bench/config-reads.ts [--sites 10000] [--rounds 5] [--seconds 3]
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { freePorts, serve, temporaryFolder, waitForPort } from '../harness.ts';
import { manySites } from './many-sites.ts';
import { median } from './measure.ts';

const { values } = parseArgs({
	options: {
		sites: { type: 'string', default: '10000' },
		rounds: { type: 'string', default: '5' },
		seconds: { type: 'string', default: '3' },
	},
});

/** Reads twice a second until its input ends; prints milliseconds and bytes of each. */
const READER = `
const { get } = require('node:http');
let over = false;
process.stdin.resume().on('end', () => { over = true; });
(async () => {
	while (!over) {
		const begun = performance.now();
		let bytes = 0;
		await new Promise(resolve => get(process.argv[1], response => response.on('data', chunk => { bytes += chunk.length; }).on('end', resolve)));
		console.log((performance.now() - begun).toFixed(0) + ' ' + bytes);
		await new Promise(resolve => setTimeout(resolve, 500));
	}
})();
`;

const [port, adminPort] = (await freePorts(2)) as [number, number];
const file = path.join(temporaryFolder(), 'Configfile');
writeFileSync(file, manySites(Number(values.sites), port, `{\n\tadmin 127.0.0.1:${adminPort}\n\tthreads 1\n}\n`, 0));
const server = await serve([file], port);
try {
	await waitForPort(adminPort);
	const reads: string[] = [];
	await p99();
	const ratios: number[] = [];
	for (let round = 0; round < Number(values.rounds); round++) {
		const quiet = await p99();
		const reader = spawn(process.execPath, ['-e', READER, `http://127.0.0.1:${adminPort}/config/`], {
			stdio: ['pipe', 'pipe', 'inherit'],
		});
		reader.stdout.setEncoding('utf8').on('data', chunk => reads.push(...chunk.trim().split('\n')));
		const read = await p99();
		reader.stdin.end();
		await once(reader, 'close');
		ratios.push(read / quiet);
		console.log(`p99 without reads ${quiet.toFixed(2)} ms, with them ${read.toFixed(2)} ms`);
	}
	const took = reads.map(one => Number(one.split(' ')[0]));
	const size = Number(reads[0]!.split(' ')[1]) / 1e6;
	console.log(
		`${reads.length} reads of ${size.toFixed(1)} MB, ${median(took).toFixed(0)} ms each; p99 with them is ${median(ratios).toFixed(2)} of that without (${ratios.map(one => one.toFixed(2)).join(', ')})`,
	);
	process.exitCode = median(ratios) > 1.1 ? 1 : 0;
} finally {
	await server.stop();
}

/** Milliseconds, of 64 connections that each send one request after another. */
async function p99(): Promise<number> {
	const { stdout } = await promisify(execFile)('wrk', [
		...['-t1', '-c64', `-d${values.seconds}s`, '--latency', '-H', 'Host: site-0.example'],
		`http://127.0.0.1:${port}/`,
	]);
	const [, value, unit] = /99%\s+([\d.]+)(us|ms|s)\b/.exec(stdout)!;
	return Number(value) * { us: 0.001, ms: 1, s: 1000 }[unit as 'us' | 'ms' | 's'];
}
