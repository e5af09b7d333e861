/**
 * Path patterns that contain `%`. Escapes (`%XX`) in the pattern are compared with the escaped path, everything else with the
 * decoded path.
 */
import { compileGlob } from './glob.ts';

/**
 * Compiles a lower-case pattern to a test of the lower-case escaped path. For the comparison, the path stays escaped where the
 * pattern has an escape, and is decoded elsewhere. The result is then matched against the pattern as a glob, in which `%*` is a
 * wildcard like `*`. Neither matches a slash. For `%*`, the path stays escaped, so `%2f` is not a slash there.
 */
export function compileEscapedPattern(pattern: string): (escapedPath: string) => boolean {
	const glob = compileGlob(pattern.replaceAll('%*', '*'));
	if (!glob) return () => false;
	const bytes = Buffer.from(pattern, 'utf8').toString('latin1');
	return path => {
		const compared = comparedText(bytes, path);
		return compared !== undefined && glob(Buffer.from(compared, 'latin1').toString('utf8').toLowerCase());
	};
}

/** Returns the bytes to match against the glob, each as one character; undefined if the path cannot match. */
function comparedText(pattern: string, path: string): string | undefined {
	let text = '';
	let patternIndex = 0;
	let pathIndex = 0;
	while (patternIndex < pattern.length && pathIndex < path.length) {
		const patternCharacter = pattern[patternIndex]!;
		const escapeText = path[pathIndex] === '%' ? path.slice(pathIndex, pathIndex + 3) : '';
		const isEscape = escapeText.length === 3;
		if (patternCharacter === '%' && patternIndex + 3 <= pattern.length && pattern[patternIndex + 1] !== '*') {
			text += isEscape ? escapeText : '';
			pathIndex += isEscape ? 3 : 1;
			patternIndex += 3;
		} else if (patternCharacter === '%' || patternCharacter === '*') {
			if (patternCharacter === '%') patternIndex++;
			// A wildcard extends to the next occurrence of the pattern's next character, but at least over the escape at which it
			// begins.
			if (isEscape) pathIndex += 2;
			const end = patternIndex + 1 < pattern.length ? path.indexOf(pattern[patternIndex + 1]!, pathIndex) : path.length;
			const runText =
				end === -1
					? undefined
					: patternCharacter === '%'
						? path.slice(pathIndex, end)
						: decodeBytes(path.slice(pathIndex, end));
			if (runText === undefined) return undefined;
			text += runText;
			pathIndex = end;
			patternIndex++;
		} else {
			const character = isEscape ? decodeBytes(escapeText) : path[pathIndex]!;
			if (character === undefined) return undefined;
			text += character;
			pathIndex += isEscape ? 3 : 1;
			patternIndex++;
		}
	}
	const remainder = path.slice(pathIndex);
	return text + (decodeBytes(remainder) ?? remainder);
}

/** Returns the bytes of an escaped string, each as one character; undefined if an escape is malformed. */
function decodeBytes(text: string): string | undefined {
	if (!text.includes('%')) return text;
	if (/%(?![0-9a-f]{2})/.test(text)) return undefined;
	return text.replace(/%(..)/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}
