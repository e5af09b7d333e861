/**
 * `npm run build` makes a single binary that works like the checkout on a machine without Node. The binary that test/run.ts or
 * .ci/run has built for all tests is used, because a build takes long. Without one, this file builds a release of its own.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
	copyFileSync,
	existsSync,
	mkdirSync,
	readdirSync,
	readFileSync,
	readlinkSync,
	renameSync,
	statSync,
	writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { Script } from 'node:vm';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { version } from '../../cli/command/version.ts';
import { isWorkerPart } from '../../cli/packaging/worker-bundle.ts';
import { THREAD_CODE_VARIABLE } from '../../runtime/threads/thread-source.ts';
import { freePorts, LAUNCHER, ROOT, SVC, temporaryFolder, until } from '../harness.ts';

const folder = temporaryFolder();
/** The folder with the code of the threads, for the binary that was built for all tests; undefined if there is no such binary. */
const sharedThreadCode = SVC === LAUNCHER ? undefined : process.env[THREAD_CODE_VARIABLE];
const isOwnBuild = sharedThreadCode === undefined;
const built = isOwnBuild ? path.join(folder, 'built', 'svc') : SVC;
const threadCode = sharedThreadCode ?? path.join(folder, 'threads');
const release = isOwnBuild ? 'v9.8.7' : version();
const moved = path.join(folder, 'elsewhere', 'svc');

const binary = suite('binary');

if (isOwnBuild) {
	binary('the build prints one line', () => {
		const build = path.join(ROOT, 'cli/packaging/build.ts');
		const args = [build, '--release', release, '--output', built, '--thread-code', threadCode];
		const result = spawnSync(process.execPath, args, { encoding: 'utf8' });
		assert.is(result.stderr, '');
		assert.is(result.status, 0);
		assert.match(result.stdout, /^\S+svc {2}v9\.8\.7 {2}\d+\.\d MB\n$/);
	});
}

binary('the build produces the installation files next to the binary, which can be moved', () => {
	const place = path.dirname(built);
	const expected = ['container', 'install.sh', 'monitoring', 'svc', 'svc.service', 'svc.socket'];
	assert.equal(
		expected.filter(name => !existsSync(path.join(place, name))),
		[],
	);
	assert.equal(
		readdirSync(place).filter(name => name.startsWith('.build-')),
		[],
		'temporary folders of the build',
	);
	assert.is(statSync(path.join(place, 'install.sh')).mode & 0o111, 0o111);
	mkdirSync(path.dirname(moved));
	copyFileSync(built, moved);
});

binary('V8 accepts all code caches of the binary: those of the threads, and those of the program', () => {
	const threads = readdirSync(threadCode).filter(name => name.endsWith('.js'));
	assert.equal(threads.filter(name => !isWorkerPart(name)).sort(), [
		...['node-modules.js', 'package-ajv.js', 'package-cel.js', 'package-markdown.js', 'package-yaml.js'],
		...['thread-compiler.js', 'thread-pages.js', 'thread-passwords.js', 'thread-worker.js'],
	]);
	assert.ok(threads.some(name => /^worker-templates-handler-\w+\.js$/.test(name)));
	for (const name of threads) {
		const source = readFileSync(path.join(threadCode, name), 'latin1');
		assert.not(/[^\0-\x7f]/.test(source), 'the source takes two bytes for each character');
		const thread = new Script(source, { filename: `svc-${name}`, cachedData: cacheOf(name) });
		assert.is(thread.cachedDataRejected, false, name);
	}
	const cachedData = cacheOf('thread-worker.js');
	// A code cache of V8 begins with a magic number and hashes of V8's version, the source, V8's flags and its built-in heap.
	const header = cachedData.subarray(0, 20);
	const caches = (file: string): Buffer[] => {
		const content = readFileSync(file);
		const positions: number[] = [];
		for (let at = content.indexOf(header.subarray(0, 8)); at !== -1; ) {
			positions.push(at);
			at = content.indexOf(header.subarray(0, 8), at + 1);
		}
		return positions.map(at => content.subarray(at, at + header.length));
	};
	const accepted = (cache: Buffer): boolean => cache.subarray(12).equals(header.subarray(12));
	// Node's executable contains code caches of Node's own modules, which are not counted.
	const own = caches(process.execPath).length;
	const all = caches(moved);
	assert.ok(all.length - own > threads.length + 100, 'a cache for each chunk');
	assert.is(all.filter(accepted).length, all.length - (own - caches(process.execPath).filter(accepted).length));
});

