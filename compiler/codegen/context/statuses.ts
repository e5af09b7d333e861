/** Compiles lists of statuses and status classes, such as `404` and `5xx`. */

/** The part of a compile context that this file needs, to reject invalid values. */
interface RefusingContext {
	refuse(message: string, code?: string): never;
}

/** Compiles statuses such as `404`, `4xx` or the single digit `4` (for `4xx`) to one function that tests a status. */
export function compileStatuses(
	statuses: readonly (string | number)[],
	cx: RefusingContext,
): (status: number) => boolean {
	const exactStatuses = new Set<number>();
	const statusClasses = new Set<number>();
	for (const entry of statuses) {
		const text = String(entry);
		if (/^[1-9]\d\d$/.test(text)) exactStatuses.add(Number(text));
		else if (/^[1-9](?:[xX]{2})?$/.test(text)) statusClasses.add(Number(text[0]));
		else cx.refuse(`\`${text}\` is not a status: write \`404\` or \`4xx\`.`, 'status/invalid');
	}
	return status => exactStatuses.has(status) || statusClasses.has(Math.floor(status / 100));
}
