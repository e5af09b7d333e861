/** Initialization that must precede everything else on the main thread. main.ts imports it first, for its side effects. */

// Without a listener, SIGUSR1 would open Node's debugger. `run` adds its own listener to this one.
process.on('SIGUSR1', () => {});

// The variables for the launcher's code cache are not part of the environment that the user set.
if (process.env.SVC_LAUNCHER_CACHE !== undefined) {
	delete process.env.SVC_LAUNCHER_CACHE;
	delete process.env.NODE_COMPILE_CACHE;
}