function cacheOf(name: string): Buffer {
	return readFileSync(path.join(threadCode, name.replace('.js', '.cache')));
}

binary('the binary reports its release, and ignores NODE_OPTIONS', () => {
	const run = (...args: string[]) =>
		spawnSync(moved, args, { encoding: 'utf8', cwd: '/', env: { NODE_OPTIONS: '--require /nowhere' } });
	assert.is(run('version').stdout, `${release}\n`);
	const buildInfo = run('build-info').stdout;
	assert.is(buildInfo.split('\n', 1)[0], `version: ${release}`);
	assert.match(buildInfo, /\nform: single binary\nio: (direct|node)\ntls: (openssl|node)\n$/);
	assert.match(run('list-modules', '--versions').stdout, `http.handlers.respond ${release}\n`);
});

binary('an invalid release number is refused', () => {
	const build = path.join(ROOT, 'cli/packaging/build.ts');
	const result = spawnSync(process.execPath, [build, '--release', '1.0', '--output', path.join(folder, 'none')], {
		encoding: 'utf8',
	});
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

binary(
	'an upgrade that is not confirmed returns to the program that ran before, although its file was replaced in place',
	async () => {
		const [port] = (await freePorts(1)) as [number];
		const socket = path.join(folder, 'admin.sock');
		const previous = path.join(folder, 'elsewhere', 'replaced');
		const next = path.join(folder, 'elsewhere', 'next');
		copyFileSync(moved, previous);
		copyFileSync(moved, next);
		writeFileSync(
			path.join(folder, 'Configfile'),
			`{\n\tadmin unix/${socket}\n}\nhttp://127.0.0.1:${port} {\n\trespond "${port}"\n}\n`,
		);
		const environment = { XDG_STATE_HOME: folder };
		const run = (...args: string[]) => spawnSync(next, args, { encoding: 'utf8', cwd: folder, env: environment });
		const server = spawn(previous, ['run'], {
			cwd: folder,
			env: environment,
			stdio: ['ignore', 'ignore', 'pipe'],
		});
		let output = '';
		server.stderr.setEncoding('utf8').on('data', text => {
			output += text;
		});
		const whenEnded = once(server, 'exit');
		const isServing = async () => (await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined))?.status === 200;
		try {
			await until('the server', isServing);
			// Replaces the file as package managers do. The running program keeps the old one.
			renameSync(next, `${next}.moved`);
			copyFileSync(`${next}.moved`, next);
			renameSync(`${next}.moved`, previous);
			const upgraded = run('upgrade', '--confirm', '1s', '--address', `unix/${socket}`);
			assert.is(upgraded.status, 0, upgraded.stderr);
			const tentative = Number(/^Process (\d+) has taken over/.exec(upgraded.stdout)![1]);
			assert.equal(processesRunning(previous), [tentative]);
			await until('the rollback', () => output.includes('configuration rolled back'));
			await until('the end of the new process', () => !processesRunning(previous).includes(tentative));
			await until('the server', isServing);
			assert.equal(processesRunning(previous), [], 'the unconfirmed program');
			assert.ok(processesRunning(`${previous} (deleted)`).some(pid => pid !== server.pid));
		} finally {
			server.kill('SIGTERM');
			await whenEnded;
		}
	},
);

/** Returns the processes that run an executable file. The system adds ` (deleted)` to the path of a file that was replaced. */
function processesRunning(file: string): number[] {
	const pids = readdirSync('/proc').filter(name => /^\d+$/.test(name));
	return pids.map(Number).filter(pid => {
		try {
			return readlinkSync(`/proc/${pid}/exe`) === file;
		} catch {
			return false;
		}
	});
}

binary.run();
