/**
 * Path patterns that contain `%`. A part written as `%XX` is compared with the escaped path, every other part with the decoded
 * path.
 */
import { compileGlob } from './glob.ts';

/**
 * Compiles a lower-case pattern to a test of the lower-case escaped path. For the comparison, the path stays escaped where the
 * pattern has an escape, and is decoded elsewhere. The result is then matched against the pattern as a glob, in which `%*` is a
 * wildcard like `*`. Neither matches a slash; but `%*` compares the escaped path, in which `%2f` is not a slash.
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
	let p = 0;
	let at = 0;
	while (p < pattern.length && at < path.length) {
		const c = pattern[p]!;
		const byte = path[at] === '%' ? path.slice(at, at + 3) : '';
		const isEscape = byte.length === 3;
		if (c === '%' && p + 3 <= pattern.length && pattern[p + 1] !== '*') {
			text += isEscape ? byte : '';
			at += isEscape ? 3 : 1;
			p += 3;
		} else if (c === '%' || c === '*') {
			if (c === '%') p++;
			// A wildcard extends to the next occurrence of the pattern's next character, but at least over the escape at which it
			// begins.
			if (isEscape) at += 2;
			const end = p + 1 < pattern.length ? path.indexOf(pattern[p + 1]!, at) : path.length;
			const run = end === -1 ? undefined : c === '%' ? path.slice(at, end) : decoded(path.slice(at, end));
			if (run === undefined) return undefined;
			text += run;
			at = end;
			p++;
		} else {
			const character = isEscape ? decoded(byte) : path[at]!;
			if (character === undefined) return undefined;
			text += character;
			at += isEscape ? 3 : 1;
			p++;
		}
	}
	const rest = path.slice(at);
	return text + (decoded(rest) ?? rest);
}

/** Returns the bytes of an escaped string, each as one character; undefined if an escape is malformed. */
function decoded(text: string): string | undefined {
	if (!text.includes('%')) return text;
	if (/%(?![0-9a-f]{2})/.test(text)) return undefined;
	return text.replace(/%(..)/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}
