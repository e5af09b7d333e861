/** Cases of a suite that run at the same time, because they mostly wait for timers. */
import type { Test } from 'uvu';

/**
 * Returns a function that adds a case to a suite. When the suite comes to the first of these cases, all of them start, so they
 * must not share anything that they change. The result of each case is reported separately.
 */
export function concurrentCases(cases: Test<object>): (name: string, run: () => Promise<void>) => void {
	const runs: (() => Promise<void>)[] = [];
	let outcomes: readonly Promise<void>[] | undefined;
	const start = (run: () => Promise<void>): Promise<void> => {
		const outcome = run();
		// A case may fail before the suite waits for it. The rejection must not be reported as unhandled.
		outcome.catch(() => {});
		return outcome;
	};
	return (name, run) => {
		const index = runs.push(run) - 1;
		cases(name, () => {
			outcomes ??= runs.map(start);
			return outcomes[index]!;
		});
	};
}
