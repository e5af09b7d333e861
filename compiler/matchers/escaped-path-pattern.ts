/** Path patterns that hold `%`: what they write as `%XX` is compared with the escapes of the path, the rest decoded. */

/** A byte of the path: decoded, and its two hex digits if it was escaped ('' if it was not). */
interface PathByte {
	readonly decoded: string;
	readonly escape: string;
}

type Token =
	| { readonly kind: 'byte'; readonly byte: string }
	| { readonly kind: 'escape'; readonly hex: string }
	/** `*` runs over decoded bytes up to the next token, `%*` over those still escaped. */
	| { readonly kind: 'run'; readonly escaped: boolean };

/**
 * Compiles a pattern in lower case to a test of the escaped path in lower case. The whole path must match; a wildcard runs
 * to the first byte that the next token matches, without coming back.
 */
export function compileEscapedPattern(pattern: string): (escapedPath: string) => boolean {
	const tokens = tokenize(Buffer.from(pattern, 'utf8').toString('latin1'));
	return path => matches(tokens, bytesOf(path));
}

function tokenize(pattern: string): Token[] {
	const tokens: Token[] = [];
	for (let i = 0; i < pattern.length; i++) {
		const c = pattern[i]!;
		if (c === '*') tokens.push({ kind: 'run', escaped: false });
		else if (c === '%' && pattern[i + 1] === '*') {
			tokens.push({ kind: 'run', escaped: true });
			i++;
		} else if (c === '%' && /^[0-9a-f]{2}$/.test(pattern.slice(i + 1, i + 3))) {
			tokens.push({ kind: 'escape', hex: pattern.slice(i + 1, i + 3) });
			i += 2;
		} else tokens.push({ kind: 'byte', byte: c });
	}
	return tokens;
}

function bytesOf(path: string): PathByte[] {
	const bytes: PathByte[] = [];
	for (let i = 0; i < path.length; i++) {
		const hex = path[i] === '%' ? path.slice(i + 1, i + 3) : '';
		if (/^[0-9a-f]{2}$/.test(hex)) {
			bytes.push({ decoded: String.fromCharCode(Number.parseInt(hex, 16)).toLowerCase(), escape: hex });
			i += 2;
		} else bytes.push({ decoded: path[i]!, escape: '' });
	}
	return bytes;
}

function matches(tokens: readonly Token[], bytes: readonly PathByte[]): boolean {
	let at = 0;
	for (let t = 0; t < tokens.length; t++) {
		const token = tokens[t]!;
		if (token.kind === 'run') {
			const next = tokens[t + 1];
			if (!next) return true;
			while (at < bytes.length && !matchesByte(next, bytes[at]!, token.escaped)) at++;
		} else {
			const byte = bytes[at++];
			if (!byte || !matchesByte(token, byte, false)) return false;
		}
	}
	return at === bytes.length;
}

function matchesByte(token: Token, byte: PathByte, unescapedOnly: boolean): boolean {
	if (token.kind === 'run') return true;
	if (token.kind === 'escape') return byte.escape === token.hex;
	return byte.decoded === token.byte && !(unescapedOnly && byte.escape !== '');
}
