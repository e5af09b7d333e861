/** Limits on the size of regular expressions. */

export interface RegexpBounds {
	/** Maximum number of characters in the expression's source. */
	readonly maxSourceLength: number;
	/** Maximum number of different Unicode classes. The first use of a class in a thread takes about 10 ms. */
	readonly maxProperties: number;
	/** Maximum number of instructions in the expression's program. The counts of nested repetitions multiply. */
	readonly maxInstructions: number;
	/** Maximum number of steps for computing all automaton states in advance, which is necessary for a large program. */
	readonly maxSteps: number;
}

/** Bounds of expressions in a configuration. An expression at the limits takes about 0.1 s to compile. */
export const CONFIGURED_REGEXP_BOUNDS: RegexpBounds = {
	maxSourceLength: 8192,
	maxProperties: 10,
	maxInstructions: 20_000,
	maxSteps: 4_000_000,
};

/** Bounds of expressions that are compiled while a request is handled. An expression at the limits takes a few milliseconds. */
export const REQUEST_REGEXP_BOUNDS: RegexpBounds = {
	maxSourceLength: 1024,
	maxProperties: 2,
	maxInstructions: 2000,
	maxSteps: 200_000,
};
