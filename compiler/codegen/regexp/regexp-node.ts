/** The syntax tree of a regular expression. */
import type { CharacterSet } from './character-sets.ts';

/** Conditions on a position in the subject, which consume no character. */
export type RegexpAssertion =
	| 'text-start'
	| 'text-end'
	| 'line-start'
	| 'line-end'
	| 'word-boundary'
	| 'no-word-boundary';

/** A node of the tree. `max` of a repetition may be Infinity. */
export type RegexpNode =
	| { readonly kind: 'set'; readonly ranges: CharacterSet }
	| { readonly kind: 'assert'; readonly assertion: RegexpAssertion }
	| { readonly kind: 'cat' | 'alt'; readonly children: readonly RegexpNode[] }
	| {
			readonly kind: 'repeat';
			readonly child: RegexpNode;
			readonly min: number;
			readonly max: number;
			readonly lazy: boolean;
			/** Numbers of the capturing groups inside the repetition: from `from` up to, but not including, `to`. */
			readonly groups: readonly [from: number, to: number];
	  }
	| { readonly kind: 'group'; readonly child: RegexpNode; readonly index: number };

export interface ParsedRegexp {
	readonly root: RegexpNode;
	/** Number of capturing groups. */
	readonly groupCount: number;
	/** Numbers of the named groups, by name. */
	readonly groupsByName: ReadonlyMap<string, number>;
}

/** Reports whether a node can match the empty string. */
export function isNullable(node: RegexpNode): boolean {
	switch (node.kind) {
		case 'assert':
			return true;
		case 'set':
			return false;
		case 'cat':
			return node.children.every(isNullable);
		case 'alt':
			return node.children.some(isNullable);
		case 'repeat':
			return node.min === 0 || isNullable(node.child);
		case 'group':
			return isNullable(node.child);
	}
}
