/**
 * `npm run build` makes a single binary that works like the checkout on a machine without Node. .ci/run repeats the
 * tests of test/cli with SVC_BIN to check that the binary also passes the command line cases.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, renameSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, ROOT, temporaryFolder } from '../harness.ts';

const folder = temporaryFolder();
const built = path.join(folder, 'built', 'svc');
const moved = path.join(folder, 'elsewhere', 'svc');

const binary = suite('binary');

binary('the build prints one line, and produces the binary and its installation files', () => {
	const build = path.join(ROOT, 'cli/packaging/build.ts');
	const result = spawnSync(process.execPath, [build, '--release', 'v9.8.7', '--output', built], { encoding: 'utf8' });
	assert.is(result.stderr, '');
	assert.is(result.status, 0);
	assert.match(result.stdout, /^\S+svc {2}v9\.8\.7 {2}\d+\.\d MB\n$/);
	assert.equal(readdirSync(path.dirname(built)).sort(), [
		'install.sh',
		'monitoring',
		'svc',
		'svc.service',
		'svc.socket',
	]);
	assert.is(statSync(path.join(path.dirname(built), 'install.sh')).mode & 0o111, 0o111);
	mkdirSync(path.dirname(moved));
	renameSync(built, moved);
});

binary('the binary reports its release, and ignores NODE_OPTIONS', () => {
	const run = (...args: string[]) =>
		spawnSync(moved, args, { encoding: 'utf8', cwd: '/', env: { NODE_OPTIONS: '--require /nowhere' } });
	assert.is(run('version').stdout, 'v9.8.7\n');
	assert.match(
		run('build-info').stdout,
		/^version: v9\.8\.7\n[\s\S]*form: single binary\nio: (direct|node)\ntls: (openssl|node)\n$/,
	);
	assert.match(run('list-modules', '--versions').stdout, 'http.handlers.respond v9.8.7\n');
});

binary('an invalid release number is refused', () => {
	const build = path.join(ROOT, 'cli/packaging/build.ts');
	const result = spawnSync(process.execPath, [build, '--release', '1.0', '--output', built], { encoding: 'utf8' });
	assert.is(result.status, 1);
	assert.is(result.stderr, 'error: `1.0` is not a release; write it as v0.2.2.\n');
});

binary('the binary serves requests with its worker threads, in the foreground and in the background', async () => {
	const [port, admin] = (await freePorts(2)) as [number, number];
	const Configfile = `{\n\tadmin 127.0.0.1:${admin}\n\tmetrics\n}\n:${port} {\n\trespond "from the binary"\n}\n`;
	writeFileSync(path.join(folder, 'Configfile'), Configfile);
	const run = (...args: string[]) => spawnSync(moved, args, { encoding: 'utf8', cwd: folder, env: {} });
	const started = run('start');
	assert.is(started.status, 0, started.stderr);
	try {
		assert.is(await (await fetch(`http://127.0.0.1:${port}/`)).text(), 'from the binary');
		assert.match(await (await fetch(`http://127.0.0.1:${admin}/metrics`)).text(), 'std_http_requests_total');
		writeFileSync(path.join(folder, 'Configfile'), Configfile.replace('the binary', 'a reload'));
		assert.is(run('reload').stderr, '');
		assert.is(await (await fetch(`http://127.0.0.1:${port}/`)).text(), 'from a reload');
	} finally {
		assert.is(run('stop').status, 0);
	}
});

binary.run();
