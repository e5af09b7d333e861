/** References to the recursive parts of the document's schema, for modules whose steps or matchers contain others. */
import type { Schema } from './schema-type.ts';

/** An array of steps. */
export const PIPELINE_SCHEMA: Schema = { $ref: '#/$defs/pipeline' };

/** A tagged matcher. */
export const MATCHER_SCHEMA: Schema = { $ref: '#/$defs/matcher' };
