/** The launcher of the checkout, `cli/svc`, finds the right Node and runs the program with it. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { LAUNCHER, temporaryFolder } from '../harness.ts';

const launcher = suite('launcher');

/** Runs a command as a user's shell would, without the environment variables of the test run. */
function runAsUser(command: string, args: readonly string[], variables: { readonly [name: string]: string } = {}) {
	const { NODE_COMPILE_CACHE: _, SVC_LAUNCHER_CACHE: __, ...environment } = process.env;
	return spawnSync(command, args, { encoding: 'utf8', env: { ...environment, ...variables } });
}

launcher('the launcher works through absolute and relative symbolic links', () => {
	const folder = temporaryFolder();
	symlinkSync(LAUNCHER, path.join(folder, 'first'));
	symlinkSync('first', path.join(folder, 'second'));
	const found = [
		runAsUser(path.join(folder, 'second'), ['version']),
		runAsUser('second', ['version'], { PATH: `${folder}:${process.env.PATH}` }),
	];
	for (const { stdout } of found) assert.match(stdout, /^v0\.0\.0-dev/);
});

launcher('without Node, the launcher prints what is missing', () => {
	const folder = temporaryFolder();
	mkdirSync(path.join(folder, 'cli'));
	copyFileSync(LAUNCHER, path.join(folder, 'cli/svc'));
	const result = spawnSync('/bin/sh', [path.join(folder, 'cli/svc'), 'version'], {
		encoding: 'utf8',
		env: { PATH: folder },
	});
	assert.is(result.status, 1);
	assert.is(result.stdout, '');
	assert.match(result.stderr, /^error: svc needs Node 26: .*\n$/);
});

launcher("the launcher's own variables do not leak into the environment", () => {
	const result = runAsUser(LAUNCHER, ['environ'], { SVC_TEST_MARK: 'kept' });
	assert.match(result.stdout, 'SVC_TEST_MARK=kept\n');
	assert.not.match(result.stdout, /CACHE/);
});

launcher.run();
