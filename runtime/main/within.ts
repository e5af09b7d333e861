/** Waiting with a time limit. */

/** Milliseconds of the longest possible timer; a longer one fires at once. */
export const LONGEST_TIMER = 2 ** 31 - 1;

/** Waits for a promise, but at most `limit` milliseconds; without limit if undefined. */
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
