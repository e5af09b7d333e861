/** Converts expressions to source text for `RegExp` with the flag `u`. */
import { ANY_CHARACTER, type CharacterSet, complementOfSet, NOT_NEWLINE, WORD_CHARACTERS } from './character-sets.ts';
import type { ParsedRegexp, RegexpAssertion, RegexpNode } from './regexp-node.ts';

const ASSERTION_SOURCES: { readonly [assertion in RegexpAssertion]: string } = {
	'text-start': '^',
	'text-end': '$',
	// With the flag `m`, `^` and `$` would also match at line terminators other than `\n`.
	'line-start': '(?<![^\\n])',
	'line-end': '(?![^\\n])',
	'word-boundary': '\\b',
	'no-word-boundary': '\\B',
};

/** Returns the `RegExp` source of an expression. */
export function regexpSource({ root, groupsByName }: ParsedRegexp): string {
	const nameByGroup = new Map(Array.from(groupsByName, ([name, index]) => [index, name]));
	const writeNode = (node: RegexpNode): string => {
		switch (node.kind) {
			case 'set':
				return setSource(node.ranges);
			case 'assert':
				return ASSERTION_SOURCES[node.assertion];
			case 'group': {
				const name = nameByGroup.get(node.index);
				return `(${name === undefined ? '' : `?<${name}>`}${writeNode(node.child)})`;
			}
			case 'cat':
				return node.children
					.map(child => (child.kind === 'alt' ? `(?:${writeNode(child)})` : writeNode(child)))
					.join('');
			case 'alt':
				return node.children.map(writeNode).join('|');
			case 'repeat': {
				const childSource = writeNode(node.child);
				const isAtom = node.child.kind === 'set' || node.child.kind === 'group';
				return `${isAtom ? childSource : `(?:${childSource})`}${quantifierSource(node.min, node.max)}${node.lazy ? '?' : ''}`;
			}
		}
	};
	return writeNode(root);
}

function quantifierSource(min: number, max: number): string {
	if (max === Infinity) return min === 0 ? '*' : min === 1 ? '+' : `{${min},}`;
	if (min === 0 && max === 1) return '?';
	return min === max ? `{${min}}` : `{${min},${max}}`;
}

function setSource(ranges: CharacterSet): string {
	if (ranges === NOT_NEWLINE) return '[^\\n]';
	if (ranges === ANY_CHARACTER) return '[^]';
	if (ranges === WORD_CHARACTERS) return '\\w';
	if (ranges.length === 1 && ranges[0]![0] === ranges[0]![1]) return characterSource(ranges[0]![0]);
	const isNegated = ranges[0]?.[0] === 0 && ranges.at(-1)![1] === 0x10ffff;
	const rangeTexts = (isNegated ? complementOfSet(ranges) : ranges).map(([low, high]) =>
		low === high ? characterSource(low) : `${characterSource(low)}-${characterSource(high)}`,
	);
	return `[${isNegated ? '^' : ''}${rangeTexts.join('')}]`;
}

function characterSource(code: number): string {
	const c = String.fromCodePoint(code);
	return /[A-Za-z0-9]/.test(c) ? c : `\\u{${code.toString(16)}}`;
}
