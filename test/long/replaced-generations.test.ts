/**
 * Configurations with certificates replace one another, each after some handshakes. The memory of replaced generations
 * must be released.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Document, Site } from '../../compiler/document/document.ts';
import { startRuntime } from '../../runtime/main/runtime.ts';
import { TestAuthority } from '../certificates.ts';
import { freePorts, temporaryFolder } from '../harness.ts';
import { jsonInput, recordingLog } from '../runtime/running-server.ts';
import { tlsGet } from '../runtime/tls/tls-client.ts';

const SITES = 30;
/** Number of handshakes in each generation, each with a different certificate. */
const HANDSHAKES = 20;
/** Number of rounds until the C library's heap has reached its final size. */
const WARM_UP_ROUNDS = 100;
const ROUNDS = 100;
/**
 * Number of rounds of which the lowest memory use is compared. The use rises and falls by 20 MiB, as V8 collects garbage and the
 * allocator returns memory.
 */
const LOWEST_OF_ROUNDS = 20;
/**
 * Permitted growth of resident memory in bytes. The two minima are at least 80 rounds apart. In 80 rounds, retained contexts alone (20
 * per round, 60 KB each) would take 94 MiB.
 */
const MAX_GROWTH_BYTES = 20 * 1024 * 1024;

// Makes every garbage collection a full one on all threads, because the test must not depend on when V8 collects.
setFlagsFromString('--gc-global');

const generations = suite('replaced generations');

generations('leave no memory behind', async () => {
	const folder = temporaryFolder();
	const authority = await TestAuthority.make();
	for (const set of ['0', '1']) {
		mkdirSync(path.join(folder, set));
		for (let at = 0; at < SITES; at++) {
			const { certificate, key } = await authority.issue({ names: [`${at}.test`] });
			writeFileSync(path.join(folder, set, `${at}.pem`), certificate);
			writeFileSync(path.join(folder, set, `${at}.key`), key, { mode: 0o600 });
		}
	}
	const [port] = (await freePorts(1)) as [number];
	const document = (round: number): Document => {
		const site = (at: number): Site => {
			const file = path.join(folder, String(round % 2), String(at));
			return {
				addresses: [`https://${at}.test:${port}`],
				bind: ['127.0.0.1'],
				tls: { certificates: [{ certificate: `${file}.pem`, key: `${file}.key` }] },
				pipeline: [{ handler: 'respond', body: `round ${round}` }],
			};
		};
		return { settings: { auto_https: ['off'] }, sites: Array.from({ length: SITES }, (_, at) => site(at)) };
	};
	const log = recordingLog();
	const server = await startRuntime({
		input: jsonInput(document(0)),
		threads: 1,
		writers: { stdout: log, stderr: log },
	});
	try {
		const round = async (at: number): Promise<void> => {
			const outcome = await server.load(jsonInput(document(at)));
			assert.is(outcome.result, 'applied', JSON.stringify(outcome));
			const names = Array.from({ length: HANDSHAKES }, (_, turn) => `${(at * HANDSHAKES + turn) % SITES}.test`);
			for (const servername of names) assert.is((await tlsGet(port, { servername })).body, `round ${at}`);
		};
		const usedBytes: number[] = [];
		for (let at = 1; at <= WARM_UP_ROUNDS + ROUNDS; at++) {
			await round(at);
			usedBytes.push(process.memoryUsage.rss());
		}
		const before = Math.min(...usedBytes.slice(WARM_UP_ROUNDS - LOWEST_OF_ROUNDS, WARM_UP_ROUNDS));
		const grown = Math.min(...usedBytes.slice(-LOWEST_OF_ROUNDS)) - before;
		console.log(`${ROUNDS} generations: ${(grown / 1024 / 1024).toFixed(1)} MiB more`);
		assert.ok(grown < MAX_GROWTH_BYTES, `${grown} bytes`);
	} finally {
		server.kill();
		await server.stop();
	}
});

generations.run();
