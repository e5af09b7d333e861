/**
 * Runs a test file in a network and a process namespace of its own. The file becomes the first process there, so that the kernel
 * ends every process in it together with the file, however the file ends, and then removes the networks. Its temporary files are in
 * a folder that is removed afterwards. Needs root.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/**
 * Environment variable for a file that runs in its own namespaces: the path to which that file writes the name of its process
 * namespace.
 */
const NAME_FILE_VARIABLE = 'SVC_TEST_NAMESPACE_FILE';
/** A command prefix that creates the namespaces. They end when the process that started the command ends, even if it is killed. */
const NAMESPACE_COMMAND = [
	...['setpriv', '--pdeathsig', 'KILL'],
	...['unshare', '--net', '--pid', '--mount-proc', '--fork', '--kill-child=SIGKILL'],
] as const;
const [COMMAND, ...COMMAND_ARGUMENTS] = NAMESPACE_COMMAND;

const nameFile = process.env[NAME_FILE_VARIABLE];

/** True if this process runs in namespaces created by {@link runInNamespaces}. */
export const isInNamespaces: boolean = nameFile !== undefined;
if (nameFile !== undefined) writeFileSync(nameFile, readlinkSync('/proc/self/ns/pid'));

/** Reports whether the system allows this process to create the namespaces. */
export function canCreateNamespaces(): boolean {
	return spawnSync(COMMAND, [...COMMAND_ARGUMENTS, 'true']).status === 0;
}

export interface NamespacedRunResult {
	readonly status: number | null;
	/** Standard output and standard error; empty if they were shown. */
	readonly output: string;
	/** Processes that were still in the process namespace after the file had ended. */
	readonly remainingProcesses: readonly string[];
	/** The folder of the temporary files, which has been removed. */
	readonly folder: string;
}

/**
 * Runs a file in namespaces of its own and waits for its end. The file must import this module.
 * @param env Additional environment variables.
 * @param isShown True to show the output instead of returning it.
 */
export function runInNamespaces(
	file: string,
	env: { readonly [name: string]: string },
	isShown: boolean,
): NamespacedRunResult {
	const folder = mkdtempSync(path.join(tmpdir(), 'svc-test-inside-'));
	const ownNameFile = path.join(folder, 'namespace');
	try {
		const args = [...COMMAND_ARGUMENTS, process.execPath, ...process.execArgv, file];
		const { status, stdout, stderr } = spawnSync(COMMAND, args, {
			stdio: ['ignore', isShown ? 'inherit' : 'pipe', isShown ? 'inherit' : 'pipe'],
			encoding: 'utf8',
			env: { ...process.env, ...env, TMPDIR: folder, [NAME_FILE_VARIABLE]: ownNameFile },
		});
		const remainingProcesses = processesIn(readFileSync(ownNameFile, 'utf8'));
		return { status, output: isShown ? '' : stdout + stderr, remainingProcesses, folder };
	} finally {
		rmSync(folder, { recursive: true, force: true });
	}
}

/** Returns the IDs of the processes in a process namespace. */
function processesIn(namespace: string): string[] {
	return readdirSync('/proc').filter(pid => {
		try {
			return /^\d+$/.test(pid) && readlinkSync(`/proc/${pid}/ns/pid`) === namespace;
		} catch {
			// The process ended after its entry in /proc was listed.
			return false;
		}
	});
}
