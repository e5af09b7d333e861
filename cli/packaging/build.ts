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
import { cacheAsset, NODE_MODULES_ASSET } from '../../runtime/threads/thread-source.ts';
import { version } from '../command/version.ts';
import { BUNDLES_FILE, PACKAGE_BUNDLES, writeBundles } from './bundles.ts';
import { linuxExecutable } from './node-executable/linux-executable.ts';
import { verifyNode } from './pinned-node.js';
import { acceptRepeatableCaches, REPEATABLE_FLAGS, readCacheHeaders } from './repeatable-caches.ts';

const repositoryFolder = path.resolve(import.meta.dirname, '../..');
const THIS_PLATFORM = `${process.platform}-${process.arch}`;

/** The script that the binary runs first. */
const LOADER_SCRIPT = 'program-loader.js';

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

interface BinaryOptions {
	readonly release: string;
	readonly outputPath: string;
	/** The platform on which the binary runs, named as in node-checksums.json. */
	readonly platform: string;
	/** The Node executable of that platform. */
	readonly nodeExecutable: string;
	/** A folder to which the threads' code is copied; undefined for none. */
	readonly threadCodeFolder: string | undefined;
}

/** Builds the binary and returns its size in bytes. */
async function buildBinary({
	release,
	outputPath,
	platform,
	nodeExecutable,
	threadCodeFolder,
}: BinaryOptions): Promise<number> {
	mkdirSync(path.dirname(outputPath), { recursive: true });
	// The temporary folder is next to the output, so that the finished file can be renamed over the old one.
	const temporaryFolder = mkdtempSync(path.join(path.dirname(outputPath), '.build-'));
	try {
		const pathOf = (name: string): string => path.join(temporaryFolder, name);
		const bundles = await writeBundles(release, temporaryFolder);
		writeFileSync(pathOf(BUNDLES_FILE), JSON.stringify(bundles));
		const cacheNames = bundles.names.map(cacheAsset);
		// V8's code caches are valid only for the kind of processor on which they were made. For another platform they are left
		// empty, and V8 ignores an empty cache.
		const isOtherPlatform = platform !== THIS_PLATFORM;
		const cacheHeaders = isOtherPlatform ? undefined : readCacheHeaders();
		if (cacheHeaders === undefined) for (const cache of cacheNames) writeFileSync(pathOf(cache), '');
		else {
			for (const script of ['code-cache.ts', 'program-cache.ts']) {
				runNode([...REPEATABLE_FLAGS, path.join(import.meta.dirname, script)], temporaryFolder);
			}
			for (const cache of cacheNames) editFile(pathOf(cache), file => acceptRepeatableCaches(file, cacheHeaders));
		}
		const assets = [...bundles.names, ...cacheNames].sort();
		copyFileSync(path.join(import.meta.dirname, LOADER_SCRIPT), pathOf(LOADER_SCRIPT));
		const isLinux = platform.startsWith('linux-');
		const seaConfig = {
			...(isLinux ? { output: 'program' } : { executable: nodeExecutable, output: 'svc' }),
			main: LOADER_SCRIPT,
			disableExperimentalSEAWarning: true,
			useCodeCache: !isOtherPlatform,
			// NODE_OPTIONS must not affect the server.
			execArgvExtension: 'none',
			// No warnings about experimental parts of Node: users can do nothing about them.
			execArgv: ['--disable-warning=ExperimentalWarning'],
			assets: Object.fromEntries(assets.map(name => [name, name])),
		};
		writeFileSync(pathOf('sea.json'), JSON.stringify(seaConfig));
		// Paths in `sea.json` become part of the program. They are relative, so that the program is the same wherever it is built.
		if (isLinux) runNode([...REPEATABLE_FLAGS, '--experimental-sea-config', 'sea.json'], temporaryFolder);
		else runNode(['--build-sea', 'sea.json'], temporaryFolder);
		if (isLinux) {
			if (cacheHeaders !== undefined) editFile(pathOf('program'), file => acceptRepeatableCaches(file, cacheHeaders));
			writeFileSync(pathOf('svc'), linuxExecutable(readFileSync(nodeExecutable), readFileSync(pathOf('program'))));
		}
		if (threadCodeFolder !== undefined) {
			mkdirSync(threadCodeFolder, { recursive: true });
			for (const asset of [NODE_MODULES_ASSET, ...bundles.threadBundles, ...PACKAGE_BUNDLES]) {
				for (const name of [asset, cacheAsset(asset)]) copyFileSync(pathOf(name), path.join(threadCodeFolder, name));
			}
		}
		chmodSync(pathOf('svc'), 0o755);
		renameSync(pathOf('svc'), outputPath);
		for (const name of INSTALLATION_FILES) {
			const target = path.join(path.dirname(outputPath), name);
			mkdirSync(path.dirname(target), { recursive: true });
			copyFileSync(path.join(import.meta.dirname, name), target);
		}
		return statSync(outputPath).size;
	} finally {
		rmSync(temporaryFolder, { recursive: true, force: true });
	}
}

const { values } = parseArgs({
	options: {
		release: { type: 'string', default: version() },
		output: { type: 'string', default: path.join(repositoryFolder, 'dist/svc') },
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
		const outputPath = path.resolve(values.output);
		const size = await buildBinary({
			release,
			outputPath,
			platform,
			nodeExecutable: node,
			threadCodeFolder: values['thread-code'],
		});
		console.log(`${path.relative(process.cwd(), outputPath)}  ${release}  ${(size / 1e6).toFixed(1)} MB`);
	} catch (error) {
		console.error(`error: ${error instanceof Error ? error.message : String(error)}`);
		process.exitCode = 1;
	}
}
