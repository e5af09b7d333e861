/** The versions of checkouts in every layout that git uses, and the version that a server reports. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { checkoutVersion } from '../../cli/command/version.ts';
import { freePorts, SVC, serve, temporaryFolder } from '../harness.ts';

const COMMIT = '0123456789abcdef0123456789abcdef01234567';
const EXPECTED = 'v0.0.0-dev+0123456789ab';

function folderWith(files: { readonly [name: string]: string }): string {
	const folder = temporaryFolder();
	for (const [name, text] of Object.entries(files)) {
		mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
		writeFileSync(path.join(folder, name), text);
	}
	return folder;
}

const versions = suite('version of a checkout');

versions('is read from the file of a branch', () => {
	const folder = folderWith({ '.git/HEAD': 'ref: refs/heads/main\n', '.git/refs/heads/main': `${COMMIT}\n` });
	assert.is(checkoutVersion(folder), EXPECTED);
});

versions('is read from the packed branches', () => {
	const packed = `# pack-refs with: peeled\n${'f'.repeat(40)} refs/heads/other\n${COMMIT} refs/heads/main\n`;
	const folder = folderWith({ '.git/HEAD': 'ref: refs/heads/main\n', '.git/packed-refs': packed });
	assert.is(checkoutVersion(folder), EXPECTED);
});

versions('is read from a detached HEAD', () => {
	assert.is(checkoutVersion(folderWith({ '.git/HEAD': `${COMMIT}\n` })), EXPECTED);
});

versions('is read from a linked worktree', () => {
	const folder = folderWith({
		'tree/.git': 'gitdir: ../main/.git/worktrees/tree\n',
		'main/.git/worktrees/tree/HEAD': 'ref: refs/heads/side\n',
		'main/.git/worktrees/tree/commondir': '../..\n',
		'main/.git/refs/heads/side': `${COMMIT}\n`,
	});
	assert.is(checkoutVersion(path.join(folder, 'tree')), EXPECTED);
});

versions('has no commit without git, or on a branch without commits', () => {
	assert.is(checkoutVersion(folderWith({})), 'v0.0.0-dev');
	assert.is(checkoutVersion(folderWith({ '.git/HEAD': 'ref: refs/heads/main\n' })), 'v0.0.0-dev');
});

const metrics = suite('version of a server');

metrics('a server reports its version in its metrics', async () => {
	const [port, admin] = (await freePorts(2)) as [number, number];
	const folder = folderWith({
		Configfile: `{\n\tadmin 127.0.0.1:${admin}\n\tmetrics\n\tthreads 1\n}\nhttp://127.0.0.1:${port} {\n\trespond "ok"\n}\n`,
	});
	const server = await serve([path.join(folder, 'Configfile')], port);
	try {
		const text = await (await fetch(`http://127.0.0.1:${admin}/metrics`)).text();
		const version = spawnSync(SVC, ['version'], { encoding: 'utf8' }).stdout.trim();
		assert.ok(text.includes(`svc_build_info{version="${version}",`), version);
	} finally {
		await server.stop();
	}
});

versions.run();
metrics.run();
