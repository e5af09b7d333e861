/** Recognizes credentials by the names of header fields, variables, parameters and placeholders. */

const SECRET_HEADERS: ReadonlySet<string> = new Set(['authorization', 'proxy-authorization', 'cookie', 'set-cookie']);
const SECRET_HEADER_PARTS = ['api-key', 'token', 'secret', 'password'];

/** Reports whether the name of a header field indicates that it contains a credential. Ignores case, and treats `_` like `-`. */
export function isSecretHeader(name: string): boolean {
	const lower = name.toLowerCase().replaceAll('_', '-');
	return SECRET_HEADERS.has(lower) || SECRET_HEADER_PARTS.some(part => lower.includes(part));
}

/**
 * Matches words that indicate a credential in the name of a variable, such as `DB_PASS`, `APP_KEY` or `AWS_ACCESS_KEY_ID`. Words
 * that {@link isSecretHeader} finds in any part of a name, such as `token`, are not included.
 */
const SECRET_VARIABLE_WORDS =
	/(?:^|[^a-z0-9])(?:pass|passwd|passphrase|pwd|pw|key|apikey|auth|authorization|credentials?|creds|cookie|jwt|dsn)(?:$|[^a-z0-9])/;

/** Reports whether the name of a variable or parameter indicates that it contains a credential. */
export function isSecretVariable(name: string): boolean {
	return isSecretHeader(name) || SECRET_VARIABLE_WORDS.test(name.toLowerCase());
}

/** Matches placeholders with a parameter, in short and full form, such as `header.X` and `http.request.uri.query.X`. */
const PARAMETER_PLACEHOLDER = /(?:^|\.)(header|cookie|query|vars|env)\.(.+)$/;

/**
 * Reports whether the value of a placeholder is a credential. `name` is the placeholder's name without braces. Every cookie counts
 * as a credential.
 */
export function isSecretPlaceholder(name: string): boolean {
	const [, family, parameter] = PARAMETER_PLACEHOLDER.exec(name) ?? [];
	if (family === undefined) return !name.includes('.') && isSecretVariable(name);
	if (family === 'cookie') return true;
	return family === 'header' ? isSecretHeader(parameter!) : isSecretVariable(parameter!);
}

/** Reports whether a text contains a placeholder whose value is a credential. */
export function refersToSecret(text: string): boolean {
	for (const [, name] of text.matchAll(/\{([^\s{}]+)\}/g)) if (isSecretPlaceholder(name!)) return true;
	return false;
}
