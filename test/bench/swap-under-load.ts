/**
 * Configuration reloads under request load. For 20 s, 64 keep-alive connections send requests while 200 reloads alternate
 * between documents that differ in status, header and body of the same URL. No response may fail or mix two documents,
 * no request sent after a reload has finished may see an older document, and the p99 may at most double.
 *
 * Usage: node test/bench/swap-under-load.ts [--seconds 20] [--loads 200]
 */

import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { freePorts, type ServerProcess, serve, temporaryFolder } from '../harness.ts';
import { type LoadResult, quantile, startLoad } from '../load-client.ts';

/** The measurements of a run without reloads and of one with reloads. */
export interface SwapFindings {
	readonly quiet: LoadResult;
	readonly loaded: LoadResult;
	readonly loads: number;
	/** Milliseconds that each reload took, sorted. */
	readonly loadTimes: Float64Array;
}

/** Returns a document whose status, header and body all identify its `number`. */
export function numberedDocument(port: number, adminPort: number, number: number): string {
	return `{
	admin 127.0.0.1:${adminPort}
	threads 2
}
http://127.0.0.1:${port} {
	header X-Number ${number}
	respond "number ${number}" ${200 + (number % 2)}
}
`;
}

/** Checks a response to a numbered document. Returns a description of what is wrong; undefined if nothing is. */
export function numberedResponseError(status: number, head: string, body: string, atLeast: number): string | undefined {
	const inHeader = /^x-number: (\d+)/im.exec(head)?.[1];
	const inBody = /^number (\d+)$/.exec(body)?.[1];
	if (inHeader === undefined || inHeader !== inBody || status !== 200 + (Number(inBody) % 2)) {
		return `mixed: status ${status}, header ${inHeader}, body ${JSON.stringify(body)}`;
	}
	if (Number(inBody) < atLeast) return `document ${inBody} after the load of ${atLeast} was answered`;
	return undefined;
}

/** Runs the same request load twice, without and with configuration reloads. */
export async function swapUnderLoad(seconds: number, loads: number): Promise<SwapFindings> {
	const [port, adminPort] = (await freePorts(2)) as [number, number];
	const folder = temporaryFolder();
	const file = path.join(folder, 'Configfile');
	writeFileSync(file, numberedDocument(port, adminPort, 0));
	const server: ServerProcess = await serve([file], port);
	let answeredCount = 0;
	const run = async (during: () => Promise<void>): Promise<LoadResult> => {
		const load = startLoad({
			port,
			connections: 64,
			request: `GET / HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`,
			mark: () => answeredCount,
			check: response => numberedResponseError(response.status, response.head, response.body, response.mark),
		});
		await during();
		return load.stop();
	};
	const sleep = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms));
	const loadTimes: number[] = [];
	try {
		await run(() => sleep(Math.min(2000, seconds * 200)));
		const quiet = await run(() => sleep(seconds * 1000));
		const startedAt = performance.now();
		const loaded = await run(async () => {
			for (let number = 1; number <= loads; number++) {
				const due = startedAt + (number * seconds * 1000) / loads;
				await sleep(Math.max(0, due - performance.now()));
				const before = performance.now();
				const response = await fetch(`http://127.0.0.1:${adminPort}/load`, {
					method: 'POST',
					headers: { 'Content-Type': 'text/configfile' },
					body: numberedDocument(port, adminPort, number),
				});
				const text = await response.text();
				if (response.status !== 200) throw new Error(`load ${number}: ${response.status} ${text}`);
				loadTimes.push(performance.now() - before);
				answeredCount = number;
			}
		});
		return { quiet, loaded, loads, loadTimes: Float64Array.from(loadTimes).sort() };
	} finally {
		await server.stop();
	}
}

if (import.meta.main) {
	const { values } = parseArgs({
		options: { seconds: { type: 'string', default: '20' }, loads: { type: 'string', default: '200' } },
	});
	const { quiet, loaded, loads, loadTimes } = await swapUnderLoad(Number(values.seconds), Number(values.loads));
	const ratio = quantile(loaded.times, 0.99) / quantile(quiet.times, 0.99);
	console.log(
		`without loads: ${quiet.requests} requests, ${quiet.failed} failed, p99 ${quantile(quiet.times, 0.99).toFixed(2)} ms`,
	);
	console.log(
		`with ${loads} loads: ${loaded.requests} requests, ${loaded.failed} failed, p99 ${quantile(loaded.times, 0.99).toFixed(2)} ms (${ratio.toFixed(2)} times)`,
	);
	console.log(
		`a load took ${quantile(loadTimes, 0.5).toFixed(1)} ms (median), ${quantile(loadTimes, 0.99).toFixed(1)} ms (p99)`,
	);
	for (const failure of [...quiet.failures, ...loaded.failures]) console.log(`  ${failure}`);
	process.exitCode = quiet.failed + loaded.failed > 0 || ratio > 2 ? 1 : 0;
}
