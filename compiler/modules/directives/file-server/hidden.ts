/** Decides which files a file server hides, by names and paths with wildcards. */
import { ANY_CHARACTER, ANY_RUN, type GlobElement, matchesGlobSegment } from '../../matchers/glob.ts';

/**
 * Reports whether a file must be hidden. `absolute` is its full path, `below` its path relative to the root, with a leading
 * slash.
 */
export type HiddenTest = (absolute: string, below: string) => boolean;

/**
 * Compiles patterns. One without a slash hides every file and folder of that name below the root; one with a slash hides that
 * path and everything below it. `*` matches any characters except slashes, `?` a single such character, `[a-z]` a class (`[^a]`
 * its complement), and `\` makes the next character literal.
 */
export function compileHiddenTest(patterns: readonly string[]): HiddenTest {
	const names = patterns.filter(pattern => !pattern.includes('/')).map(nameTest);
	const paths = patterns.filter(pattern => pattern.includes('/')).map(pathTest);
	return (absolute, below) => {
		for (const test of paths) if (test(absolute)) return true;
		if (names.length === 0) return false;
		for (const segment of below.split('/')) {
			if (segment === '') continue;
			for (const test of names) if (test(segment)) return true;
		}
		return false;
	};
}

function nameTest(pattern: string): (name: string) => boolean {
	if (!hasWildcard(pattern)) return name => name === pattern;
	const [elements] = parsePattern(pattern);
	return name => matchesGlobSegment(elements!, name);
}

function pathTest(pattern: string): (path: string) => boolean {
	const trimmed = pattern.length > 1 && pattern.endsWith('/') ? pattern.slice(0, -1) : pattern;
	if (!hasWildcard(trimmed)) {
		const folder = trimmed === '/' ? '/' : `${trimmed}/`;
		return path => path === trimmed || path.startsWith(folder);
	}
	const segments = parsePattern(trimmed);
	return path => {
		const parts = path.split('/');
		return (
			parts.length >= segments.length && segments.every((elements, at) => matchesGlobSegment(elements, parts[at]!))
		);
	};
}

/** Reports whether any pattern could hide something below a folder; false only if certainly none can. */
export function mayHideBelow(patterns: readonly string[], folder: string): boolean {
	return patterns.some(
		pattern =>
			!pattern.startsWith('/') ||
			hasWildcard(pattern) ||
			folder === '/' ||
			pattern === folder ||
			pattern.startsWith(`${folder}/`) ||
			folder.startsWith(pattern.endsWith('/') ? pattern : `${pattern}/`) ||
			`${folder}/` === pattern,
	);
}

/** Reports whether a pattern contains a wildcard or an escape. */
export function hasWildcard(pattern: string): boolean {
	return /[*?[\\]/.test(pattern);
}

/** Escapes a string for literal use in a pattern, such as the value of a placeholder. */
export function escapeGlob(text: string): string {
	return text.replace(/[*?[\\]/g, '\\$&');
}

/** Parses a pattern into segments. An unclosed `[` is literal. */
function parsePattern(pattern: string): GlobElement[][] {
	const segments: GlobElement[][] = [[]];
	const characters = Array.from(pattern);
	for (let at = 0; at < characters.length; at++) {
		const character = characters[at]!;
		if (character === '/') {
			segments.push([]);
			continue;
		}
		let element: GlobElement = character;
		if (character === '*') element = ANY_RUN;
		else if (character === '?') element = ANY_CHARACTER;
		else if (character === '\\' && at + 1 < characters.length) element = characters[++at]!;
		else if (character === '[') {
			const close = characters.indexOf(']', characters[at + 1] === '^' ? at + 3 : at + 2);
			if (close !== -1) {
				element = parseClass(characters.slice(at + 1, close));
				at = close;
			}
		}
		segments.at(-1)!.push(element);
	}
	return segments;
}

/** Parses the inside of `[…]`. A reversed range is empty. */
function parseClass(inside: readonly string[]): GlobElement {
	const negated = inside[0] === '^';
	const members = negated ? inside.slice(1) : inside;
	const ranges: [number, number][] = [];
	for (let at = 0; at < members.length; at++) {
		const low = members[at]!.codePointAt(0)!;
		const isRange = members[at + 1] === '-' && at + 2 < members.length;
		if (isRange) at += 2;
		ranges.push([low, members[at]!.codePointAt(0)!]);
	}
	return { negated, ranges };
}
