/** Gives lowering access to the placeholders that code generation knows. */
import { isKnownPlaceholder, placeholderNames } from '../codegen/placeholders/index.ts';
import { expandShorthands, fullPlaceholderName, shorthandNames } from '../codegen/placeholders/shorthands.ts';
import { compileRegexp } from '../codegen/regexp/regexp.ts';
import { RegexpError, RegexpTooLarge } from '../codegen/regexp/regexp-error.ts';
import { nearestName } from '../diagnostics/suggest.ts';
import type { Placeholders, UnknownPlaceholder } from './placeholders.ts';

/** Matches a text in braces that looks like the name of a placeholder rather than like JSON, CSS or code. */
const PLACEHOLDER_NAME = /^[A-Za-z_%?][A-Za-z0-9_%?-]*(\.[A-Za-z0-9_*?/-]+)*$/;

/** Implements {@link Placeholders} with the placeholders that code generation knows. */
export const knownPlaceholders: Placeholders = {
	expandNames: expandShorthands,
	findUnknown: text => {
		const unknownPlaceholders: UnknownPlaceholder[] = [];
		for (const [, name] of text.matchAll(/(?<!\\)\{([^{}]+)\}/g)) {
			if (!PLACEHOLDER_NAME.test(name!) || isKnownPlaceholder(fullPlaceholderName(name!))) continue;
			unknownPlaceholders.push({ name: name!, nearest: nearestPlaceholder(name!) });
		}
		return unknownPlaceholders;
	},
	regexpMistake: source => {
		try {
			compileRegexp(source);
			return undefined;
		} catch (error) {
			if (error instanceof RegexpTooLarge)
				return { code: 'regexp/too-large', message: error.message, hint: error.hint };
			if (error instanceof RegexpError) return { code: 'value/not-a-regular-expression', message: error.message };
			throw error;
		}
	},
};

function nearestPlaceholder(name: string): string | undefined {
	const names = [...shorthandNames(), ...placeholderNames()];
	const nearestPlainName = nearestName(
		name,
		names.filter(known => !known.endsWith('*')),
	);
	if (nearestPlainName !== undefined) return nearestPlainName;
	const dot = name.indexOf('.');
	if (dot <= 0) return undefined;
	const wildcardPrefixes = names.filter(known => known.endsWith('.*')).map(known => known.slice(0, -2));
	const nearestPrefix = nearestName(name.slice(0, dot), wildcardPrefixes);
	return nearestPrefix === undefined ? undefined : `${nearestPrefix}${name.slice(dot)}`;
}
