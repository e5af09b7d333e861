/** Waits for promises with a time limit. */

/** Maximum delay of a timer in milliseconds. In Node, a timer with a longer delay fires at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/** Waits for a promise, for at most `limitMs` milliseconds if given. */
export async function withTimeLimit(promise: Promise<void>, limitMs: number | undefined): Promise<void> {
	if (limitMs === undefined) return promise;
	let timer: NodeJS.Timeout | undefined;
	await Promise.race([
		promise,
		new Promise<void>(resolve => {
			timer = setTimeout(resolve, Math.min(limitMs, MAX_TIMER_MS));
		}),
	]);
	clearTimeout(timer);
}
