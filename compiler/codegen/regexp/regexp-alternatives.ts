/** Searches for several expressions together, in time linear in the length of the subject. */
import { parseRegexp } from './parse-regexp.ts';
import { compileParsedRegexp } from './regexp.ts';
import { CONFIGURED_REGEXP_BOUNDS } from './regexp-bounds.ts';
import type { ParsedRegexp, RegexpNode } from './regexp-node.ts';

/** One of several expressions that are searched for together. */
export interface RegexpAlternative {
	/** The number of the group that takes part only in matches of this expression and contains the whole match. */
	readonly group: number;
	/** Number of the expression's own groups. Their numbers follow `group`. */
	readonly groupCount: number;
	/** Numbers of the expression's named groups relative to `group`: the first group after `group` has number 1. */
	readonly groupsByName: ReadonlyMap<string, number>;
}

export interface RegexpAlternatives {
	/**
	 * Matches any of the expressions, with the flags `g` and `u`. If several expressions match at a position, the first of them is
	 * found.
	 */
	readonly regexp: RegExp;
	/** All expressions, combined into one. */
	readonly parsed: ParsedRegexp;
	readonly alternatives: readonly RegexpAlternative[];
	/** Maximum length of a match in UTF-16 units; Infinity if matches can have any length. */
	readonly maxMatchLength: number;
}

/** Combines expressions into one and compiles it. Throws RegexpError. */
export function compileRegexpAlternatives(
	expressions: readonly { readonly source: string; readonly ignoreCase: boolean }[],
): RegexpAlternatives {
	const alternatives: RegexpAlternative[] = [];
	const groupNodes: RegexpNode[] = [];
	let groupCount = 0;
	for (const { source, ignoreCase } of expressions) {
		const parsed = parseRegexp(source, ignoreCase);
		const group = groupCount + 1;
		alternatives.push({ group, groupCount: parsed.groupCount, groupsByName: parsed.groupsByName });
		groupNodes.push({ kind: 'group', index: group, child: shiftGroups(parsed.root, group) });
		groupCount += 1 + parsed.groupCount;
	}
	// Several expressions may use the same group names, so the combined expression has none.
	const parsed: ParsedRegexp = { root: { kind: 'alt', children: groupNodes }, groupCount, groupsByName: new Map() };
	const regexp = compileParsedRegexp(parsed, 'g', CONFIGURED_REGEXP_BOUNDS);
	return { regexp, parsed, alternatives, maxMatchLength: maxMatchLengthOf(parsed.root) };
}

/** Returns the node with the numbers of its groups increased by `offset`. */
function shiftGroups(node: RegexpNode, offset: number): RegexpNode {
	switch (node.kind) {
		case 'group':
			return { ...node, index: node.index + offset, child: shiftGroups(node.child, offset) };
		case 'cat':
		case 'alt':
			return { ...node, children: node.children.map(child => shiftGroups(child, offset)) };
		case 'repeat': {
			const [firstGroup, endGroup] = node.groups;
			return { ...node, groups: [firstGroup + offset, endGroup + offset], child: shiftGroups(node.child, offset) };
		}
		default:
			return node;
	}
}

/** Returns the maximum length of a match in UTF-16 units; Infinity if matches can have any length. */
function maxMatchLengthOf(node: RegexpNode): number {
	switch (node.kind) {
		case 'assert':
			return 0;
		case 'set':
			return (node.ranges.at(-1)?.[1] ?? 0) > 0xffff ? 2 : 1;
		case 'cat':
			return node.children.reduce((sum, child) => sum + maxMatchLengthOf(child), 0);
		case 'alt':
			return node.children.reduce((longest, child) => Math.max(longest, maxMatchLengthOf(child)), 0);
		case 'repeat': {
			const length = maxMatchLengthOf(node.child);
			return length === 0 || node.max === 0 ? 0 : length * node.max;
		}
		case 'group':
			return maxMatchLengthOf(node.child);
	}
}
