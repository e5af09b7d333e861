/** Lists of statuses and status classes: `404`, `5xx`. */

/** The part of a compile context that rejects invalid values. */
interface Refusing {
	refuse(message: string, code?: string): never;
}

/** Compiles statuses such as `404`, `4xx` or the single digit `4` to one function that tests a status. */
export function compileStatuses(statuses: readonly (string | number)[], place: Refusing): (status: number) => boolean {
	const exact = new Set<number>();
	const classes = new Set<number>();
	for (const entry of statuses) {
		const text = String(entry);
		if (/^[1-9]\d\d$/.test(text)) exact.add(Number(text));
		else if (/^[1-9](?:[xX]{2})?$/.test(text)) classes.add(Number(text[0]));
		else place.refuse(`\`${text}\` is not a status: write \`404\` or \`4xx\`.`, 'status/invalid');
	}
	return status => exact.has(status) || classes.has(Math.floor(status / 100));
}
