/** The tree of a template. */
import type { Value } from './value.ts';

/** Where a node stands: offsets in the text. */
export interface Range {
	readonly start: number;
	readonly end: number;
}

/** Something with a value. */
export type Operand = Range &
	(
		| { readonly kind: 'dot' }
		| { readonly kind: 'nil' }
		| { readonly kind: 'literal'; readonly value: Value }
		/** Slot of a variable. */
		| { readonly kind: 'variable'; readonly slot: number }
		| { readonly kind: 'function'; readonly name: string }
		| { readonly kind: 'pipeline'; readonly pipeline: Pipeline }
		/** `.A`, `$x.A`, `(…).A`: a field of an operand. */
		| { readonly kind: 'field'; readonly of: Operand; readonly name: string }
	);

/** An operand with arguments. */
export interface Command extends Range {
	readonly operands: readonly Operand[];
}

/** Commands, each given the value of the one before as its last argument. */
export interface Pipeline extends Range {
	readonly commands: readonly Command[];
	/** Variables that take its value: one, or index and element of a range. */
	readonly slots: readonly number[];
	/** True for `:=`: the value of a declaration, like that of an assignment, is not printed. */
	readonly declares: boolean;
}

/** What does something. */
export type Statement =
	| { readonly kind: 'text'; readonly text: string }
	| { readonly kind: 'print'; readonly pipeline: Pipeline }
	| ControlStatement<'if'>
	| ControlStatement<'with'>
	| ControlStatement<'range'>
	| ({ readonly kind: 'template'; readonly name: string; readonly pipeline: Pipeline | undefined } & Range)
	| { readonly kind: 'break' }
	| { readonly kind: 'continue' };

/** A block with an `{{else}}`. */
export interface ControlStatement<Kind extends string> {
	readonly kind: Kind;
	readonly pipeline: Pipeline;
	readonly body: readonly Statement[];
	readonly otherwise: readonly Statement[];
}

/** A text as it was parsed: its statements and the templates that it defines. */
export interface ParsedTemplate {
	readonly statements: readonly Statement[];
	readonly defines: ReadonlyMap<string, readonly Statement[]>;
}
