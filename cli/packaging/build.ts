/**
 * `npm run build`: makes dist/svc, one executable that contains Node, the program and its thread code, and copies the
 * installation files next to it.
 *
 * Usage: node cli/packaging/build.ts [--release v0.2.2] [--output dist/svc] [--thread-code FOLDER] [--platform linux-arm64 --node NODE]
 * NODE is the Node executable of another platform. The tests of a checkout start their threads from FOLDER (see THREAD_CODE_VARIABLE).
 */
import { spawnSync } from 'node:child_process';
import {
	chmodSync,
	copyFileSync,
	mkdirSync,
	mkdtempSync,
	readFileSync,
	renameSync,
	rmSync,
	statSync,
	writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { cacheAsset, THREAD_ENTRIES, type ThreadKind, threadAsset } from '../../runtime/threads/thread-source.ts';
import { version } from '../command/version.ts';
import { writeBundles } from './bundles.ts';
import { linuxExecutable } from './node-executable/linux-executable.ts';
import { verifyNode } from './pinned-node.js';
import { acceptRepeatableCaches, REPEATABLE_FLAGS } from './repeatable-caches.ts';

const root = path.resolve(import.meta.dirname, '../..');
const THIS_PLATFORM = `${process.platform}-${process.arch}`;

/** The script that the binary runs first. */
const LOADER = 'program-loader.js';

/** Files copied next to the binary. */
const INSTALLATION_FILES: readonly string[] = [
	...['install.sh', 'svc.service', 'svc.socket'],
	...['monitoring/grafana-dashboard.json', 'monitoring/prometheus-rules.yml'],
	...['container/docker-compose.yml', 'container/kubernetes.yaml'],
];

/** Runs this Node in a folder. Throws an error with its output if the run fails. */
function runNode(args: readonly string[], folder: string): void {
	const result = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' });
	if (result.status !== 0) throw new Error(`node ${args[0]} failed:\n${result.stdout}${result.stderr}`);
}

function editFile(file: string, edit: (content: Buffer) => void): void {
	const content = readFileSync(file);
	edit(content);
	writeFileSync(file, content);
}

/** Options for building a binary. */
interface BinaryOptions {
	readonly release: string;
	readonly output: string;
	/** The platform on which the binary runs, named as in node-checksums.json. */
	readonly platform: string;
	/** The Node executable of that platform. */
	readonly node: string;
	/** A folder to which the threads' code is copied; undefined for none. */
	readonly threadCode: string | undefined;
}

/** Builds the binary and returns its size in bytes. */
async function buildBinary({ release, output, platform, node, threadCode }: BinaryOptions): Promise<number> {
	mkdirSync(path.dirname(output), { recursive: true });
	// The temporary folder is next to the output, so that the finished file can be renamed over the old one.
	const folder = mkdtempSync(path.join(path.dirname(output), '.build-'));
	try {
		const pathOf = (name: string): string => path.join(folder, name);
		const bundles = await writeBundles(release, folder);
		const caches = bundles.map(cacheAsset);
		// V8's code caches are valid only for the kind of processor on which they were made. For another platform they are left
		// empty, and V8 ignores an empty cache.
		const isOtherPlatform = platform !== THIS_PLATFORM;
		if (isOtherPlatform) for (const cache of caches) writeFileSync(pathOf(cache), '');
		else {
			for (const script of ['code-cache.ts', 'program-cache.ts']) {
				runNode([...REPEATABLE_FLAGS, path.join(import.meta.dirname, script)], folder);
			}
			for (const cache of caches) editFile(pathOf(cache), acceptRepeatableCaches);
		}
		const assets = [...bundles, ...caches].sort();
		copyFileSync(path.join(import.meta.dirname, LOADER), pathOf(LOADER));
		const isLinux = platform.startsWith('linux-');
		const config = {
			...(isLinux ? { output: 'program' } : { executable: node, output: 'svc' }),
			main: LOADER,
			disableExperimentalSEAWarning: true,
			useCodeCache: !isOtherPlatform,
			// NODE_OPTIONS must not affect the server.
			execArgvExtension: 'none',
			// No warnings about experimental parts of Node: users can do nothing about them.
			execArgv: ['--disable-warning=ExperimentalWarning'],
			assets: Object.fromEntries(assets.map(name => [name, name])),
		};
		writeFileSync(pathOf('sea.json'), JSON.stringify(config));
		// Paths become part of the program, so they must be the same wherever it is built.
		if (isLinux) runNode([...REPEATABLE_FLAGS, '--experimental-sea-config', 'sea.json'], folder);
		else runNode(['--build-sea', 'sea.json'], folder);
		if (isLinux) {
			if (!isOtherPlatform) editFile(pathOf('program'), acceptRepeatableCaches);
			writeFileSync(pathOf('svc'), linuxExecutable(readFileSync(node), readFileSync(pathOf('program'))));
		}
		if (threadCode !== undefined) {
			mkdirSync(threadCode, { recursive: true });
			for (const kind of Object.keys(THREAD_ENTRIES) as ThreadKind[]) {
				const asset = threadAsset(kind);
				for (const name of [asset, cacheAsset(asset)]) copyFileSync(pathOf(name), path.join(threadCode, name));
			}
		}
		chmodSync(pathOf('svc'), 0o755);
		renameSync(pathOf('svc'), output);
		for (const name of INSTALLATION_FILES) {
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
		release: { type: 'string', default: version() },
		output: { type: 'string', default: path.join(root, 'dist/svc') },
		'thread-code': { type: 'string' },
		platform: { type: 'string', default: THIS_PLATFORM },
		node: { type: 'string', default: process.execPath },
	},
});
const { release, platform, node } = values;
if (!/^v\d+\.\d+\.\d+[-+.0-9A-Za-z]*$/.test(release)) {
	console.error(`error: \`${release}\` is not a release; write it as v0.2.2.`);
	process.exitCode = 1;
} else {
	try {
		await verifyNode(node, platform);
		const output = path.resolve(values.output);
		const size = await buildBinary({ release, output, platform, node, threadCode: values['thread-code'] });
		console.log(`${path.relative(process.cwd(), output)}  ${release}  ${(size / 1e6).toFixed(1)} MB`);
	} catch (error) {
		console.error(`error: ${error instanceof Error ? error.message : String(error)}`);
		process.exitCode = 1;
	}
}
