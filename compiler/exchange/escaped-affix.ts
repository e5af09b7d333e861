/** Strips a prefix or suffix from an escaped path. */

/**
 * Returns the escaped path without a prefix, or undefined if the path does not begin with it. Ignores case. A plain character in
 * the prefix also matches its escape in the path, but a `%XX` in the prefix matches only this escape.
 */
export function stripPathPrefix(escapedPath: string, prefix: string): string | undefined {
	let at = 0;
	const wanted = Buffer.from(prefix, 'utf8').toString('latin1');
	for (let i = 0; i < wanted.length; i++) {
		const c = wanted[i]!;
		let found = escapedPath[at++];
		if (found === '%' && c !== '%') {
			const code = Number.parseInt(escapedPath.slice(at, at + 2), 16);
			if (Number.isNaN(code)) return undefined;
			found = String.fromCharCode(code);
			at += 2;
		}
		if (found === undefined || found.toLowerCase() !== c.toLowerCase()) return undefined;
	}
	return escapedPath.slice(at);
}

/** Returns the escaped path without a suffix, or undefined if the path does not end with it. Compares as `stripPathPrefix` does. */
export function stripPathSuffix(escapedPath: string, suffix: string): string | undefined {
	const wanted = Buffer.from(suffix, 'utf8').toString('latin1');
	let end = escapedPath.length;
	for (let i = wanted.length - 1; i >= 0; i--) {
		// `%XX` in the suffix is compared as three characters.
		const literal = i >= 2 && /^%[0-9a-fA-F]{2}$/.test(wanted.slice(i - 2, i + 1));
		if (literal) {
			if (escapedPath.slice(Math.max(0, end - 3), end).toLowerCase() !== wanted.slice(i - 2, i + 1).toLowerCase())
				return undefined;
			end -= 3;
			i -= 2;
			continue;
		}
		const escaped = end >= 3 && /^%[0-9a-fA-F]{2}$/.test(escapedPath.slice(end - 3, end));
		const found = escaped
			? String.fromCharCode(Number.parseInt(escapedPath.slice(end - 2, end), 16))
			: escapedPath[end - 1];
		if (found === undefined || found.toLowerCase() !== wanted[i]!.toLowerCase()) return undefined;
		end -= escaped ? 3 : 1;
	}
	return escapedPath.slice(0, end);
}
