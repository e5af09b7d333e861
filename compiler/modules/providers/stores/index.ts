/** The registry of stores. */
import type { Schema } from '../../../document/schema-type.ts';
import { fileSystem } from './file-system.ts';
import { redis } from './redis.ts';
import type { StoreModule } from './store-module.ts';

/** All kinds of stores, in the order of the manual. */
export const stores: readonly StoreModule[] = [fileSystem, redis];

/** Returns the kind of store with an ID; undefined if the ID is unknown. */
export function storeById(id: string): StoreModule | undefined {
	return stores.find(store => store.id === id);
}

export const STORE_SCHEMA: Schema = {
	type: 'object',
	discriminator: { propertyName: 'store' },
	required: ['store'],
	oneOf: stores.map(({ id, summary, schema }) => ({
		type: 'object',
		description: summary,
		properties: { store: { const: id }, ...schema.properties },
		required: ['store', ...(schema.required ?? [])],
		additionalProperties: false,
	})),
};
