/** What lowering asks of placeholders and regular expressions; code generation knows the answers. */
import type { Dialect } from '../dialects/dialect.ts';

/** A placeholder that no phase knows, and the known one it looks like. */
export interface UnknownPlaceholder {
	readonly name: string;
	readonly nearest: string | undefined;
}

/** Why a text is refused as a regular expression. */
export interface RegexpMistake {
	readonly code: string;
	readonly message: string;
	readonly hint?: string;
}

/** The placeholder table as lowering sees it. */
export interface Placeholders {
	/** Shorthands to full names, and names that mean something else in the dialect to those that mean it. */
	expand(text: string, dialect: Dialect): string;
	/** Names in a text that stand for nothing. */
	unknown(text: string): readonly UnknownPlaceholder[];
	/** Why a text is no regular expression, or undefined if it is one. */
	regexpMistake(source: string): RegexpMistake | undefined;
}
