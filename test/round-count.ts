/** The number of rounds that a test with random input runs. */

/** The environment variable with which test/long/more-rounds.test.ts makes tests run their large number of rounds. */
export const MORE_ROUNDS_VARIABLE = 'SVC_TEST_MORE_ROUNDS';

/**
 * Returns the number of rounds of a test with random input: `few` in `npm test`, which must be fast, and `many` in the long suite.
 * test/long/more-rounds.test.ts runs every test file that calls this function.
 */
export function roundCount({ few, many }: { readonly few: number; readonly many: number }): number {
	return process.env[MORE_ROUNDS_VARIABLE] === '1' ? many : few;
}
