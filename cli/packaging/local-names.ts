/**
 * Shortens the names of parameters, of variables inside functions and of private fields. A stack trace shows none of these names.
 * The names that it shows stay as they are: those of functions and classes at the top level of a bundle, and of methods.
 */
import { transform } from 'esbuild';

/** The name of a private method, or of a private field that is called, and the bracket after it. */
const CALLED_PRIVATE_NAME = /#(\w+)(?=\()/g;

/**
 * Take the place of `#` in names that are kept: the second one after a word such as `async`, of which the name must not become a
 * part. esbuild does not shorten the names of public members.
 */
const KEPT_PREFIX = '_private_';
const SPACED_PREFIX = ' _privateAfterWord_';

/**
 * Returns a bundle with shorter names.
 *
 * @param code A script. Its top level is the body of a function.
 */
export async function shortenLocalNames(code: string): Promise<string> {
	for (const prefix of [KEPT_PREFIX, SPACED_PREFIX]) {
		if (code.includes(prefix)) throw new Error(`The bundle contains \`${prefix}\`.`);
	}
	const keptNames = new Set(code.matchAll(CALLED_PRIVATE_NAME).map(([, name]) => name!));
	const publicCode = code.replaceAll(/(?<=(\w?))#(\w+)/g, (privateName, before: string, name: string) => {
		if (!keptNames.has(name)) return privateName;
		return `${before === '' ? KEPT_PREFIX : SPACED_PREFIX}${name}`;
	});
	// Without a format, esbuild takes the code for a script, whose variables other scripts might use.
	const shortened = await transform(publicCode, { minifyIdentifiers: true, minifyWhitespace: true });
	return shortened.code.replaceAll(SPACED_PREFIX, '#').replaceAll(KEPT_PREFIX, '#');
}
