/** The functions of sprig, the library that templates of the compatible server are written with. */
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
 * All of them but `env`, `expandenv` and those that take a while (`bcrypt`, `genPrivateKey`), which belong to the dependencies,
 * and those of REFUSED_SPRIG.
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

const KEYS = 'is not available: keys and certificates are not made while a page is rendered';

/** Functions of sprig that cannot be used in a server's templates, and why. */
export const REFUSED_SPRIG: ReadonlyMap<string, string> = new Map([
	...[
		...['buildCustomCert', 'genCA', 'genCAWithKey', 'genSelfSignedCert', 'genSelfSignedCertWithKey'],
		...['genSignedCert', 'genSignedCertWithKey'],
	].map(name => [name, KEYS] as const),
]);
