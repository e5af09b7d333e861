/**
 * Reloads a configuration of 10,000 sites, one of them changed, while clients send requests. The p99 may rise by less than
 * 5 ms, and each reload must finish in under a second.
 *
 * Usage: node test/bench/many-sites.ts [--sites 10000] [--loads 10]
 */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { freePorts, serve, temporaryFolder, waitForPort } from '../harness.ts';
import { type LoadResult, quantile, startLoad } from '../load-client.ts';

/** Returns a document of many sites with six directives each; the response of site 0 contains `number`. */
export function manySitesDocument(count: number, port: number, options: string, number: number): string {
	const parts = [options];
	for (let index = 0; index < count; index++) {
		parts.push(`http://site-${index}.example:${port} {
	header X-Site ${index}
	@old path /old /old/*
	redir @old /new permanent
	request_header X-In yes
	rewrite /a /b
	respond "site ${index} number ${index === 0 ? number : 0}"
}
`);
	}
	return parts.join('');
}

/**
 * Reloads the configuration while clients send requests at a moderate rate. Returns response times with and without
 * reloads, and the time of each reload.
 */
export async function measureSingleSiteChange(
	sites: number,
	loads: number,
): Promise<{ quiet: LoadResult; loaded: LoadResult; loadTimes: number[] }> {
	const [port, adminPort] = (await freePorts(2)) as [number, number];
	const options = `{\n\tadmin 127.0.0.1:${adminPort}\n\tthreads 2\n}\n`;
	const file = path.join(temporaryFolder(), 'Configfile');
	writeFileSync(file, manySitesDocument(sites, port, options, 0));
	const server = await serve([file], port);
	await waitForPort(adminPort);
	let answeredCount = 0;
	const run = async (during: () => Promise<void>): Promise<LoadResult> => {
		const load = startLoad({
			port,
			connections: 8,
			request: `GET / HTTP/1.1\r\nHost: site-0.example\r\n\r\n`,
			mark: () => answeredCount,
			check: response => {
				const number = Number(/^site 0 number (\d+)$/.exec(response.body)?.[1] ?? Number.NaN);
				return number >= response.mark ? undefined : `after load ${response.mark}: ${response.body}`;
			},
		});
		await during();
		return load.stop();
	};
	const sleep = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms));
	const loadTimes: number[] = [];
	try {
		await run(() => sleep(1000));
		const quiet = await run(() => sleep(5000));
		// The configurations are generated in advance, so that generating them takes no CPU time from the clients.
		const texts = Array.from({ length: loads }, (_, index) => manySitesDocument(sites, port, options, index + 1));
		const loaded = await run(async () => {
			for (const [index, body] of texts.entries()) {
				const before = performance.now();
				const response = await fetch(`http://127.0.0.1:${adminPort}/load`, {
					method: 'POST',
					headers: { 'Content-Type': 'text/configfile' },
					body,
				});
				const text = await response.text();
				if (response.status !== 200) throw new Error(`load ${index + 1}: ${response.status} ${text}`);
				loadTimes.push(performance.now() - before);
				answeredCount = index + 1;
				await sleep(200);
			}
		});
		return { quiet, loaded, loadTimes };
	} finally {
		await server.stop();
	}
}

if (import.meta.main) {
	const { values } = parseArgs({
		options: { sites: { type: 'string', default: '10000' }, loads: { type: 'string', default: '10' } },
	});
	const { quiet, loaded, loadTimes } = await measureSingleSiteChange(Number(values.sites), Number(values.loads));
	const moved = quantile(loaded.times, 0.99) - quantile(quiet.times, 0.99);
	console.log(
		`without loads: ${quiet.requests} requests, p99 ${quantile(quiet.times, 0.99).toFixed(2)} ms, longest ${quantile(quiet.times, 1).toFixed(1)} ms`,
	);
	console.log(
		`with loads: ${loaded.requests} requests, p99 ${quantile(loaded.times, 0.99).toFixed(2)} ms (moved by ${moved.toFixed(2)} ms), longest ${quantile(loaded.times, 1).toFixed(1)} ms`,
	);
	console.log(`loads took ${loadTimes.map(time => time.toFixed(0)).join(', ')} ms`);
	for (const failure of [...quiet.failures, ...loaded.failures]) console.log(`  ${failure}`);
	process.exitCode = quiet.failed + loaded.failed > 0 || moved >= 5 || Math.max(...loadTimes) >= 1000 ? 1 : 0;
}
