/** Where a path is split into the script and what follows it. */

/**
 * Behind the first of the extensions that stands at the end of a segment, so that `/a.phpx/b.php` is no script `/a.php`; the
 * whole length when there is none. Only letters of ASCII are alike in both cases: others may change their length.
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
