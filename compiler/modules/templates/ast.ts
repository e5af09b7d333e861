/** The syntax tree of a template. */
import type { Value } from './value.ts';

/** The range of a node, as offsets in the template's source. */
export interface SourceRange {
	readonly start: number;
	readonly end: number;
}

/** A node that evaluates to a value. */
export type Operand = SourceRange &
	(
		| { readonly kind: 'dot' }
		| { readonly kind: 'nil' }
		| { readonly kind: 'literal'; readonly value: Value }
		| { readonly kind: 'variable'; readonly slot: number }
		| { readonly kind: 'function'; readonly name: string }
		| { readonly kind: 'pipeline'; readonly pipeline: Pipeline }
		/** `.A`, `$x.A`, `(…).A`: a field of an operand. */
		| { readonly kind: 'field'; readonly operand: Operand; readonly name: string }
	);

/** An operand, followed by the arguments with which it is called. */
export interface Command extends SourceRange {
	readonly operands: readonly Operand[];
}

/** A sequence of commands, each of which gets the value of the previous one as its last argument. */
export interface Pipeline extends SourceRange {
	readonly commands: readonly Command[];
	/** Slots of the variables that receive the pipeline's value: none, one, or two for the index and the element of a `range`. */
	readonly slots: readonly number[];
	/** True for `:=`, false for `=`. A pipeline with either operator does not print its value. */
	readonly isDeclaration: boolean;
}

/** A node that is executed for its output or effect. */
export type Statement =
	| { readonly kind: 'text'; readonly text: string }
	| { readonly kind: 'print'; readonly pipeline: Pipeline }
	| ControlStatement<'if'>
	| ControlStatement<'with'>
	| ControlStatement<'range'>
	| ({ readonly kind: 'template'; readonly name: string; readonly pipeline: Pipeline | undefined } & SourceRange)
	| { readonly kind: 'break' }
	| { readonly kind: 'continue' };

/** A block, such as `{{if}}`, with an optional `{{else}}`. */
export interface ControlStatement<Kind extends string> {
	readonly kind: Kind;
	readonly pipeline: Pipeline;
	readonly body: readonly Statement[];
	readonly otherwise: readonly Statement[];
}

/** A parsed template source: its statements and the templates that it defines. */
export interface ParsedTemplate {
	readonly statements: readonly Statement[];
	readonly definitions: ReadonlyMap<string, readonly Statement[]>;
}
