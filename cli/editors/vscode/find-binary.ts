/** Finds the svc binary that the extension starts. */
import { execFile } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import path from 'node:path';

/** Where to search for the program `svc`. */
export interface BinarySearch {
	/** The setting `svc.path`; empty if it is not set. */
	readonly pathSetting: string;
	readonly home: string;
	/** Folders, in the order in which they are searched. */
	readonly folders: readonly string[];
}

/** Returns the folders of `PATH`, followed by the usual folders of programs, because desktops start editors with a short `PATH`. */
export function programFolders(searchPath: string, home: string): string[] {
	const usualFolders = [
		'/usr/local/bin',
		'/usr/bin',
		'/opt/homebrew/bin',
		path.join(home, '.local/bin'),
		path.join(home, 'bin'),
	];
	return [...new Set([...searchPath.split(path.delimiter).filter(folder => path.isAbsolute(folder)), ...usualFolders])];
}

export type BinarySearchResult = { readonly path: string } | { readonly problem: string };

/** Milliseconds within which a program must show that it is svc. */
const PROBE_TIMEOUT_MS = 20_000;

/** Returns the first program named `svc` that proves to be this server. Other programs may have the same name. */
export async function findBinary({ pathSetting, home, folders }: BinarySearch): Promise<BinarySearchResult> {
	if (pathSetting !== '') {
		const configuredPath = path.resolve(home, pathSetting.replace(/^~(?=\/|$)/, home));
		if (!isProgram(configuredPath))
			return { problem: `The setting svc.path is "${pathSetting}", which is not a program.` };
		if (await isSvc(configuredPath)) return { path: configuredPath };
		return {
			problem: `The setting svc.path is "${pathSetting}", which is not svc, or a version without a language server.`,
		};
	}
	for (const folder of folders) {
		const candidate = path.join(folder, 'svc');
		if (isProgram(candidate) && (await isSvc(candidate))) return { path: candidate };
	}
	return { problem: 'svc is not in PATH. Install it, or write its path into the setting svc.path.' };
}

function isProgram(file: string): boolean {
	try {
		accessSync(file, constants.X_OK);
		return statSync(file).isFile();
	} catch {
		return false;
	}
}

function isSvc(file: string): Promise<boolean> {
	return new Promise(resolve => {
		const limits = { timeout: PROBE_TIMEOUT_MS, maxBuffer: 1 << 20 };
		const child = execFile(file, ['language-server', '--help'], limits, (error, output) =>
			resolve(!error && output.includes('svc language-server')),
		);
		child.stdin?.end();
	});
}
