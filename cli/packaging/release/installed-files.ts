/** The files that a package of a distribution installs: those of install.sh, at the places of a distribution. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import type { PackedFile } from './tar-file.ts';

/** Where install.sh puts files below its root, and where a package has them. */
const PLACES: readonly (readonly [RegExp, string])[] = [
	[/^etc\/systemd\/system\//, 'usr/lib/systemd/system/'],
	[/^usr\/share\/zsh\/site-functions\//, 'usr/share/zsh/vendor-completions/'],
];

/**
 * Returns the files of an installation.
 * @param built The folder that `npm run build` filled, with a binary that runs here.
 * @param binary The binary to install, which may be for another platform.
 */
export function installedFiles(built: string, binary: string): PackedFile[] {
	const root = mkdtempSync(path.join(tmpdir(), 'svc-package-'));
	try {
		const made = spawnSync(path.join(built, 'install.sh'), {
			env: { PATH: process.env.PATH, DESTDIR: root, PREFIX: '/usr' },
			encoding: 'utf8',
		});
		if (made.status !== 0) throw new Error(`install.sh failed:\n${made.stdout}${made.stderr}`);
		const entries = readdirSync(root, { recursive: true, withFileTypes: true });
		return entries
			.filter(entry => !entry.isDirectory())
			.map(entry => {
				const file = path.join(entry.parentPath, entry.name);
				const place = PLACES.reduce((result, [from, to]) => result.replace(from, to), path.relative(root, file));
				if (entry.isSymbolicLink()) return { path: place, link: 'svc' };
				if (place === 'usr/bin/svc') return { path: place, mode: 0o755, content: readFileSync(binary) };
				const content = readFileSync(file);
				return place.startsWith('usr/share/man/')
					? { path: `${place}.gz`, content: gzipSync(content, { level: 9 }) }
					: { path: place, content };
			});
	} finally {
		rmSync(root, { recursive: true, force: true });
	}
}
