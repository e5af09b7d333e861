/**
 * Commands and threads load only the modules that they need. The maximum counts leave some room. If a test fails, it lists the
 * modules that were added; check whether each of them is needed at startup.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { THREAD_CODE_VARIABLE } from '../../runtime/threads/thread-source.ts';
import { freePorts, ROOT, temporaryFolder, waitForPort } from '../harness.ts';

const loading = suite('loaded modules');

/** Records each module that a thread loads. */
const RECORDER = `
import { appendFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { threadName } from 'node:worker_threads';
registerHooks({
	load(url, context, next) {
		if (url.startsWith('file:')) appendFileSync(process.env.LOADED_MODULES, \`\${threadName || 'main'} \${url}\\n\`);
		return next(url, context);
	},
});
`;

/** Modules that only some configurations and commands need. */
const RARE_MODULES = [
	...[
		'@bufbuild',
		'@opentelemetry',
		'@peculiar',
		'@redis',
		'asn1js',
		'aws4fetch',
		'bcryptjs',
		'dns-packet',
		'markdown-it',
		'prom-client',
	],
	...['smol-toml', 'tar', 'undici', 'vscode-jsonrpc', 'vscode-languageserver', 'yaml'],
]
	.map(name => `node_modules/${name}/`)
	.concat('cli/documentation/', 'cli/manual/');
const SERVER = [
	'runtime/main/runtime.ts',
	'runtime/listeners/',
	'runtime/certificates/',
	'admin/server.ts',
	'cli/serving/',
];
const COMPILER = ['node_modules/chevrotain/', 'node_modules/ajv/', 'compiler/syntax/', 'compiler/lower/lower'];

/** Starts a command of the checkout. `ended` resolves to the modules that it loaded, by thread. */
function start(args: readonly string[]) {
	const folder = temporaryFolder();
	const record = path.join(folder, 'record');
	const recorder = path.join(folder, 'recorder.mjs');
	writeFileSync(recorder, RECORDER);
	const child = spawn(
		process.execPath,
		['--disable-warning=ExperimentalWarning', '--import', recorder, path.join(ROOT, 'cli/main.ts'), ...args],
		{
			cwd: folder,
			// Without this variable, worker threads load the sources instead of the build.
			env: { ...process.env, [THREAD_CODE_VARIABLE]: undefined, LOADED_MODULES: record, XDG_STATE_HOME: folder },
			stdio: 'ignore',
		},
	);
	const whenEnded = once(child, 'exit').then(([status]) => {
		assert.is(status, 0);
		const byThread = new Map<string, string[]>();
		for (const line of readFileSync(record, 'utf8').trim().split('\n')) {
			const [, thread, file] = /^(\S+) file:\/\/(.*)$/.exec(line)!;
			if (file!.startsWith(folder)) continue;
			byThread.set(thread!, [...(byThread.get(thread!) ?? []), path.relative(ROOT, file!)]);
		}
		return byThread;
	});
	return { child, ended: whenEnded };
}

/** Checks that at most `count` modules are loaded, and none whose path begins with one of `without`. */
function assertLoadsAtMost(count: number, loaded: readonly string[] | undefined, without: readonly string[]): void {
	assert.ok(loaded && loaded.length > 0);
	assert.equal(
		loaded.filter(file => without.some(prefix => file.startsWith(prefix))),
		[],
	);
	assert.ok(loaded.length <= count, `${loaded.length} modules instead of at most ${count}:\n${loaded.join('\n')}`);
}

/** Writes the configuration of a plain site, with a comment of the given length. */
function siteFile(port: number, commentLength = 10): string {
	const file = path.join(temporaryFolder(), 'Configfile');
	const comment = `# ${'-'.repeat(commentLength)}\n`;
	writeFileSync(file, `${comment}{\n\tadmin off\n\tthreads 1\n}\nhttp://127.0.0.1:${port} {\n\trespond "hello"\n}\n`);
	return file;
}

loading('version', async () => {
	const loaded = await start(['version']).ended;
	assertLoadsAtMost(20, loaded.get('main'), [...RARE_MODULES, ...SERVER, 'compiler/']);
	assert.equal([...loaded.keys()], ['main']);
});

loading('validate of a small file', async () => {
	const loaded = await start(['validate', siteFile(8080)]).ended;
	assertLoadsAtMost(725, loaded.get('main'), [
		...RARE_MODULES,
		'runtime/main/runtime.ts',
		'runtime/certificates/',
		'runtime/protocols/',
		'runtime/upstreams/',
		'runtime/worker/',
		'cli/serving/',
	]);
	assert.equal([...loaded.keys()], ['main']);
});

/** Starts a server with a configuration, and stops it when it serves. Resolves to the modules that each thread loaded. */
async function modulesOfServer(commentLength: number): Promise<ReadonlyMap<string, readonly string[]>> {
	const [port] = (await freePorts(1)) as [number];
	const { child, ended } = start(['run', siteFile(port, commentLength)]);
	await waitForPort(port, 60_000);
	child.kill('SIGTERM');
	return ended;
}

loading('a server of a plain site', async () => {
	const loaded = await modulesOfServer(10);
	assertLoadsAtMost(860, loaded.get('main'), RARE_MODULES);
	assertLoadsAtMost(760, loaded.get('svc-worker'), [
		...RARE_MODULES,
		...COMPILER,
		'runtime/main/',
		'runtime/certificates/',
	]);
	assert.equal([...loaded.keys()].sort(), ['main', 'svc-worker']);
});

loading('a server with a long configuration, which a thread compiles', async () => {
	const loaded = await modulesOfServer(100_000);
	assertLoadsAtMost(370, loaded.get('main'), [...RARE_MODULES, ...COMPILER]);
	assertLoadsAtMost(600, loaded.get('svc-compiler'), [...RARE_MODULES, 'runtime/protocols/', 'runtime/main/']);
	assert.equal([...loaded.keys()].sort(), ['main', 'svc-compiler', 'svc-worker']);
});

loading.run();
