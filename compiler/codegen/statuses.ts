/** Lists of statuses and status classes: `404`, `5xx`. */

/** Contexts that can reject their contents. */
interface Refusing {
	refuse(message: string, code?: string): never;
}

/** Compiles `404`, `4xx` and the single digit `4` to one test of a status. */
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
