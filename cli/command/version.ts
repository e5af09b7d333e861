/** Determines the version of this program. */
import { readFileSync } from 'node:fs';
import path from 'node:path';

/** The version, which the build inserts (packaging/build.ts). The variable does not exist in a checkout. */
declare const SVC_BUILD_VERSION: string;

/** Number of hexadecimal digits of a commit in a version. */
const COMMIT_DIGITS = 12;

/** Returns `v0.2.2` for a release, `v0.0.0-dev+<commit>` for a git checkout, and `v0.0.0-dev` without git. */
export function version(): string {
	if (typeof SVC_BUILD_VERSION === 'string') return SVC_BUILD_VERSION;
	return checkoutVersion(path.join(import.meta.dirname, '../..'));
}

/** Returns the version of a checkout. Reads `.git` itself, because starting git would dominate the run time. */
export function checkoutVersion(folder: string): string {
	const commit = headCommit(folder);
	return commit ? `v0.0.0-dev+${commit.slice(0, COMMIT_DIGITS)}` : 'v0.0.0-dev';
}

function headCommit(folder: string): string | undefined {
	let gitFolder = path.join(folder, '.git');
	// In a linked worktree, `.git` is a file that names the folder.
	const link = readFirstLine(gitFolder);
	if (link?.startsWith('gitdir: ')) gitFolder = path.resolve(folder, link.slice('gitdir: '.length));
	const head = readFirstLine(path.join(gitFolder, 'HEAD'));
	if (head === undefined) return undefined;
	if (!head.startsWith('ref: ')) return commitIn(head);
	const ref = head.slice('ref: '.length);
	const commonFolder = path.resolve(gitFolder, readFirstLine(path.join(gitFolder, 'commondir')) ?? '.');
	const looseRef = readFirstLine(path.join(gitFolder, ref)) ?? readFirstLine(path.join(commonFolder, ref));
	if (looseRef !== undefined) return commitIn(looseRef);
	const packedRefs = readIfPresent(path.join(commonFolder, 'packed-refs'));
	const line = packedRefs?.split('\n').find(entry => entry.endsWith(` ${ref}`));
	return line === undefined ? undefined : commitIn(line);
}

function commitIn(text: string): string | undefined {
	return /^[0-9a-f]{40,64}/.exec(text)?.[0];
}

function readFirstLine(file: string): string | undefined {
	return readIfPresent(file)?.split('\n', 1)[0]?.trim();
}

function readIfPresent(file: string): string | undefined {
	try {
		return readFileSync(file, 'utf8');
	} catch {
		return undefined;
	}
}
