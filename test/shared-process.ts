/**
 * Runs several test files one after the other in one process, so that the modules that they share are loaded once. test/run.ts
 * starts it for files of pure code (see `sharesProcess`), and sends the path of one file at a time as a message.
 *
 * After each file, prints {@link FILE_END_MARKER}, the exit status that the file would have had as a process of its own, and a
 * line end. As in a process of its own, a file ends when nothing keeps the process alive any more: if it leaves a timer or a
 * server open, the marker does not follow.
 */

/** Printed after each file, followed by its exit status. */
export const FILE_END_MARKER = '\u0001end of file ';

interface UvuGlobals {
	/** If true, uvu runs suites only when `exec` is called. */
	UVU_DEFER: boolean;
	/** The suites that `exec` runs, in groups. The first element of a group is its name, or null. */
	UVU_QUEUE: unknown[][];
}

if (import.meta.main) {
	const { reportUnawaitedRejections } = await import('./unawaited-rejections.ts');
	const globals = globalThis as unknown as UvuGlobals;
	globals.UVU_DEFER = true;
	globals.UVU_QUEUE = [];
	const { exec } = await import('uvu');
	// Writes errors to standard output, too, so that they cannot arrive after the marker.
	process.stderr.write = process.stdout.write.bind(process.stdout);
	let hasFile = false;
	let isFinished = false;

	const runFile = async (file: string): Promise<void> => {
		globals.UVU_QUEUE.splice(0, Number.POSITIVE_INFINITY, [null]);
		process.exitCode = 0;
		try {
			await import(file);
			await exec();
		} catch (error) {
			console.error(error);
			process.exitCode = 1;
		}
		isFinished = true;
	};

	process.on('message', (file: string) => {
		hasFile = true;
		isFinished = false;
		// From here on, only the file's own timers, servers and processes keep this process alive.
		process.channel!.unref();
		void runFile(file);
	});
	process.on('beforeExit', () => {
		if (!hasFile) return;
		if (!isFinished) {
			console.error('The event loop is empty, but the tests of the file are not finished.');
			process.exit(1);
		}
		if (reportUnawaitedRejections()) process.exitCode = 1;
		hasFile = false;
		process.channel!.ref();
		process.stdout.write(`${FILE_END_MARKER}${process.exitCode}\n`);
	});
}
