/** Checks `@id`s, which are unique names of objects in a document. */
import type { Report } from '../diagnostics/diagnostic.ts';
import { escapePointer } from '../document/json-pointer.ts';

/** Returns the JSON pointers of all objects with an `@id`, by ID. Reports duplicates. */
export function objectIds(document: unknown, report: Report): Map<string, string> {
	const pointersById = new Map<string, string>();
	collectIds(document, '', pointersById, report);
	return pointersById;
}

function collectIds(value: unknown, pointer: string, pointersById: Map<string, string>, report: Report): void {
	if (typeof value !== 'object' || value === null) return;
	if (Array.isArray(value)) {
		for (let at = 0; at < value.length; at++) collectIds(value[at], `${pointer}/${at}`, pointersById, report);
		return;
	}
	for (const [key, member] of Object.entries(value)) {
		if (key !== '@id' || typeof member !== 'string') {
			collectIds(member, `${pointer}/${escapePointer(key)}`, pointersById, report);
			continue;
		}
		const earlierPointer = pointersById.get(member);
		if (earlierPointer === undefined) pointersById.set(member, pointer);
		else {
			report({
				code: 'document/repeated-id',
				severity: 'error',
				pointer: `${pointer}/@id`,
				message: `The \`@id\` \`${member}\` is given more than once.`,
				hint: `The first is at ${earlierPointer === '' ? 'the top' : earlierPointer}.`,
			});
		}
	}
}
