/** Waiting that has an end. */

/** Milliseconds of the longest timer; one that is longer ends at once. */
export const LONGEST_TIMER = 2 ** 31 - 1;

/** Waits for a promise, `limit` milliseconds at most; without bound if undefined. */
export async function within(promise: Promise<void>, limit: number | undefined): Promise<void> {
	if (limit === undefined) return promise;
	let timer: NodeJS.Timeout | undefined;
	await Promise.race([
		promise,
		new Promise<void>(resolve => {
			timer = setTimeout(resolve, Math.min(limit, LONGEST_TIMER));
		}),
	]);
	clearTimeout(timer);
}
