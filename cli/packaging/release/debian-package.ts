/** Debian packages, written without Debian's tools: an `ar` archive of two tar archives. See deb(5). */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { type CompressionLevel, compressXz, type PackedFile, tarFile } from './tar-file.ts';

const MAINTAINER_SCRIPTS = ['postinst', 'prerm', 'postrm'] as const;
const MAINTAINER = 'svc maintainers <maintainers@users.noreply.svc.example>';

/** The contents and properties of a Debian package. */
export interface DebianPackageOptions {
	readonly release: string;
	readonly platform: 'linux-x64' | 'linux-arm64';
	readonly files: readonly PackedFile[];
	/** The texts of all licenses. */
	readonly licenses: string;
	/** The time of all files in the package, in seconds since 1970. */
	readonly timeSeconds: number;
	readonly compressionLevel: CompressionLevel;
}

/** Returns Debian's name for the processor of a platform. */
export function debianArchitecture(platform: DebianPackageOptions['platform']): 'amd64' | 'arm64' {
	return platform === 'linux-x64' ? 'amd64' : 'arm64';
}

/**
 * Converts a release to a Debian version. The hyphen becomes `~`, which sorts before everything in Debian's versions, so that
 * `v1.0.0-rc.1` comes before `v1.0.0`.
 */
export function debianVersion(release: string): string {
	return release.replace(/^v/, '').replace('-', '~');
}

/** Returns the contents of a package file. */
export async function debianPackage(options: DebianPackageOptions): Promise<Buffer> {
	const { release, platform, files, licenses, timeSeconds, compressionLevel } = options;
	const version = debianVersion(release);
	const documentationFolder = 'usr/share/doc/svc';
	const dataFiles: PackedFile[] = [
		...files,
		{ path: `${documentationFolder}/copyright`, content: COPYRIGHT },
		{ path: `${documentationFolder}/LICENSES.gz`, content: gzipSync(licenses, { level: 9 }) },
		{ path: 'usr/share/lintian/overrides/svc', content: LINTIAN_OVERRIDES },
		{ path: 'usr/share/man/man1/vc.1.gz', link: 'svc.1.gz' },
		{ path: `${documentationFolder}/changelog.gz`, content: gzipSync(changelog(version, timeSeconds), { level: 9 }) },
	];
	const configurationFiles = dataFiles.filter(file => file.path.startsWith('etc/'));
	const sizeKib = dataFiles.reduce((sum, { content }) => sum + Math.ceil(Buffer.byteLength(content ?? '') / 1024), 0);
	const controlFiles: PackedFile[] = [
		{ path: 'control', content: controlFile(version, debianArchitecture(platform), sizeKib) },
		{ path: 'conffiles', content: configurationFiles.map(file => `/${file.path}\n`).join('') },
		{ path: 'md5sums', content: md5Sums(dataFiles.filter(file => !configurationFiles.includes(file))) },
		...MAINTAINER_SCRIPTS.map(name => ({
			path: name,
			mode: 0o755,
			content: readFileSync(path.join(import.meta.dirname, 'debian', name)),
		})),
	];
	return arArchive(
		[
			['debian-binary', Buffer.from('2.0\n')],
			[
				'control.tar.xz',
				await compressXz(tarFile([{ path: '' }, ...controlFiles], timeSeconds, './'), compressionLevel),
			],
			['data.tar.xz', await compressXz(tarFile([{ path: '' }, ...dataFiles], timeSeconds, './'), compressionLevel)],
		],
		timeSeconds,
	);
}

/**
 * Returns the control file of the package. Node needs glibc 2.28 and the C++ library of GCC 7; the programs that create the user
 * are in `passwd`.
 */
function controlFile(version: string, architecture: string, sizeKib: number): string {
	return `Package: svc
Version: ${version}
Architecture: ${architecture}
Maintainer: ${MAINTAINER}
Installed-Size: ${sizeKib}
Depends: libc6 (>= 2.28), libgcc-s1 (>= 3.4), libstdc++6 (>= 7), passwd
Recommends: ca-certificates
Section: httpd
Priority: optional
Description: web server and reverse proxy whose configuration is code
 Sites are described in a language that is checked, tested and changed on a
 running server. It also reads Caddyfiles, gets certificates by itself, and
 serves HTTP/1.1, HTTP/2 and HTTP/3.
 .
 The systemd unit is installed but not enabled: systemctl enable --now svc
`;
}

function md5Sums(files: readonly PackedFile[]): string {
	return files
		.filter(file => file.content !== undefined)
		.map(({ path, content }) => `${createHash('md5').update(content!).digest('hex')}  ${path}\n`)
		.join('');
}

function changelog(version: string, timeSeconds: number): string {
	const date = new Date(timeSeconds * 1000).toUTCString().replace('GMT', '+0000');
	return `svc (${version}) stable; urgency=medium\n\n  * Release ${version}.\n\n -- ${MAINTAINER}  ${date}\n`;
}

const COPYRIGHT = `svc is licensed under the Apache License, Version 2.0, which is in
/usr/share/common-licenses/Apache-2.0 on Debian systems.

Copyright: the svc authors.

The program contains Node and npm packages. Their copyright notices and licenses
are in /usr/share/doc/svc/LICENSES.gz.
`;

/**
 * Findings of lintian, Debian's checker, that are accepted, because the program contains Node's executable with its libraries and
 * addresses.
 */
const LINTIAN_OVERRIDES = `svc: embedded-library *
svc: hardening-no-pie *
# Upgrades hand over between processes, for which there is no helper.
svc: maintainer-script-calls-systemctl *
`;

/** Returns an `ar` archive. See ar(5). */
function arArchive(members: readonly (readonly [name: string, content: Buffer])[], timeSeconds: number): Buffer {
	const parts = members.flatMap(([name, content]) => [
		Buffer.from(
			`${name.padEnd(16)}${String(timeSeconds).padEnd(12)}${'0'.padEnd(6)}${'0'.padEnd(6)}${'100644'.padEnd(8)}` +
				`${String(content.length).padEnd(10)}\`\n`,
		),
		content,
		Buffer.from(content.length % 2 === 1 ? '\n' : ''),
	]);
	return Buffer.concat([Buffer.from('!<arch>\n'), ...parts]);
}
