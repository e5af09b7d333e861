/** Glob patterns for paths and names: `*`, `?`, `[a-z]`, `\` escapes. `*` and `?` never match a slash. */

/** One element of a segment: a character, any one character, any run, or a class. */
export type GlobElement = string | typeof ANY_CHARACTER | typeof ANY_RUN | CharacterClass;

/** An element that matches like `?`. */
export const ANY_CHARACTER = 1;
/** An element that matches like `*`: any text, including none. */
export const ANY_RUN = 2;

interface CharacterClass {
	readonly negated: boolean;
	/** Pairs of first and last code point. */
	readonly ranges: readonly (readonly [number, number])[];
}

/**
 * Compiles a glob that must match a whole path; undefined if it is malformed (an unclosed class, a trailing escape). Each
 * segment is matched separately with one level of backtracking, so the work is at most the product of both lengths.
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
		const parsed = parseElement(characters, i);
		if (!parsed) return undefined;
		segments.at(-1)!.push(parsed.element);
		i = parsed.end;
	}
	return path => {
		const parts = path.split('/');
		return parts.length === segments.length && segments.every((segment, i) => matchesGlobSegment(segment, parts[i]!));
	};
}

function parseElement(characters: readonly string[], i: number): { element: GlobElement; end: number } | undefined {
	const c = characters[i]!;
	if (c === '*') return { element: ANY_RUN, end: i + 1 };
	if (c === '?') return { element: ANY_CHARACTER, end: i + 1 };
	if (c === '[') return parseClass(characters, i + 1);
	if (c !== '\\') return { element: c, end: i + 1 };
	const escaped = characters[i + 1];
	return escaped === undefined ? undefined : { element: escaped, end: i + 2 };
}

function parseClass(characters: readonly string[], start: number): { element: GlobElement; end: number } | undefined {
	let i = start;
	const negated = characters[i] === '^' || characters[i] === '!';
	if (negated) i++;
	const ranges: [number, number][] = [];
	for (;;) {
		if (characters[i] === ']' && ranges.length > 0) return { element: { negated, ranges }, end: i + 1 };
		const low = classCharacter();
		if (low === undefined) return undefined;
		let high: number | undefined = low;
		if (characters[i] === '-' && characters[i + 1] !== ']') {
			i++;
			high = classCharacter();
			if (high === undefined) return undefined;
		}
		ranges.push([low, high]);
	}
	function classCharacter(): number | undefined {
		let c = characters[i++];
		if (c === '\\') c = characters[i++];
		return c === undefined || c === '/' ? undefined : c.codePointAt(0);
	}
}

/** Matches a whole segment, in time proportional to the number of elements times its length. */
export function matchesGlobSegment(elements: readonly GlobElement[], text: string): boolean {
	const characters = isAscii(text) ? text : Array.from(text);
	let elementIndex = 0;
	let characterIndex = 0;
	let starElement = -1;
	let starCharacter = 0;
	while (characterIndex < characters.length) {
		const element = elements[elementIndex];
		if (element === ANY_RUN) {
			starElement = elementIndex++;
			starCharacter = characterIndex;
		} else if (element !== undefined && matches(element, characters[characterIndex]!)) {
			elementIndex++;
			characterIndex++;
		} else if (starElement !== -1) {
			// The last star matches one more character. Backtracking to an earlier star could not help.
			elementIndex = starElement + 1;
			characterIndex = ++starCharacter;
		} else return false;
	}
	while (elements[elementIndex] === ANY_RUN) elementIndex++;
	return elementIndex === elements.length;
}

function matches(element: GlobElement, character: string): boolean {
	if (typeof element === 'string') return element === character;
	if (element === ANY_CHARACTER) return true;
	if (element === ANY_RUN) return false;
	const code = character.codePointAt(0)!;
	return element.ranges.some(([low, high]) => code >= low && code <= high) !== element.negated;
}

function isAscii(text: string): boolean {
	for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 127) return false;
	return true;
}

/** Escapes text so that it matches only itself. */
export function escapeGlob(text: string): string {
	return text.replace(/[*?[\]\\]/g, '\\$&');
}
