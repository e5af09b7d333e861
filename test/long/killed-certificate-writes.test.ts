/**
 * A process that is killed at any moment while it writes certificates leaves a matching certificate and key for each name, either
 * old or new. KILLS sets the number of kills: `KILLS=500 node test/long/killed-certificate-writes.test.ts`.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
	createCertificateRecord,
	readCertificateRecord,
	writeCertificateRecord,
} from '../../runtime/certificates/certificate-records.ts';
import { openFileStore } from '../../runtime/storage/file-store.ts';
import { TestAuthority } from '../certificates.ts';
import { ROOT, temporaryFolder } from '../harness.ts';

const KILLS = Number(process.env.KILLS ?? 150);
const NAMES = ['a.example', 'b.example', '*.c.example'];
/** Number of certificates per name, written in rotation. */
const PAIRS_PER_NAME = 6;

const moduleUrl = (file: string): string => JSON.stringify(pathToFileURL(path.join(ROOT, file)).href);

/** A program that writes one pair after another as fast as it can, starting at the index given as an argument. */
const PROGRAM = `
import { readFileSync } from 'node:fs';
const { createCertificateRecord, writeCertificateRecord } = await import(${moduleUrl('runtime/certificates/certificate-records.ts')});
const { openFileStore } = await import(${moduleUrl('runtime/storage/file-store.ts')});
const [folder, pairsFile, begin] = process.argv.slice(1);
const pairs = JSON.parse(readFileSync(pairsFile, 'utf8'));
const store = openFileStore(folder);
console.log('writing');
for (let at = Number(begin); ; at++) {
	const { name, certificate, key } = pairs[at % pairs.length];
	await writeCertificateRecord(store, createCertificateRecord('ca', name, certificate, key), {});
}
`;

/** Returns a seeded generator of random numbers from 0 to 1. */
function randomNumbers(seed: number): () => number {
	let state = seed;
	return () => {
		state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
		return state / 2 ** 32;
	};
}

const killed = suite('killed while writing certificates');

killed(`after each of ${KILLS} kills, every name has a matching certificate and key`, async () => {
	const folder = temporaryFolder();
	const authority = await TestAuthority.make();
	const issued = await Promise.all(
		NAMES.flatMap(name =>
			Array.from({ length: PAIRS_PER_NAME }, async () => ({ name, ...(await authority.issue({ names: [name] })) })),
		),
	);
	const pairs = issued.sort((a, b) => (a.key < b.key ? -1 : 1));
	const pairsFile = path.join(temporaryFolder(), 'pairs.json');
	writeFileSync(pairsFile, JSON.stringify(pairs));
	const store = openFileStore(folder);
	for (const name of NAMES) {
		const { certificate, key } = pairs.find(pair => pair.name === name)!;
		await writeCertificateRecord(store, createCertificateRecord('ca', name, certificate, key)!, {});
	}
	const chance = randomNumbers(6);
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
			const record = await readCertificateRecord(store, 'ca', name);
			assert.ok(record, `${name} after kill ${count}`);
			const known = pairs.find(pair => pair.certificate === record.chain);
			assert.is(known?.key, record.privateKey, `${name} after kill ${count}`);
			if (await store.stat(`certificates/ca/${name.replace('*', 'wildcard_')}/${name.replace('*', 'wildcard_')}.next`))
				unfinished++;
		}
	}
	console.log(`${KILLS} kills, ${unfinished} of them between the two files of a pair`);
	assert.ok(unfinished > 0, 'no kill happened between the two files of a pair');
	const files = readdirSync(folder, { recursive: true, withFileTypes: true });
	for (const file of files) {
		const { mode } = statSync(path.join(file.parentPath, file.name));
		assert.is(mode & 0o777, file.isDirectory() ? 0o700 : 0o600, file.name);
	}
});

killed.run();
