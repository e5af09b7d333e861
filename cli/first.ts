/** Initialization that must precede everything else on the main thread. main.ts imports it first, for its side effects. */

// Without a listener, SIGUSR1 would open Node's debugger. `run` later adds a listener of its own.
process.on('SIGUSR1', () => {});

// The launcher sets these variables for its code cache. They are deleted, because the user did not set them.
if (process.env.SVC_LAUNCHER_CACHE !== undefined) {
	delete process.env.SVC_LAUNCHER_CACHE;
	delete process.env.NODE_COMPILE_CACHE;
}
