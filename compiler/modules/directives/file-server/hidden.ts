/** Decides which files a file server hides, by names and paths with wildcards. */
import { ANY_CHARACTER, ANY_RUN, type GlobElement, matchesGlobSegment } from '../../matchers/glob.ts';

/**
 * Reports whether a file must be hidden. `absolutePath` is its full path; `relativePath` is the path below the root, with a
 * leading slash.
 */
export type HiddenTest = (absolutePath: string, relativePath: string) => boolean;

/**
 * Compiles patterns. A pattern without a slash hides every file and folder of that name below the root. A pattern with a slash
 * hides that path and everything below it. `*` matches any characters except slashes, `?` a single such character, `[a-z]` a
 * class of characters, `[^a]` its complement. `\` makes the next character literal.
 */
export function compileHiddenTest(patterns: readonly string[]): HiddenTest {
	const nameTests = patterns.filter(pattern => !pattern.includes('/')).map(compileNameTest);
	const pathTests = patterns.filter(pattern => pattern.includes('/')).map(compilePathTest);
	return (absolutePath, relativePath) => {
		for (const isPathHidden of pathTests) if (isPathHidden(absolutePath)) return true;
		if (nameTests.length === 0) return false;
		for (const segment of relativePath.split('/')) {
			if (segment === '') continue;
			for (const isNameHidden of nameTests) if (isNameHidden(segment)) return true;
		}
		return false;
	};
}

function compileNameTest(pattern: string): (name: string) => boolean {
	if (!hasWildcard(pattern)) return name => name === pattern;
	const [elements] = parsePattern(pattern);
	return name => matchesGlobSegment(elements!, name);
}

function compilePathTest(pattern: string): (path: string) => boolean {
	const trimmedPattern = pattern.length > 1 && pattern.endsWith('/') ? pattern.slice(0, -1) : pattern;
	if (!hasWildcard(trimmedPattern)) {
		const folder = trimmedPattern === '/' ? '/' : `${trimmedPattern}/`;
		return path => path === trimmedPattern || path.startsWith(folder);
	}
	const segments = parsePattern(trimmedPattern);
	return path => {
		const pathSegments = path.split('/');
		return (
			pathSegments.length >= segments.length &&
			segments.every((elements, index) => matchesGlobSegment(elements, pathSegments[index]!))
		);
	};
}

/** Reports whether any pattern might hide something below a folder. Returns false only if it is certain that none does. */
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

/** Escapes a text, such as the value of a placeholder, for literal use in a pattern. */
export function escapeGlob(text: string): string {
	return text.replace(/[*?[\\]/g, '\\$&');
}

/** Parses a pattern into one list of elements for each path segment. An unclosed `[` is literal. */
function parsePattern(pattern: string): GlobElement[][] {
	const segments: GlobElement[][] = [[]];
	const characters = Array.from(pattern);
	for (let index = 0; index < characters.length; index++) {
		const character = characters[index]!;
		if (character === '/') {
			segments.push([]);
			continue;
		}
		let element: GlobElement = character;
		if (character === '*') element = ANY_RUN;
		else if (character === '?') element = ANY_CHARACTER;
		else if (character === '\\' && index + 1 < characters.length) element = characters[++index]!;
		else if (character === '[') {
			const closingIndex = characters.indexOf(']', characters[index + 1] === '^' ? index + 3 : index + 2);
			if (closingIndex !== -1) {
				element = parseCharacterClass(characters.slice(index + 1, closingIndex));
				index = closingIndex;
			}
		}
		segments.at(-1)!.push(element);
	}
	return segments;
}

/** Parses the characters between `[` and `]`. A reversed range (`z-a`) matches nothing. */
function parseCharacterClass(characters: readonly string[]): GlobElement {
	const isComplement = characters[0] === '^';
	const members = isComplement ? characters.slice(1) : characters;
	const ranges: [number, number][] = [];
	for (let index = 0; index < members.length; index++) {
		const low = members[index]!.codePointAt(0)!;
		const isRange = members[index + 1] === '-' && index + 2 < members.length;
		if (isRange) index += 2;
		ranges.push([low, members[index]!.codePointAt(0)!]);
	}
	return { isNegated: isComplement, ranges };
}
