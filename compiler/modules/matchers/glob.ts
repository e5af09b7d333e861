/** Glob patterns for paths and names: `*`, `?`, `[a-z]`, `\` escapes. `*` and `?` never match a slash. */

/** An element of a segment's pattern: a literal character, {@link ANY_CHARACTER}, {@link ANY_RUN}, or a class. */
export type GlobElement = string | typeof ANY_CHARACTER | typeof ANY_RUN | CharacterClass;

/** An element that matches like `?`. */
export const ANY_CHARACTER = 1;
/** An element that matches like `*`: any text, including none. */
export const ANY_RUN = 2;

interface CharacterClass {
	readonly isNegated: boolean;
	/** The first and the last code point of each range. */
	readonly ranges: readonly (readonly [number, number])[];
}

/**
 * Compiles a glob that must match a whole path. Returns undefined if the glob is malformed (an unclosed class, a trailing escape).
 * Each segment is matched separately with one level of backtracking, so the work is at most the length of the glob times the length
 * of the path.
 */
export function compileGlob(pattern: string): ((path: string) => boolean) | undefined {
	const segments: GlobElement[][] = [[]];
	const characters = Array.from(pattern);
	for (let i = 0; i < characters.length; ) {
		const c = characters[i]!;
		if (c === '/') {
			segments.push([]);
			i++;
			continue;
		}
		const parsedElement = parseElement(characters, i);
		if (!parsedElement) return undefined;
		segments.at(-1)!.push(parsedElement.element);
		i = parsedElement.end;
	}
	return path => {
		const pathSegments = path.split('/');
		return (
			pathSegments.length === segments.length &&
			segments.every((segment, i) => matchesGlobSegment(segment, pathSegments[i]!))
		);
	};
}

function parseElement(characters: readonly string[], i: number): { element: GlobElement; end: number } | undefined {
	const c = characters[i]!;
	if (c === '*') return { element: ANY_RUN, end: i + 1 };
	if (c === '?') return { element: ANY_CHARACTER, end: i + 1 };
	if (c === '[') return parseClass(characters, i + 1);
	if (c !== '\\') return { element: c, end: i + 1 };
	const escapedCharacter = characters[i + 1];
	return escapedCharacter === undefined ? undefined : { element: escapedCharacter, end: i + 2 };
}

function parseClass(characters: readonly string[], start: number): { element: GlobElement; end: number } | undefined {
	let i = start;
	const isNegated = characters[i] === '^' || characters[i] === '!';
	if (isNegated) i++;
	const ranges: [number, number][] = [];
	for (;;) {
		if (characters[i] === ']' && ranges.length > 0) return { element: { isNegated, ranges }, end: i + 1 };
		const firstCode = readClassCharacter();
		if (firstCode === undefined) return undefined;
		let lastCode: number | undefined = firstCode;
		if (characters[i] === '-' && characters[i + 1] !== ']') {
			i++;
			lastCode = readClassCharacter();
			if (lastCode === undefined) return undefined;
		}
		ranges.push([firstCode, lastCode]);
	}
	function readClassCharacter(): number | undefined {
		let c = characters[i++];
		if (c === '\\') c = characters[i++];
		return c === undefined || c === '/' ? undefined : c.codePointAt(0);
	}
}

/** Reports whether a segment matches completely, in time proportional to the number of elements times the segment's length. */
export function matchesGlobSegment(elements: readonly GlobElement[], text: string): boolean {
	const characters = isAscii(text) ? text : Array.from(text);
	let elementIndex = 0;
	let characterIndex = 0;
	let starElementIndex = -1;
	let starCharacterIndex = 0;
	while (characterIndex < characters.length) {
		const element = elements[elementIndex];
		if (element === ANY_RUN) {
			starElementIndex = elementIndex++;
			starCharacterIndex = characterIndex;
		} else if (element !== undefined && matchesElement(element, characters[characterIndex]!)) {
			elementIndex++;
			characterIndex++;
		} else if (starElementIndex !== -1) {
			// The last star matches one more character. Backtracking to an earlier star could not help.
			elementIndex = starElementIndex + 1;
			characterIndex = ++starCharacterIndex;
		} else return false;
	}
	while (elements[elementIndex] === ANY_RUN) elementIndex++;
	return elementIndex === elements.length;
}

function matchesElement(element: GlobElement, character: string): boolean {
	if (typeof element === 'string') return element === character;
	if (element === ANY_CHARACTER) return true;
	if (element === ANY_RUN) return false;
	const code = character.codePointAt(0)!;
	return element.ranges.some(([low, high]) => code >= low && code <= high) !== element.isNegated;
}

function isAscii(text: string): boolean {
	for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 127) return false;
	return true;
}

/** Escapes text so that it matches only itself. */
export function escapeGlob(text: string): string {
	return text.replace(/[*?[\]\\]/g, '\\$&');
}
