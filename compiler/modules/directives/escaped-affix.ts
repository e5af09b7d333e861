/** Strips a prefix or suffix from an escaped path. */

/**
 * Returns the escaped path without a prefix; undefined if the path does not begin with the prefix. Ignores case. A plain character
 * in the prefix also matches its escape in the path, but a `%XX` in the prefix matches only the same escape.
 */
export function stripPathPrefix(escapedPath: string, prefix: string): string | undefined {
	let pathPosition = 0;
	const prefixChars = Buffer.from(prefix, 'utf8').toString('latin1');
	for (let i = 0; i < prefixChars.length; i++) {
		const prefixChar = prefixChars[i]!;
		let pathChar = escapedPath[pathPosition++];
		if (pathChar === '%' && prefixChar !== '%') {
			const byteValue = Number.parseInt(escapedPath.slice(pathPosition, pathPosition + 2), 16);
			if (Number.isNaN(byteValue)) return undefined;
			pathChar = String.fromCharCode(byteValue);
			pathPosition += 2;
		}
		if (pathChar === undefined || pathChar.toLowerCase() !== prefixChar.toLowerCase()) return undefined;
	}
	return escapedPath.slice(pathPosition);
}

/**
 * Returns the escaped path without a suffix; undefined if the path does not end with the suffix. Compares as `stripPathPrefix`
 * does.
 */
export function stripPathSuffix(escapedPath: string, suffix: string): string | undefined {
	const suffixChars = Buffer.from(suffix, 'utf8').toString('latin1');
	let pathEnd = escapedPath.length;
	for (let i = suffixChars.length - 1; i >= 0; i--) {
		// `%XX` in the suffix is compared as three characters.
		const isEscapeInSuffix = i >= 2 && /^%[0-9a-fA-F]{2}$/.test(suffixChars.slice(i - 2, i + 1));
		if (isEscapeInSuffix) {
			if (
				escapedPath.slice(Math.max(0, pathEnd - 3), pathEnd).toLowerCase() !==
				suffixChars.slice(i - 2, i + 1).toLowerCase()
			)
				return undefined;
			pathEnd -= 3;
			i -= 2;
			continue;
		}
		const isEscapeInPath = pathEnd >= 3 && /^%[0-9a-fA-F]{2}$/.test(escapedPath.slice(pathEnd - 3, pathEnd));
		const pathChar = isEscapeInPath
			? String.fromCharCode(Number.parseInt(escapedPath.slice(pathEnd - 2, pathEnd), 16))
			: escapedPath[pathEnd - 1];
		if (pathChar === undefined || pathChar.toLowerCase() !== suffixChars[i]!.toLowerCase()) return undefined;
		pathEnd -= isEscapeInPath ? 3 : 1;
	}
	return escapedPath.slice(0, pathEnd);
}
