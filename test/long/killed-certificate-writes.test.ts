/**
 * A process that is killed at any moment of writing certificates leaves for each name a whole pair, the old or the new one.
 * KILLS in the environment says how often: `KILLS=500 node test/long/killed-certificate-writes.test.ts`.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { readRecord, recordOf, writeRecord } from '../../runtime/certificates/certificate-records.ts';
import { openFileStore } from '../../runtime/storage/file-store.ts';
import { TestAuthority } from '../certificates.ts';
import { ROOT, temporaryFolder } from '../harness.ts';

const KILLS = Number(process.env.KILLS ?? 150);
const NAMES = ['a.example', 'b.example', '*.c.example'];
/** Pairs that take turns in each name's place. */
const PAIRS = 6;

const module = (file: string): string => JSON.stringify(pathToFileURL(path.join(ROOT, file)).href);

/** Writes one pair after another, as fast as it can, beginning with the so many-th. */
const PROGRAM = `
import { readFileSync } from 'node:fs';
const { recordOf, writeRecord } = await import(${module('runtime/certificates/certificate-records.ts')});
const { openFileStore } = await import(${module('runtime/storage/file-store.ts')});
const [folder, pairsFile, begin] = process.argv.slice(1);
const pairs = JSON.parse(readFileSync(pairsFile, 'utf8'));
const store = openFileStore(folder);
console.log('writing');
for (let at = Number(begin); ; at++) {
	const { name, certificate, key } = pairs[at % pairs.length];
	await writeRecord(store, recordOf('ca', name, certificate, key), {});
}
`;

/** The same numbers from 0 to 1 in every run. */
function numbers(seed: number): () => number {
	let state = seed;
	return () => {
		state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
		return state / 2 ** 32;
	};
}

const killed = suite('killed while writing certificates');

killed(`${KILLS} times, every name has a whole pair`, async () => {
	const folder = temporaryFolder();
	const authority = await TestAuthority.make();
	const issued = await Promise.all(
		NAMES.flatMap(name =>
			Array.from({ length: PAIRS }, async () => ({ name, ...(await authority.issue({ names: [name] })) })),
		),
	);
	const pairs = issued.sort((a, b) => (a.key < b.key ? -1 : 1));
	const pairsFile = path.join(temporaryFolder(), 'pairs.json');
	writeFileSync(pairsFile, JSON.stringify(pairs));
	const store = openFileStore(folder);
	for (const name of NAMES) {
		const { certificate, key } = pairs.find(pair => pair.name === name)!;
		await writeRecord(store, recordOf('ca', name, certificate, key)!, {});
	}
	const chance = numbers(6);
	let unfinished = 0;
	for (let count = 0; count < KILLS; count++) {
		const child = spawn(process.execPath, ['--input-type=module', '-e', PROGRAM, folder, pairsFile, String(count)], {
			stdio: ['ignore', 'pipe', 'inherit'],
		});
		await once(child.stdout, 'data');
		await new Promise(resolve => setTimeout(resolve, chance() * 25));
		child.kill('SIGKILL');
		await once(child, 'close');
		for (const name of NAMES) {
			const record = await readRecord(store, 'ca', name);
			assert.ok(record, `${name} after kill ${count}`);
			const known = pairs.find(pair => pair.certificate === record.chain);
			assert.is(known?.key, record.privateKey, `${name} after kill ${count}`);
			if (await store.stat(`certificates/ca/${name.replace('*', 'wildcard_')}/${name.replace('*', 'wildcard_')}.next`))
				unfinished++;
		}
	}
	console.log(`${KILLS} kills, ${unfinished} times a pair stood between its two files`);
	assert.ok(unfinished > 0, 'no kill came between the two files of a pair');
	const files = readdirSync(folder, { recursive: true, withFileTypes: true });
	for (const file of files) {
		const { mode } = statSync(path.join(file.parentPath, file.name));
		assert.is(mode & 0o777, file.isDirectory() ? 0o700 : 0o600, file.name);
	}
});

killed.run();
