/** Waits for promises with a time limit. */

/** Maximum delay of a timer in milliseconds. In Node, a timer with a longer delay fires at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/** Waits for a promise, for at most `limitMs` milliseconds if given. Resolves to false if it has not settled by then. */
export async function withTimeLimit(promise: Promise<void>, limitMs: number | undefined): Promise<boolean> {
	const inTime = promise.then(() => true);
	if (limitMs === undefined) return inTime;
	let timer: NodeJS.Timeout | undefined;
	const hasSettled = await Promise.race([
		inTime,
		new Promise<false>(resolve => {
			timer = setTimeout(() => resolve(false), Math.min(limitMs, MAX_TIMER_MS));
		}),
	]);
	clearTimeout(timer);
	return hasSettled;
}
