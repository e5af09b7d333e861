/** The Node executable shipped in the binary has the pinned checksum: in the lock file, after installation and in the build. */
import { spawnSync } from 'node:child_process';
import { appendFileSync, copyFileSync, existsSync, readFileSync, truncateSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { INSTALLED_NODE, verifyNode } from '../../../cli/packaging/pinned-node.js';
import { ROOT, temporaryFolder } from '../../harness.ts';

const CHECK_SCRIPT = path.join(ROOT, 'cli/packaging/pinned-node.js');

function read(name: string) {
	return JSON.parse(readFileSync(path.join(ROOT, name), 'utf8'));
}

/** Returns a copy of the installed executable with one byte appended. */
function tamperedNode(): string {
	const copy = path.join(temporaryFolder(), 'node');
	copyFileSync(INSTALLED_NODE, copy);
	appendFileSync(copy, '!');
	return copy;
}

async function refusal(executable: string, platform?: string): Promise<string> {
	return verifyNode(executable, platform).then(
		() => 'accepted',
		(error: Error) => error.message,
	);
}

const pinned = suite('pinned Node');

pinned(
	'every platform has a checksum, and the lock file has a package with an integrity hash of the same version',
	() => {
		const { version, sha256 } = read('cli/packaging/node-checksums.json');
		const wanted: Record<string, string> = read('package.json').optionalDependencies;
		const { packages } = read('package-lock.json');
		const platforms = Object.keys(wanted).map(name => {
			assert.is(wanted[name], version, name);
			const locked = packages[`node_modules/${name}`];
			assert.is(locked.version, version, name);
			assert.match(locked.integrity, /^sha512-[A-Za-z0-9+/]{86}==$/);
			assert.not.ok(locked.hasInstallScript, name);
			return `${locked.os}-${locked.cpu}`;
		});
		assert.equal(platforms.sort(), Object.keys(sha256).sort());
		for (const digest of Object.values(sha256)) assert.match(String(digest), /^[0-9a-f]{64}$/);
		assert.not.ok(
			packages['node_modules/node'],
			'the package `node` downloads files that the lock file does not cover',
		);
	},
);

pinned(
	'only the pinned executable is accepted: not a changed or missing one, nor one for a platform without a pin',
	async () => {
		assert.is(await refusal(INSTALLED_NODE), 'accepted');
		const copy = tamperedNode();
		assert.match(
			await refusal(copy),
			/is not the Node [\d.]+ for \S+ that svc is built with: its SHA-256 is [0-9a-f]{64}/,
		);
		assert.match(await refusal(`${copy}-away`), /cannot be read: it is not there\. Run npm ci/);
		assert.match(await refusal(INSTALLED_NODE, 'sunos-sparc'), /^No checksum of Node [\d.]+ is pinned for sunos-sparc/);
		truncateSync(copy, readFileSync(copy).length - 1);
		assert.is(await refusal(copy), 'accepted');
	},
);

pinned('the check that npm and CI run fails for a tampered executable', () => {
	const check = (...args: string[]) => spawnSync(process.execPath, [CHECK_SCRIPT, ...args], { encoding: 'utf8' });
	assert.equal([check().status, check().stderr], [0, '']);
	const { status, stderr } = check(tamperedNode());
	assert.is(status, 1);
	assert.match(stderr, /^error: .* is not the Node /);
	const { scripts } = read('package.json');
	for (const name of ['postinstall', 'build']) assert.match(scripts[name], 'cli/packaging/pinned-node.js', name);
});

pinned('the build refuses a tampered executable before it writes anything', () => {
	const output = path.join(temporaryFolder(), 'dist/svc');
	const build = spawnSync(tamperedNode(), ['cli/packaging/build.ts', '--output', output], {
		cwd: ROOT,
		encoding: 'utf8',
	});
	assert.is(build.status, 1);
	assert.match(build.stderr, /^error: .* is not the Node [\d.]+ for .*, but [0-9a-f]{64} is pinned/);
	assert.not.ok(existsSync(path.dirname(output)));
});

pinned.run();
