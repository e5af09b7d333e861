/**
 * Compiles path patterns that contain `%`. Escapes (`%XX`) in the pattern are compared with the escaped path, all other characters
 * with the decoded path.
 */
import { compileGlob } from './glob.ts';

/**
 * Compiles a lower-case pattern to a test of the lower-case escaped path. For the comparison, the path stays escaped where the
 * pattern has an escape, and is decoded elsewhere. The result is then matched against the pattern as a glob, in which `%*` is a
 * wildcard like `*`. Neither wildcard matches a slash. Where `%*` matches, the path stays escaped, so `%2f` is not a slash there.
 */
export function compileEscapedPattern(pattern: string): (escapedPath: string) => boolean {
	const glob = compileGlob(pattern.replaceAll('%*', '*'));
	if (!glob) return () => false;
	const patternBytes = Buffer.from(pattern, 'utf8').toString('latin1');
	return path => {
		const comparedBytes = decodeForComparison(patternBytes, path);
		return comparedBytes !== undefined && glob(Buffer.from(comparedBytes, 'latin1').toString('utf8').toLowerCase());
	};
}

/**
 * Returns the path, partly decoded, as bytes to match against the glob, each byte as one character; undefined if the path cannot
 * match.
 */
function decodeForComparison(pattern: string, path: string): string | undefined {
	let comparedBytes = '';
	let patternIndex = 0;
	let pathIndex = 0;
	while (patternIndex < pattern.length && pathIndex < path.length) {
		const patternCharacter = pattern[patternIndex]!;
		const escapeText = path[pathIndex] === '%' ? path.slice(pathIndex, pathIndex + 3) : '';
		const isEscape = escapeText.length === 3;
		if (patternCharacter === '%' && patternIndex + 3 <= pattern.length && pattern[patternIndex + 1] !== '*') {
			comparedBytes += isEscape ? escapeText : '';
			pathIndex += isEscape ? 3 : 1;
			patternIndex += 3;
		} else if (patternCharacter === '%' || patternCharacter === '*') {
			if (patternCharacter === '%') patternIndex++;
			// A wildcard matches up to the next occurrence of the character that follows it in the pattern. If the path has an escape
			// here, the search begins at the escape's last digit.
			if (isEscape) pathIndex += 2;
			const wildcardEnd =
				patternIndex + 1 < pattern.length ? path.indexOf(pattern[patternIndex + 1]!, pathIndex) : path.length;
			const wildcardText =
				wildcardEnd === -1
					? undefined
					: patternCharacter === '%'
						? path.slice(pathIndex, wildcardEnd)
						: decodeBytes(path.slice(pathIndex, wildcardEnd));
			if (wildcardText === undefined) return undefined;
			comparedBytes += wildcardText;
			pathIndex = wildcardEnd;
			patternIndex++;
		} else {
			const character = isEscape ? decodeBytes(escapeText) : path[pathIndex]!;
			if (character === undefined) return undefined;
			comparedBytes += character;
			pathIndex += isEscape ? 3 : 1;
			patternIndex++;
		}
	}
	const remainder = path.slice(pathIndex);
	return comparedBytes + (decodeBytes(remainder) ?? remainder);
}

/** Returns the bytes of an escaped string, each as one character; undefined if an escape is malformed. */
function decodeBytes(escapedText: string): string | undefined {
	if (!escapedText.includes('%')) return escapedText;
	if (/%(?![0-9a-f]{2})/.test(escapedText)) return undefined;
	return escapedText.replace(/%(..)/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}
