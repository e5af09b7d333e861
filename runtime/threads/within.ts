/** Waits for promises with a time limit. */

/** Maximum delay of a timer in milliseconds. Node fires a longer one at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/** Waits for a promise, at most `limit` milliseconds if a limit is given. */
export async function withTimeLimit(promise: Promise<void>, limit: number | undefined): Promise<void> {
	if (limit === undefined) return promise;
	let timer: NodeJS.Timeout | undefined;
	await Promise.race([
		promise,
		new Promise<void>(resolve => {
			timer = setTimeout(resolve, Math.min(limit, MAX_TIMER_MS));
		}),
	]);
	clearTimeout(timer);
}
