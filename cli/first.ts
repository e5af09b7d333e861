/**
 * What must happen before anything else on the main thread. Imported first by main.ts for its effects.
 */

// Without a listener SIGUSR1 opens Node's debugger. `run` puts its own listener beside this one.
process.on('SIGUSR1', () => {});

// The launcher's cache of compiled code is no part of the environment that the user gave us.
if (process.env.SVC_LAUNCHER_CACHE !== undefined) {
	delete process.env.SVC_LAUNCHER_CACHE;
	delete process.env.NODE_COMPILE_CACHE;
}
