/**
 * `npm run build`: makes dist/svc, one executable that contains Node, the program and its thread code, and copies the
 * installation files next to it.
 *
 * Usage: node cli/packaging/build.ts [--release v0.2.2] [--output dist/svc] [--thread-code FOLDER]
 * The tests of a checkout start their threads from FOLDER (see THREAD_CODE_VARIABLE).
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { type BuildOptions, build } from 'esbuild';
import { THREAD_ASSET, THREAD_CACHE_ASSET } from '../../runtime/threads/thread-source.ts';
import { version } from '../command/version.ts';
import { verifyNode } from './pinned-node.js';

const root = path.resolve(import.meta.dirname, '../..');

/** Files copied next to the binary. */
const BESIDE: readonly string[] = [
	...['install.sh', 'svc.service', 'svc.socket'],
	...['monitoring/grafana-dashboard.json', 'monitoring/prometheus-rules.yml'],
];

/** Returns build options for a bundle inside the binary, which has no module loader: one CommonJS script. */
function bundling(release: string): BuildOptions {
	return {
		absWorkingDir: root,
		bundle: true,
		platform: 'node',
		format: 'cjs',
		target: `node${process.versions.node}`,
		// A bundle without a module loader cannot use `import()`. The modules inside it are still initialized lazily.
		supported: { 'dynamic-import': false },
		define: {
			SVC_BUILD_VERSION: JSON.stringify(release),
			'import.meta.url': '"file:///svc"',
			'import.meta.dirname': '"/"',
		},
		minifySyntax: true,
		minifyWhitespace: true,
		legalComments: 'none',
		logLevel: 'warning',
	};
}

/** Runs this Node. Throws with its output if it fails. */
function run(args: readonly string[]): void {
	const made = spawnSync(process.execPath, args, { encoding: 'utf8' });
	if (made.status !== 0) throw new Error(`node ${args[0]} failed:\n${made.stdout}${made.stderr}`);
}

/** Builds the binary and returns its size in bytes. `threadCode` is a folder that gets a copy of the threads' code. */
async function buildBinary(release: string, output: string, threadCode?: string): Promise<number> {
	mkdirSync(path.dirname(output), { recursive: true });
	// Next to the output, so that the finished file can be renamed over the old one.
	const folder = mkdtempSync(path.join(path.dirname(output), '.build-'));
	try {
		const inFolder = (name: string): string => path.join(folder, name);
		await build({ ...bundling(release), entryPoints: ['cli/main.ts'], outfile: inFolder('main.js') });
		await build({
			...bundling(release),
			entryPoints: ['runtime/thread-entry.ts'],
			outfile: inFolder(THREAD_ASSET),
			// Wraps the bundle in a function, which the thread calls with its `require`.
			banner: { js: '(function(require){' },
			footer: { js: '})' },
		});
		run([path.join(import.meta.dirname, 'code-cache.ts'), inFolder(THREAD_ASSET), inFolder(THREAD_CACHE_ASSET)]);
		const config = {
			main: inFolder('main.js'),
			output: inFolder('svc'),
			disableExperimentalSEAWarning: true,
			useCodeCache: true,
			// NODE_OPTIONS must not affect the server.
			execArgvExtension: 'none',
			// Users can do nothing about `node:ffi` being experimental.
			execArgv: ['--disable-warning=ExperimentalWarning'],
			assets: {
				[THREAD_ASSET]: inFolder(THREAD_ASSET),
				[THREAD_CACHE_ASSET]: inFolder(THREAD_CACHE_ASSET),
			},
		};
		writeFileSync(inFolder('sea.json'), JSON.stringify(config));
		run(['--build-sea', inFolder('sea.json')]);
		if (threadCode !== undefined) {
			mkdirSync(threadCode, { recursive: true });
			for (const asset of [THREAD_ASSET, THREAD_CACHE_ASSET])
				copyFileSync(inFolder(asset), path.join(threadCode, asset));
		}
		chmodSync(inFolder('svc'), 0o755);
		renameSync(inFolder('svc'), output);
		for (const name of BESIDE) {
			const target = path.join(path.dirname(output), name);
			mkdirSync(path.dirname(target), { recursive: true });
			copyFileSync(path.join(import.meta.dirname, name), target);
		}
		return statSync(output).size;
	} finally {
		rmSync(folder, { recursive: true, force: true });
	}
}

const { values } = parseArgs({
	options: {
		release: { type: 'string' },
		output: { type: 'string', default: path.join(root, 'dist/svc') },
		'thread-code': { type: 'string' },
	},
});
const release = values.release ?? version();
if (!/^v\d+\.\d+\.\d+[-+.0-9A-Za-z]*$/.test(release)) {
	console.error(`error: \`${release}\` is not a release; write it as v0.2.2.`);
	process.exitCode = 1;
} else {
	try {
		await verifyNode(process.execPath);
		const output = path.resolve(values.output);
		const size = await buildBinary(release, output, values['thread-code']);
		console.log(`${path.relative(process.cwd(), output)}  ${release}  ${(size / 1e6).toFixed(1)} MB`);
	} catch (error) {
		console.error(`error: ${error instanceof Error ? error.message : String(error)}`);
		process.exitCode = 1;
	}
}
