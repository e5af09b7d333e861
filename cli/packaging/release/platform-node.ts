/** Gets the pinned Node of another platform, which npm does not install on this machine. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { extract } from 'tar';
import { verifyNode } from '../pinned-node.js';

const CACHE_FOLDER = path.resolve(import.meta.dirname, '../../../node_modules/.cache/node');

/** The paths of the files that are used from Node's npm package for a platform. */
export interface PlatformNode {
	readonly executable: string;
	/** The licenses of Node and of the software it includes. */
	readonly licenseFile: string;
}

/** Returns the verified Node of a platform. If it is neither installed nor in the cache, downloads it from npm. */
export async function platformNode(platform: string, version: string): Promise<PlatformNode> {
	const packageName = `node-${platform}`;
	const installedFolder = path.resolve(CACHE_FOLDER, '../..', packageName);
	const folder = existsSync(installedFolder) ? installedFolder : path.join(CACHE_FOLDER, `${packageName}-${version}`);
	const executable = path.join(folder, 'bin/node');
	if (!existsSync(executable)) await downloadNode(`${packageName}@${version}`, folder);
	await verifyNode(executable, platform);
	return { executable, licenseFile: path.join(folder, 'LICENSE') };
}

async function downloadNode(specifier: string, folder: string): Promise<void> {
	rmSync(folder, { recursive: true, force: true });
	mkdirSync(folder, { recursive: true });
	const result = spawnSync('npm', ['pack', specifier, '--loglevel=error', '--pack-destination', folder], {
		encoding: 'utf8',
	});
	const archive = readdirSync(folder).find(file => file.endsWith('.tgz'));
	if (result.status !== 0 || archive === undefined) {
		throw new Error(`npm cannot get ${specifier}: ${result.error?.message ?? result.stderr}`);
	}
	const archiveFile = path.join(folder, archive);
	const neededFilesPattern = /^[^/]+\/(?:bin\/node|LICENSE)$/;
	await extract({ file: archiveFile, cwd: folder, strip: 1, filter: name => neededFilesPattern.test(name) });
	rmSync(archiveFile);
}
