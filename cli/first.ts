/** What must happen on the main thread before anything else. Imported first by main.ts, for its effects. */

// Without a listener, SIGUSR1 would open Node's debugger. `run` adds its own listener to this one.
process.on('SIGUSR1', () => {});

// The launcher's code cache is not part of the environment that the user gave us.
if (process.env.SVC_LAUNCHER_CACHE !== undefined) {
	delete process.env.SVC_LAUNCHER_CACHE;
	delete process.env.NODE_COMPILE_CACHE;
}
