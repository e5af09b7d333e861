/** The version of this build, and how it was made. */
import { readFileSync } from 'node:fs';
import path from 'node:path';

/** Defined by the bundler (packaging/build.ts); undefined in a checkout. */
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
	let git = path.join(folder, '.git');
	// In a linked worktree, `.git` is a file that names the folder.
	const link = readLine(git);
	if (link?.startsWith('gitdir: ')) git = path.resolve(folder, link.slice('gitdir: '.length));
	const head = readLine(path.join(git, 'HEAD'));
	if (head === undefined) return undefined;
	if (!head.startsWith('ref: ')) return commitIn(head);
	const ref = head.slice('ref: '.length);
	const shared = path.resolve(git, readLine(path.join(git, 'commondir')) ?? '.');
	const loose = readLine(path.join(git, ref)) ?? readLine(path.join(shared, ref));
	if (loose !== undefined) return commitIn(loose);
	const packed = read(path.join(shared, 'packed-refs'));
	const line = packed?.split('\n').find(entry => entry.endsWith(` ${ref}`));
	return line === undefined ? undefined : commitIn(line);
}

function commitIn(text: string): string | undefined {
	return /^[0-9a-f]{40,64}/.exec(text)?.[0];
}

function readLine(file: string): string | undefined {
	return read(file)?.split('\n', 1)[0]?.trim();
}

function read(file: string): string | undefined {
	try {
		return readFileSync(file, 'utf8');
	} catch {
		return undefined;
	}
}
