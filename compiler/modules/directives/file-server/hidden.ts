/** Which files a file server hides: names and paths with wildcards. */
import { ANY_CHARACTER, ANY_RUN, type GlobElement, matchesElements } from '../../matchers/glob.ts';

/** True when a file must not be shown. `absolute` is its whole path, `below` its path from the root on, with a leading slash. */
export type Hides = (absolute: string, below: string) => boolean;

/**
 * Compiles patterns. One without a slash hides every file and folder of that name below the root; one with a slash hides
 * the path that it spells and all below it. `*` is any run of characters but slashes, `?` one of them, `[a-z]` a class
 * (`[^a]` its opposite), `\` takes the next character as it is.
 */
export function hides(patterns: readonly string[]): Hides {
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
	return name => matchesElements(elements!, name);
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
		return parts.length >= segments.length && segments.every((elements, at) => matchesElements(elements, parts[at]!));
	};
}

/** Whether any pattern could hide what is below a folder; false only where it is certain that none can. */
export function canHide(patterns: readonly string[], folder: string): boolean {
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

/** True for a pattern that can match more than itself. */
export function hasWildcard(pattern: string): boolean {
	return /[*?[\\]/.test(pattern);
}

/** A text that stands for itself in a pattern: for values of placeholders. */
export function escapeGlob(text: string): string {
	return text.replace(/[*?[\\]/g, '\\$&');
}

/** Parses a pattern to its segments. An unclosed `[` stands for itself. */
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

/** A range that runs backward holds nothing. */
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
