/** The interface through which lowering queries placeholders and regular expressions. Code generation implements it. */
import type { Dialect } from '../dialects/dialect.ts';

/** An unknown placeholder, and the most similar known one. */
export interface UnknownPlaceholder {
	readonly name: string;
	readonly nearest: string | undefined;
}

/** Why a string is rejected as a regular expression. */
export interface RegexpMistake {
	readonly code: string;
	readonly message: string;
	readonly hint?: string;
}

/** The known placeholders. */
export interface Placeholders {
	/**
	 * Replaces short names by full ones. If a name has a different meaning in the dialect, replaces it by the name that has that
	 * meaning everywhere.
	 */
	expand(text: string, dialect: Dialect): string;
	/** Returns the unknown placeholders in a string. */
	unknown(text: string): readonly UnknownPlaceholder[];
	/** Returns why a string is not a valid regular expression; undefined if it is one. */
	regexpMistake(source: string): RegexpMistake | undefined;
}
