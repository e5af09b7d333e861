/** Finds changes that take effect only after a restart, according to the `startup` marks in the schema. */

import { canonicalJson } from '../document/canonical-json.ts';
import type { Document } from '../document/document.ts';
import type { Schema } from '../document/schema-type.ts';
import { options } from '../modules/registry/options.ts';

/** A startup setting that differs between two documents. */
export interface StartupChange {
	/** Dotted name of the setting: `threads`, `admin.listen`. */
	readonly setting: string;
	readonly pointer: string;
}

/** Returns the changed settings that need a restart. An option that is `off` is treated as absent. */
export function startupChanges(runningDocument: Document, nextDocument: Document): StartupChange[] {
	const changes: StartupChange[] = [];
	for (const { id, schema, startup } of options) {
		const markedSchema = startup ? { ...schema, startup } : schema;
		compareSetting(markedSchema, [id], runningDocument.settings?.[id], nextDocument.settings?.[id], changes);
	}
	return changes;
}

function compareSetting(
	schema: Schema,
	path: readonly string[],
	before: unknown,
	after: unknown,
	changes: StartupChange[],
): void {
	if (schema.startup === true) {
		if (canonicalJson(withoutIds(before)) !== canonicalJson(withoutIds(after))) {
			changes.push({ setting: path.join('.'), pointer: `/settings/${path.join('/')}` });
		}
		return;
	}
	const properties = schema.properties as { readonly [name: string]: Schema } | undefined;
	for (const [name, property] of Object.entries(properties ?? {})) {
		compareSetting(
			property,
			[...path, name],
			valueOrDefault(before, name, property),
			valueOrDefault(after, name, property),
			changes,
		);
	}
}

/** Removes `@id`s, which have no effect at run time. */
function withoutIds(value: unknown): unknown {
	if (typeof value !== 'object' || value === null) return value ?? null;
	return JSON.parse(JSON.stringify(value, (key, member: unknown) => (key === '@id' ? undefined : member)));
}

/** Returns a property's value, or its default if the object lacks it; undefined if the object has `off: true`. */
function valueOrDefault(holder: unknown, name: string, schema: Schema): unknown {
	if (typeof holder !== 'object' || holder === null || (holder as { off?: unknown }).off === true) return undefined;
	return (holder as { [name: string]: unknown })[name] ?? schema.default;
}
