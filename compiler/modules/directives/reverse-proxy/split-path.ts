/** Splits a path into the script and what follows it. */

/**
 * Returns the position after the first extension that ends a segment; the length of the path if there is none. For example,
 * `/a.phpx/b.php` does not contain a script `/a.php`. Only ASCII letters are compared case-insensitively: changing the case of
 * others may change their length.
 */
export function splitPosition(path: string, splits: readonly string[]): number {
	const subject = lowered(path);
	for (const split of splits) {
		const wanted = lowered(split);
		for (let at = subject.indexOf(wanted); at !== -1; at = subject.indexOf(wanted, at + 1)) {
			const end = at + wanted.length;
			if (end === path.length || path[end] === '/') return end;
		}
	}
	return path.length;
}

function lowered(text: string): string {
	return text.replace(/[A-Z]+/g, letters => letters.toLowerCase());
}
