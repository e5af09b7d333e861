/** A process that is killed at any moment while it saves its configuration leaves a complete file: the old or the new one. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ROOT, temporaryFolder } from '../harness.ts';

const KILLS = Number(process.env.KILLS ?? 200);

/** A program that saves documents as fast as it can. Each document contains its own length. */
const PROGRAM = `
import { Autosave } from ${JSON.stringify(pathToFileURL(path.join(ROOT, 'cli/serving/autosave.ts')).href)};
const autosave = new Autosave(process.argv[1], error => { console.error(error); process.exit(1); });
for (let count = 1; ; count++) {
	const filler = 'x'.repeat((count * 7919) % 200000);
	await autosave.save(JSON.stringify({ count, length: filler.length, filler }));
	if (count === 1) console.log('saving');
}
`;

const killed = suite('killed while saving');

killed(`after each of ${KILLS} kills, the file is complete`, async () => {
	const folder = temporaryFolder();
	const saved = path.join(folder, 'autosave.json');
	for (let count = 0; count < KILLS; count++) {
		const child = spawn(process.execPath, ['--input-type=module', '-e', PROGRAM, folder], {
			stdio: ['ignore', 'pipe', 'inherit'],
		});
		await once(child.stdout, 'data');
		await new Promise(resolve => setTimeout(resolve, Math.random() * 20));
		child.kill('SIGKILL');
		await once(child, 'close');
		const document = JSON.parse(readFileSync(saved, 'utf8'));
		assert.is(document.filler.length, document.length);
		assert.is(statSync(saved).mode & 0o777, 0o600);
	}
	assert.ok(existsSync(saved));
	// Files left over from interrupted writes must also be unreadable for other users.
	for (const name of readdirSync(folder)) assert.is(statSync(path.join(folder, name)).mode & 0o077, 0, name);
});

killed.run();
