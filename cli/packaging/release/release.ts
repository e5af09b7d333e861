/**
 * `npm run release`: makes everything that is published, in dist/release, with its SHA-256 sums: for Linux on x64 and arm64 an
 * archive and a Debian package, and a container image and an npm package for all. The same sources become the same bytes.
 *
 * Usage: node cli/packaging/release/release.ts [--release v0.2.2] [--output dist/release] [--platform linux-x64]… [--kind debian]… [--fast]
 * `--fast` compresses less, for tests.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { version } from '../../command/version.ts';
import { billOfMaterials, type Component, licenses } from './bill-of-materials.ts';
import { debianArchitecture, debianPackage, debianVersion } from './debian-package.ts';
import { installedFiles } from './installed-files.ts';
import { npmPackage } from './npm-package.ts';
import { type ImagePart, imageLibraries, ociImage } from './oci-image.ts';
import { platformNode } from './platform-node.ts';
import { compressGzip, compressXz, type Effort, type PackedFile, tarFile } from './tar-file.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');
const BUILD = path.resolve(import.meta.dirname, '../build.ts');
const PLATFORMS = ['linux-x64', 'linux-arm64'] as const;
type Platform = (typeof PLATFORMS)[number];
const KINDS = ['archive', 'debian', 'image', 'npm'] as const;
type Kind = (typeof KINDS)[number];
const THIS_PLATFORM = `${process.platform}-${process.arch}`;

const BEST_EFFORT: Effort = 6;
const FAST_EFFORT: Effort = 1;

/** The time of all packed files if neither git nor SOURCE_DATE_EPOCH gives one, in seconds since 1970: the beginning of 2026. */
const DEFAULT_TIME = 1_767_225_600;

/** Returns the time of all packed files, in seconds since 1970: SOURCE_DATE_EPOCH, or the time of the commit. */
function packedTime(): number {
	const epochText = process.env.SOURCE_DATE_EPOCH;
	if (epochText !== undefined) return Number(epochText);
	const commit = spawnSync('git', ['log', '-1', '--format=%ct'], { cwd: ROOT, encoding: 'utf8' });
	return commit.status === 0 && commit.stdout !== '' ? Number(commit.stdout) : DEFAULT_TIME;
}

/** Builds the binary of a platform, with its installation files beside it. Returns its folder. */
function build(release: string, folder: string, platform: string, node: string): string {
	const output = path.join(folder, platform, 'svc');
	const args = [BUILD, '--release', release, '--output', output, '--platform', platform, '--node', node];
	const result = spawnSync(process.execPath, args, { encoding: 'utf8' });
	if (result.status !== 0) throw new Error(result.stderr.trim() || `The build for ${platform} failed.`);
	return path.dirname(output);
}

/** Returns the files of a folder, below another name. */
function filesOf(folder: string, name: string): PackedFile[] {
	return readdirSync(folder, { recursive: true, withFileTypes: true })
		.filter(entry => entry.isFile())
		.map(entry => {
			const file = path.join(entry.parentPath, entry.name);
			const isProgram = /^(?:svc|install\.sh)$/.test(entry.name);
			return {
				path: path.join(name, path.relative(folder, file)),
				mode: isProgram ? 0o755 : 0o644,
				content: readFileSync(file),
			};
		});
}

/** Options that determine what a release consists of. */
interface ReleaseOptions {
	readonly release: string;
	readonly output: string;
	readonly platforms: readonly Platform[];
	readonly kinds: readonly Kind[];
	readonly effort: Effort;
}

