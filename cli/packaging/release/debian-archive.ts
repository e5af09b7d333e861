/** Downloads packages of the Debian release that this machine runs, for any processor, verified by APT. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/** The files with Debian's own package sources: in a container image, and on an installed system. */
const PACKAGE_SOURCE_FILES = ['/etc/apt/sources.list.d/debian.sources', '/etc/apt/sources.list'];

export interface DownloadedPackage {
	readonly name: string;
	readonly version: string;
	/** Name of its `.deb` file in the folder of the download. */
	readonly file: string;
}

/** Downloads packages into a folder, without their dependencies. Does not change APT's state on this machine. */
export function downloadPackages(
	folder: string,
	architecture: 'amd64' | 'arm64',
	packageNames: readonly string[],
): DownloadedPackage[] {
	const sourceFile = PACKAGE_SOURCE_FILES.find(existsSync);
	if (sourceFile === undefined)
		throw new Error('The libraries of the image come from Debian; make the release on Debian.');
	const stateFolder = path.join(folder, 'apt');
	for (const part of ['lists/partial', 'cache/archives/partial'])
		mkdirSync(path.join(stateFolder, part), { recursive: true });
	writeFileSync(path.join(stateFolder, 'status'), '');
	const aptOptions = [
		...[`APT::Architecture=${architecture}`, `APT::Architectures=${architecture}`, 'APT::Sandbox::User=root'],
		...[
			`Dir::State=${stateFolder}`,
			`Dir::State::lists=${stateFolder}/lists`,
			`Dir::State::status=${stateFolder}/status`,
		],
		...[`Dir::Cache=${stateFolder}/cache`, `Dir::Etc::sourcelist=${sourceFile}`, 'Dir::Etc::sourceparts=/dev/null'],
		...['Acquire::Languages=none', 'Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false'],
	].flatMap(option => ['-o', option]);
	for (const command of [
		['update', '-qq'],
		['download', '-qq', ...packageNames],
	]) {
		const result = spawnSync('apt-get', [...aptOptions, ...command], { cwd: folder, encoding: 'utf8' });
		if (result.status !== 0) {
			throw new Error(`apt-get ${command.join(' ')} failed:\n${result.error?.message ?? result.stderr}`);
		}
	}
	return readdirSync(folder)
		.filter(file => file.endsWith('.deb'))
		.sort()
		.map(file => {
			// APT writes the colon of an epoch as %3a.
			const [name, version] = decodeURIComponent(file).split('_') as [string, string];
			return { name, version, file: path.join(folder, file) };
		});
}
