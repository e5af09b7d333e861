/** The interface through which lowering queries placeholders and regular expressions. Code generation implements it. */
import type { Dialect } from '../dialects/dialect.ts';

/** An unknown placeholder with the most similar known one, if any. */
export interface UnknownPlaceholder {
	readonly name: string;
	readonly nearest: string | undefined;
}

/** The reason why a text is not accepted as a regular expression. */
export interface RegexpMistake {
	readonly code: string;
	readonly message: string;
	readonly hint?: string;
}

/** Answers questions about the known placeholders, and about regular expressions. */
export interface Placeholders {
	/**
	 * Replaces the short names of placeholders in a text by full names. A short name that has a meaning of its own in the dialect is
	 * replaced by the name that has this meaning in all dialects.
	 */
	expandNames(text: string, dialect: Dialect): string;
	findUnknown(text: string): readonly UnknownPlaceholder[];
	/** Returns why a text is not accepted as a regular expression; undefined if it is accepted. */
	regexpMistake(source: string): RegexpMistake | undefined;
}
