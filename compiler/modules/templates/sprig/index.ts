/** The functions of sprig, the library used by templates of Caddy. */
import type { FunctionList } from '../function.ts';
import { ADDRESS_FUNCTIONS } from './addresses.ts';
import { DEFAULT_FUNCTIONS } from './defaults.ts';
import { DICTIONARY_FUNCTIONS } from './dictionaries.ts';
import { ENCODING_FUNCTIONS } from './encoding.ts';
import { CASE_FUNCTIONS } from './letter-cases.ts';
import { LIST_FUNCTIONS } from './lists.ts';
import { NUMBER_FUNCTIONS } from './numbers.ts';
import { PATTERN_FUNCTIONS } from './patterns.ts';
import { STRING_FUNCTIONS } from './strings.ts';
import { TIME_FUNCTIONS } from './times.ts';
import { VERSION_FUNCTIONS } from './versions.ts';

/**
 * The functions of sprig, except the functions in {@link REFUSED_SPRIG}, and except `env`, `expandenv` and slow functions such as
 * `bcrypt`, which the embedding program provides.
 */
export const SPRIG_FUNCTIONS: FunctionList = {
	...STRING_FUNCTIONS,
	...CASE_FUNCTIONS,
	...NUMBER_FUNCTIONS,
	...LIST_FUNCTIONS,
	...DICTIONARY_FUNCTIONS,
	...DEFAULT_FUNCTIONS,
	...TIME_FUNCTIONS,
	...ENCODING_FUNCTIONS,
	...PATTERN_FUNCTIONS,
	...ADDRESS_FUNCTIONS,
	...VERSION_FUNCTIONS,
};

const KEY_GENERATION_REASON = 'is not available: keys and certificates cannot be generated while a page is rendered';

/** Functions of sprig that are unavailable in a server's templates, with the reason. */
export const REFUSED_SPRIG: ReadonlyMap<string, string> = new Map([
	...[
		...['buildCustomCert', 'genCA', 'genCAWithKey', 'genSelfSignedCert', 'genSelfSignedCertWithKey'],
		...['genSignedCert', 'genSignedCertWithKey'],
	].map(name => [name, KEY_GENERATION_REASON] as const),
]);
