/** Recognizes credentials by the names of header fields, variables, parameters and placeholders. */

const SECRET_HEADERS: ReadonlySet<string> = new Set(['authorization', 'proxy-authorization', 'cookie', 'set-cookie']);
const SECRET_PARTS = ['api-key', 'token', 'secret', 'password'];

/** Reports whether a header field contains a credential, judging by its name. Ignores case, and treats `_` like `-`. */
export function isSecretHeader(name: string): boolean {
	const lower = name.toLowerCase().replaceAll('_', '-');
	return SECRET_HEADERS.has(lower) || SECRET_PARTS.some(part => lower.includes(part));
}

/**
 * Words in the name of a variable that indicate a credential, in addition to the words in names of headers: `DB_PASS`, `APP_KEY`,
 * `AWS_ACCESS_KEY_ID`.
 */
const SECRET_WORDS =
	/(?:^|[^a-z0-9])(?:pass|passwd|passphrase|pwd|pw|key|apikey|auth|authorization|credentials?|creds|cookie|jwt|dsn)(?:$|[^a-z0-9])/;

/** Reports whether a variable or parameter contains a credential, judging by its name. */
export function isSecretVariable(name: string): boolean {
	return isSecretHeader(name) || SECRET_WORDS.test(name.toLowerCase());
}

/** Matches placeholders with a parameter, in their short and their full forms: `header.X`, `http.request.uri.query.X`. */
const FAMILY = /(?:^|\.)(header|cookie|query|vars|env)\.(.+)$/;

/** Reports whether a placeholder, given without its braces, is a credential. Every cookie counts as one. */
export function isSecretPlaceholder(name: string): boolean {
	const [, family, parameter] = FAMILY.exec(name) ?? [];
	if (family === undefined) return !name.includes('.') && isSecretVariable(name);
	if (family === 'cookie') return true;
	return family === 'header' ? isSecretHeader(parameter!) : isSecretVariable(parameter!);
}

/** Reports whether a string contains a placeholder whose value is a credential. */
export function refersToSecret(text: string): boolean {
	for (const [, name] of text.matchAll(/\{([^\s{}]+)\}/g)) if (isSecretPlaceholder(name!)) return true;
	return false;
}
