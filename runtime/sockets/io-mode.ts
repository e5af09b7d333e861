/** Which of the two implementations of sockets and files this process uses. */

/**
 * `direct` calls the operating system past Node where that is faster: epoll, read, write, sendfile, splice, and the handles
 * of Node's own sockets. `node` uses nothing but Node's public modules, and
 * of `node:ffi` only `dup`. Both serve the same configurations.
 */
export type IoMode = 'direct' | 'node';

/** The modes, as `SVC_IO` and the global option `io` spell them. */
export const IO_MODES: readonly IoMode[] = ['direct', 'node'];

/**
 * The releases of Node on which the whole test suite passes with `direct`. It depends on parts of Node that may change in
 * any release, so every other release uses `node`.
 */
const DIRECT_RELEASES: readonly string[] = ['26.10.0'];

/** What the environment variable asks for; undefined if it is unset, empty or not a mode. */
export function environmentIoMode(environment: NodeJS.ProcessEnv = process.env): IoMode | undefined {
	return IO_MODES.find(mode => mode === environment.SVC_IO);
}

/** Returns the mode for a process: the environment decides, then the configuration, then the release of Node. */
export function chooseIoMode(
	configured?: IoMode,
	environment: NodeJS.ProcessEnv = process.env,
	release: string = process.versions.node,
): IoMode {
	return environmentIoMode(environment) ?? configured ?? (isKnownRelease(release) ? 'direct' : 'node');
}

/** Reports whether the whole test suite passes with `direct` on this release of Node. */
export function isKnownRelease(release: string = process.versions.node): boolean {
	return DIRECT_RELEASES.includes(release);
}

let current: IoMode = chooseIoMode();

/** The mode of this thread. */
export function ioMode(): IoMode {
	return current;
}

/** Reports whether this thread may go past Node's public modules. */
export function isDirectIo(): boolean {
	return current === 'direct';
}

/** Sets the mode of this thread; sockets and files that are already open keep theirs. */
export function useIoMode(mode: IoMode): void {
	current = mode;
}
