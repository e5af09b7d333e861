/**
 * Lets a test start something and await it later, even if it fails in between. Node ends a process when a promise is rejected that
 * nothing awaits yet, and then shows neither the test's name nor the assertion that failed first. With this module, the rejection
 * counts as a failure only if nothing has awaited the promise by the end of the process or within a minute.
 */
import { isMainThread } from 'node:worker_threads';

/** Milliseconds after which an unawaited rejection ends the process. The test might wait forever for what has failed. */
const AWAITED_WITHIN_MS = 60_000;

/** The reasons of rejected promises that nothing has awaited. */
const reasons = new Map<Promise<unknown>, unknown>();

/** Prints the rejections that nothing has awaited, and forgets them. Returns true if there were any. */
export function reportUnawaitedRejections(): boolean {
	const hasRejections = reasons.size > 0;
	for (const reason of reasons.values()) console.error('A rejected promise was never awaited:', reason);
	reasons.clear();
	return hasRejections;
}

// Threads that a test starts are part of what it tests, and keep Node's own behavior.
if (isMainThread) {
	process.on('unhandledRejection', (reason, promise) => {
		reasons.set(promise, reason);
		setTimeout(() => {
			if (reasons.has(promise)) throw reason;
		}, AWAITED_WITHIN_MS).unref();
	});
	process.on('rejectionHandled', promise => {
		reasons.delete(promise);
	});
	process.on('exit', () => {
		if (reportUnawaitedRejections()) process.exitCode = 1;
	});
}
