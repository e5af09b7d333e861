/** The lint rule `rate-limit/key-of-client`. */
import { traitsOf } from '../inspection/answering.ts';
import { isClientChosen, placeholdersOf } from '../inspection/client-chosen.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

/** Matches request fields in which proxies state the client's address. */
const ADDRESS_FIELD =
	/^http\.request\.header\.(?:x-forwarded-for|x-real-ip|forwarded|cf-connecting-ip|true-client-ip)$/i;

/**
 * Reports a rate limit whose keys consist only of values that the client chooses. A client evades the limit by changing these
 * values.
 */
export const limitKeyOfClient: LintRule = {
	name: 'rate-limit/key-of-client',
	severity: 'warning',
	summary: 'A client can escape a limit by sending another key.',
	documentation: [
		'A client that sends another header, cookie or path gets a new count with each of them. Add something to the key that the',
		'client cannot choose, such as `{client_ip}`, or add a zone by `{client_ip}` to the same directive. Addresses in fields such',
		'as `X-Forwarded-For` can be forged as well: `{client_ip}` together with `trusted_proxies` accepts them from proxies only.',
	].join('\n'),
	dependsOn: 'site',
	check: cx => {
		for (const { step, pointer } of cx.walkedDocument.steps) {
			const keys = traitsOf(step).limitKeysOf?.(step) ?? [];
			const clientKeys = keys.filter(({ text }) => isClientChosenKey(text));
			if (clientKeys.length < keys.length) continue;
			for (const key of clientKeys) {
				const usesAddressField = placeholdersOf(key.text).some(name => ADDRESS_FIELD.test(name));
				cx.reportAt(pointer + key.pointer, 'A client can escape this limit by sending another key.', {
					hint: usesAddressField
						? 'Write `{client_ip}`, and list the proxies in `trusted_proxies`.'
						: 'Add `{client_ip}` to the key, or add a zone with that key.',
				});
			}
		}
	},
};

/** Reports whether a key depends on the request, but only on values that the client chooses. */
function isClientChosenKey(key: string): boolean {
	const names = placeholdersOf(key).filter(name => name.startsWith('http.'));
	return names.length > 0 && names.every(isClientChosen);
}
