/** Which files a file server hides: names and paths with wildcards. */

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
	const regexp = new RegExp(`^${globSource(pattern)}$`, 'su');
	return name => regexp.test(name);
}

function pathTest(pattern: string): (path: string) => boolean {
	const trimmed = pattern.length > 1 && pattern.endsWith('/') ? pattern.slice(0, -1) : pattern;
	if (!hasWildcard(trimmed)) {
		const folder = trimmed === '/' ? '/' : `${trimmed}/`;
		return path => path === trimmed || path.startsWith(folder);
	}
	const regexp = new RegExp(`^${globSource(trimmed)}(?:/|$)`, 'su');
	return path => regexp.test(path);
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

/** Source of a regular expression (flag `u`) for a glob; an unclosed `[` stands for itself. */
function globSource(pattern: string): string {
	let source = '';
	for (let at = 0; at < pattern.length; at++) {
		const char = pattern[at]!;
		if (char === '*') {
			// Runs of stars mean the same as one, and would only make the engine backtrack.
			while (pattern[at + 1] === '*') at += 1;
			source += '[^/]*';
		} else if (char === '?') source += '[^/]';
		else if (char === '\\' && at + 1 < pattern.length) source += literal(pattern[++at]!);
		else if (char === '[') {
			const close = pattern.indexOf(']', pattern[at + 1] === '^' ? at + 3 : at + 2);
			if (close === -1) source += '\\[';
			else {
				source += classSource(pattern.slice(at + 1, close));
				at = close;
			}
		} else source += literal(char);
	}
	return source;
}

function classSource(inside: string): string {
	const negated = inside.startsWith('^');
	const members = Array.from(negated ? inside.slice(1) : inside);
	let source = '';
	for (let at = 0; at < members.length; at++) {
		const from = members[at]!;
		const to = members[at + 1] === '-' ? members[at + 2] : undefined;
		if (to === undefined) source += classLiteral(from);
		else {
			// A class that runs backwards holds nothing; as a regular expression it would be an error.
			if (from.codePointAt(0)! <= to.codePointAt(0)!) source += `${classLiteral(from)}-${classLiteral(to)}`;
			at += 2;
		}
	}
	return negated ? `[^/${source}]` : source === '' ? '(?!)' : `(?!/)[${source}]`;
}

function literal(char: string): string {
	return /[\\^$.*+?()[\]{}|/]/.test(char) ? `\\${char}` : char;
}

/** A hyphen may be escaped inside a class only. */
function classLiteral(char: string): string {
	return char === '-' ? '\\-' : literal(char);
}
