/** The files that a package of a distribution installs: the same as install.sh, under the paths that a distribution uses. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import type { PackedFile } from './tar-file.ts';

/** Pairs of a path under which install.sh installs files and the path that a package uses instead. */
const PACKAGE_PATHS: readonly (readonly [RegExp, string])[] = [
	[/^etc\/systemd\/system\//, 'usr/lib/systemd/system/'],
	[/^usr\/share\/zsh\/site-functions\//, 'usr/share/zsh/vendor-completions/'],
];

/**
 * Returns the files of an installation.
 * @param buildFolder The folder that `npm run build` filled, with a binary that runs here.
 * @param binary The binary to install, which may be for another platform.
 */
export function installedFiles(buildFolder: string, binary: string): PackedFile[] {
	const installRoot = mkdtempSync(path.join(tmpdir(), 'svc-package-'));
	try {
		const installation = spawnSync(path.join(buildFolder, 'install.sh'), {
			env: { PATH: process.env.PATH, DESTDIR: installRoot, PREFIX: '/usr' },
			encoding: 'utf8',
		});
		if (installation.status !== 0) throw new Error(`install.sh failed:\n${installation.stdout}${installation.stderr}`);
		const entries = readdirSync(installRoot, { recursive: true, withFileTypes: true });
		return entries
			.filter(entry => !entry.isDirectory())
			.map(entry => {
				const file = path.join(entry.parentPath, entry.name);
				const packagePath = PACKAGE_PATHS.reduce(
					(result, [from, to]) => result.replace(from, to),
					path.relative(installRoot, file),
				);
				if (entry.isSymbolicLink()) return { path: packagePath, link: 'svc' };
				if (packagePath === 'usr/bin/svc') return { path: packagePath, mode: 0o755, content: readFileSync(binary) };
				const content = readFileSync(file);
				return packagePath.startsWith('usr/share/man/')
					? { path: `${packagePath}.gz`, content: gzipSync(content, { level: 9 }) }
					: { path: packagePath, content };
			});
	} finally {
		rmSync(installRoot, { recursive: true, force: true });
	}
}
