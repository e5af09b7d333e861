/**
 * The npm package, for `npm install --global`. It contains the sources without types, because Node does not run TypeScript in
 * installed packages. It depends on the pinned Node of each platform, so that it does not matter with which Node npm itself runs.
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { transform } from 'esbuild';
import type { PackedFile } from './tar-file.ts';

const REPOSITORY_FOLDER = path.resolve(import.meta.dirname, '../../..');

/** The folders that contain the program's sources. */
const SOURCE_FOLDERS = ['admin', 'cli', 'compiler', 'runtime'] as const;
/** Matches the files in {@link SOURCE_FOLDERS} that are not part of the running program. */
const EXCLUDED_FILES_PATTERN = /^cli\/(?:packaging|svc$)/;

/** An entry of package-lock.json. */
interface LockedPackage {
	readonly dev?: boolean;
}

export async function npmPackage(release: string, licenses: string): Promise<PackedFile[]> {
	const version = release.replace(/^v/, '');
	const sourceFiles = SOURCE_FOLDERS.flatMap(folder =>
		readdirSync(path.join(REPOSITORY_FOLDER, folder), { recursive: true, withFileTypes: true })
			.filter(entry => entry.isFile())
			.map(entry => path.relative(REPOSITORY_FOLDER, path.join(entry.parentPath, entry.name))),
	).filter(file => !EXCLUDED_FILES_PATTERN.test(file));
	const files = await Promise.all(
		sourceFiles.map(async (file): Promise<PackedFile> => {
			const content = readFileSync(path.join(REPOSITORY_FOLDER, file));
			if (!file.endsWith('.ts')) return { path: file, content };
			return { path: javaScriptName(file), content: await toJavaScript(String(content), release) };
		}),
	);
	const manifest = readJson('package.json');
	const { name, description, license, type, dependencies, optionalDependencies } = manifest;
	const lockFile = readJson('package-lock.json');
	const usedPackages = Object.entries(lockFile.packages as { [path: string]: LockedPackage }).filter(
		([, { dev }]) => !dev,
	);
	const publishedManifest = {
		...{ name, version, description, license, type },
		bin: { svc: 'bin/svc' },
		engines: { node: '>=20' },
		os: ['linux', 'darwin'],
		...{ dependencies, optionalDependencies },
	};
	const packages = { ...Object.fromEntries(usedPackages), '': publishedManifest };
	const toJson = (value: object): string => `${JSON.stringify(value, null, '\t')}\n`;
	return [
		...files,
		{ path: 'package.json', content: toJson(publishedManifest) },
		// npm installs exactly the packages in this file, and verifies them.
		{ path: 'npm-shrinkwrap.json', content: toJson({ ...lockFile, version, packages }) },
		{ path: 'bin/svc', mode: 0o755, content: readFileSync(path.join(import.meta.dirname, 'npm-launcher')) },
		{ path: 'README.md', content: readFileSync(path.join(REPOSITORY_FOLDER, 'README.md')) },
		{ path: 'LICENSE', content: readFileSync(path.join(REPOSITORY_FOLDER, 'LICENSE')) },
		{ path: 'LICENSES', content: licenses },
	].map(file => ({ ...file, path: `package/${file.path}` }));
}

function readJson(file: string): Record<string, unknown> {
	return JSON.parse(readFileSync(path.join(REPOSITORY_FOLDER, file), 'utf8')) as Record<string, unknown>;
}

function javaScriptName(file: string): string {
	return file.replace(/\.ts$/, '.js');
}

/** Removes the types from a module, and changes the file names that it imports from `.ts` to `.js`. */
async function toJavaScript(source: string, release: string): Promise<string> {
	const { code } = await transform(source, {
		loader: 'ts',
		format: 'esm',
		target: `node${process.versions.node}`,
		define: { SVC_BUILD_VERSION: JSON.stringify(release) },
		// Only `import type` imports types. An import without names has side effects, and is kept.
		tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
	});
	return code.replace(/(['"])((?:\.{1,2}\/|[\w-]+\/)[\w./-]+)\.ts\1/g, '$1$2.js$1');
}