async function makeRelease({ release, output, platforms, kinds, effort }: ReleaseOptions): Promise<void> {
	const time = packedTime();
	const folder = mkdtempSync(path.join(tmpdir(), 'svc-release-'));
	const write = (name: string, content: Buffer | string): void => {
		writeFileSync(path.join(output, name), content);
		console.log(`${path.join(path.relative(process.cwd(), output), name)}  ${(content.length / 1e6).toFixed(1)} MB`);
	};
	try {
		rmSync(output, { recursive: true, force: true });
		mkdirSync(output, { recursive: true });
		const hashes: { [platform: string]: string } = {};
		const parts: ImagePart[] = [];
		const libraries: Component[] = [];
		// Manual pages and completions are made by a binary that runs on this machine.
		const localBuild = build(release, folder, THIS_PLATFORM, process.execPath);
		const { license } = await platformNode(THIS_PLATFORM, process.versions.node);
		const licenseTexts = licenses(license);
		for (const platform of platforms) {
			const node = await platformNode(platform, process.versions.node);
			hashes[platform] = sha256(readFileSync(node.executable));
			const buildFolder = platform === THIS_PLATFORM ? localBuild : build(release, folder, platform, node.executable);
			const architecture = debianArchitecture(platform);
			if (kinds.includes('archive')) {
				const name = `svc-${release}-${platform}`;
				const files: PackedFile[] = [
					...filesOf(buildFolder, name),
					{ path: `${name}/README.md`, content: readFileSync(path.join(ROOT, 'README.md')) },
					{ path: `${name}/LICENSES`, content: licenseTexts },
				];
				write(`${name}.tar.xz`, await compressXz(tarFile(files, time), effort));
			}
			if (kinds.includes('debian')) {
				const files = installedFiles(localBuild, path.join(buildFolder, 'svc'));
				const name = `svc_${debianVersion(release)}_${architecture}.deb`;
				write(name, await debianPackage({ release, platform, files, licenses: licenseTexts, time, effort }));
			}
			if (kinds.includes('image')) {
				const { files, packages } = await imageLibraries(path.join(folder, `packages-${platform}`), architecture);
				parts.push({ architecture, program: readFileSync(path.join(buildFolder, 'svc')), libraries: files });
				for (const { name, version } of packages) {
					const id = `${encodeURIComponent(name)}@${encodeURIComponent(version)}`;
					const purl = `pkg:deb/debian/${id}?arch=${architecture}`;
					libraries.push({ type: 'library', name, version, purl, description: 'Part of the container image' });
				}
			}
		}
		if (kinds.includes('image')) {
			write(`svc-${release}.oci.tar`, await ociImage({ release, parts, licenses: licenseTexts, time, effort }));
		}
		if (kinds.includes('npm')) {
			const files = await npmPackage(release, licenseTexts);
			write(`svc-${release.replace(/^v/, '')}.tgz`, await compressGzip(tarFile(files, time), BEST_EFFORT));
		}
		write(`svc-${release}.cdx.json`, billOfMaterials(release, hashes, libraries));
		const sums = readdirSync(output)
			.sort()
			.map(name => `${sha256(readFileSync(path.join(output, name)))}  ${name}\n`);
		write('SHA256SUMS', sums.join(''));
	} finally {
		rmSync(folder, { recursive: true, force: true });
	}
}

function sha256(content: Buffer): string {
	return createHash('sha256').update(content).digest('hex');
}

/** Returns the member of a list with a name from the command line. Throws if there is none. */
function memberOf<T extends string>(list: readonly T[], name: string): T {
	const member = list.find(candidate => candidate === name);
	if (member === undefined) throw new Error(`There is no release for ${name}, only for ${list.join(', ')}.`);
	return member;
}

const { values } = parseArgs({
	options: {
		release: { type: 'string', default: version() },
		output: { type: 'string', default: path.join(ROOT, 'dist/release') },
		kind: { type: 'string', multiple: true, default: [...KINDS] },
		fast: { type: 'boolean', default: false },
		platform: { type: 'string', multiple: true, default: [...PLATFORMS] },
	},
});
try {
	if (process.platform !== 'linux') throw new Error('A release is made on Linux.');
	await makeRelease({
		release: values.release,
		output: path.resolve(values.output),
		platforms: values.platform.map(name => memberOf(PLATFORMS, name)),
		kinds: values.kind.map(name => memberOf(KINDS, name)),
		effort: values.fast ? FAST_EFFORT : BEST_EFFORT,
	});
} catch (error) {
	console.error(`error: ${error instanceof Error ? error.message : String(error)}`);
	process.exitCode = 1;
}
