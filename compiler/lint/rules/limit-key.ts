/**
 * The lint rule `rate-limit/key-of-client`, which reports a rate limit if every key contains values that the client chooses. A
 * client evades the limit by changing these values.
 */
import { traitsOf } from '../inspection/answering.ts';
import { isClientChosen, placeholdersOf } from '../inspection/client-chosen.ts';
import { fieldEditsOf } from '../inspection/header-fields.ts';
import type { LintContext } from '../inspection/lint-context.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

/** Matches request fields in which proxies state the client's address. */
const ADDRESS_FIELD =
	/^http\.request\.header\.(?:x-forwarded-for|x-real-ip|forwarded|cf-connecting-ip|true-client-ip)$/i;

/**
 * Matches placeholders with values that only label the client, such as a header field. The path and the method are not matched:
 * changing them changes what is requested, so a limit for each client and path protects each path.
 */
const LABEL = /^http\.request\.(?:header\.|cookie\.|body|(?:orig_)?uri(?!\.path))/;

export const limitKeyOfClient: LintRule = {
	name: 'rate-limit/key-of-client',
	severity: 'warning',
	summary: 'A client can escape a limit by sending another key.',
	documentation: [
		'A client that sends another header, cookie or path gets a new count with each of them, even if the key also contains',
		'`{client_ip}`. Add a zone by `{client_ip}` to the same directive. Addresses in fields such as `X-Forwarded-For` can be forged',
		'as well: `{client_ip}` together with `trusted_proxies` accepts them from proxies only.',
	].join('\n'),
	dependsOn: 'site',
	check: cx => {
		const setFields = requestFieldsSetIn(cx);
		for (const { step, pointer } of cx.walkedDocument.steps) {
			const keys = traitsOf(step).limitKeysOf?.(step) ?? [];
			const clientKeys = keys.filter(({ text }) => isEvadableKey(text, setFields));
			if (clientKeys.length < keys.length) continue;
			for (const key of clientKeys) {
				const usesAddressField = placeholdersOf(key.text).some(name => ADDRESS_FIELD.test(name));
				cx.reportAt(pointer + key.pointer, 'A client can escape this limit by sending another key.', {
					hint: usesAddressField
						? 'Write `{client_ip}`, and list the proxies in `trusted_proxies`.'
						: 'Add a zone with the key `{client_ip}`.',
				});
			}
		}
	},
};

/** Returns the placeholders of the request fields to which the site itself gives a value, for example from `forward_auth`. */
function requestFieldsSetIn(cx: LintContext): ReadonlySet<string> {
	const names = new Set<string>();
	for (const { name, place, editedMessage } of fieldEditsOf(cx.walkedDocument))
		if (editedMessage === 'request' && place.list === 'set') names.add(`http.request.header.${name.toLowerCase()}`);
	return names;
}

/** Reports whether a client gets another key by sending another value. Without placeholders, all clients have the same key. */
function isEvadableKey(key: string, setFields: ReadonlySet<string>): boolean {
	const names = placeholdersOf(key).filter(name => name.startsWith('http.') && !setFields.has(name.toLowerCase()));
	return names.some(name => LABEL.test(name)) || (names.length > 0 && names.every(isClientChosen));
}
