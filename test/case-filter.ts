/**
 * Runs only the cases whose names contain all words of SVC_TEST_WORDS (a JSON array), in any order and letter case. test/run.ts
 * loads this file before a test file, and replaces the `suite` of `uvu` with the one below.
 */
import { registerHooks } from 'node:module';
import * as uvu from 'uvu';

const words: readonly string[] = JSON.parse(process.env.SVC_TEST_WORDS ?? '[]');

/** Reports whether a case of a suite matches all words. */
export function matchesWords(suite: string, name: string, requiredWords: readonly string[] = words): boolean {
	const text = `${suite} ${name}`.toLowerCase();
	return requiredWords.every(word => text.includes(word.toLowerCase()));
}

/** Works like uvu's `suite`, but ignores cases that do not match, and runs no hooks if no case matches. */
export function suite(name = '', state: object = {}): uvu.Test<object> {
	const all = uvu.suite(name, state);
	let count = 0;
	const filtered = (title: string, handler: uvu.Callback<object>): void => {
		if (!matchesWords(name, title)) return;
		count++;
		all(title, handler);
	};
	return Object.assign(filtered, all, {
		run: () => {
			if (count > 0) all.run();
		},
	}) as unknown as uvu.Test<object>;
}

if (words.length > 0) {
	registerHooks({
		resolve: (specifier, context, next) =>
			specifier === 'uvu' && context.parentURL !== import.meta.url
				? { url: import.meta.url, shortCircuit: true }
				: next(specifier, context),
	});
}
