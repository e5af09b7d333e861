/** What lowering needs to know about placeholders and regular expressions; code generation implements it. */
import type { Dialect } from '../dialects/dialect.ts';

/** An unknown placeholder, and the known one it resembles. */
export interface UnknownPlaceholder {
	readonly name: string;
	readonly nearest: string | undefined;
}

/** The reason a text is rejected as a regular expression. */
export interface RegexpMistake {
	readonly code: string;
	readonly message: string;
	readonly hint?: string;
}

/** The placeholder table as lowering sees it. */
export interface Placeholders {
	/** Replaces shorthands by full names, and names that have another meaning in the dialect by those that express it. */
	expand(text: string, dialect: Dialect): string;
	/** Returns the unknown names in a text. */
	unknown(text: string): readonly UnknownPlaceholder[];
	/** Returns why a text is not a regular expression, or undefined if it is one. */
	regexpMistake(source: string): RegexpMistake | undefined;
}
