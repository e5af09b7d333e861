/** Selects which of the two implementations of sockets and files this process uses. */

/**
 * `direct` bypasses Node's public modules for speed: epoll, read, write, sendfile, splice, and the handles of Node's own sockets.
 * `node` uses only Node's public modules, except for `dup` through `node:ffi`. Both modes support the same configurations.
 */
export type IoMode = 'direct' | 'node';

/** The I/O modes, spelled as in `SVC_IO` and in the global option `io`. */
export const IO_MODES: readonly IoMode[] = ['direct', 'node'];

/**
 * The Node releases on which the whole test suite passes in `direct` mode. That mode depends on internals of Node, which may
 * change in any release. All other releases use `node` by default.
 */
const DIRECT_IO_RELEASES: readonly string[] = ['26.10.0'];

/** Returns the mode set in the environment, or undefined if it is unset, empty or invalid. */
export function environmentIoMode(environment: NodeJS.ProcessEnv = process.env): IoMode | undefined {
	return IO_MODES.find(mode => mode === environment.SVC_IO);
}

/**
 * Returns the I/O mode of a process: the one set in the environment, or else the configured one, or else the default for this
 * Node release.
 */
export function chooseIoMode(
	configuredMode?: IoMode,
	environment: NodeJS.ProcessEnv = process.env,
	release: string = process.versions.node,
): IoMode {
	return environmentIoMode(environment) ?? configuredMode ?? (isDirectIoRelease(release) ? 'direct' : 'node');
}

/** Reports whether the whole test suite passes in `direct` mode on this Node release. */
export function isDirectIoRelease(release: string = process.versions.node): boolean {
	return DIRECT_IO_RELEASES.includes(release);
}

let currentMode: IoMode = chooseIoMode();

/** Returns the I/O mode of this thread, which applies to the sockets and files that it opens. */
export function ioMode(): IoMode {
	return currentMode;
}

/** Reports whether this thread may bypass Node's public modules. */
export function isDirectIo(): boolean {
	return currentMode === 'direct';
}

/** Sets the mode of this thread. Sockets and files that are already open keep their mode. */
export function setIoMode(mode: IoMode): void {
	currentMode = mode;
}
