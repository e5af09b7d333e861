/** `npm run build` is repeatable: it makes the same bytes from two copies of the sources in different folders. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ROOT, temporaryFolder } from '../harness.ts';

const folder = temporaryFolder();

/** Copies the sources and returns the copy's folder. */
function copySources(name: string): string {
	const copy = path.join(folder, name);
	mkdirSync(copy, { recursive: true });
	for (const part of ['admin', 'cli', 'compiler', 'runtime', 'package.json', 'tsconfig.json']) {
		cpSync(path.join(ROOT, part), path.join(copy, part), { recursive: true });
	}
	symlinkSync(path.join(ROOT, 'node_modules'), path.join(copy, 'node_modules'));
	return copy;
}

async function build(copy: string, time: string, platform: string): Promise<Buffer> {
	const output = path.join(copy, 'dist', platform);
	const args = ['cli/packaging/build.ts', '--release', 'v1.2.3', '--platform', platform, '--output', output];
	const env = { PATH: process.env.PATH, TZ: time, LANG: time === 'UTC' ? 'C' : 'de_DE.UTF-8' };
	const child = spawn(process.execPath, args, { cwd: copy, env, stdio: ['ignore', 'ignore', 'inherit'] });
	assert.equal(await once(child, 'exit'), [0, null]);
	return readFileSync(output);
}

const builds = suite('repeatable build');

builds('two builds at the same time in different folders, time zones and languages have the same bytes', async () => {
	const here = `${process.platform}-${process.arch}`;
	const [first, second] = [copySources('first'), copySources('a/much/longer/path/to the second')];
	const [one, other] = await Promise.all([build(first, 'UTC', here), build(second, 'Asia/Tokyo', here)]);
	assert.ok(one.equals(other), 'the two binaries differ');
	assert.not(one.includes(folder), 'the binary contains a path of the build');
	assert.is(spawnSync(path.join(first, 'dist', here), ['version'], { encoding: 'utf8' }).stdout, 'v1.2.3\n');
});

if (process.platform === 'linux') builds.run();
