/** References to the parts of the document's schema that nest: for modules whose steps or matchers hold others. */
import type { Schema } from '../modules/directives/directive.ts';

/** An array of steps. */
export const PIPELINE: Schema = { $ref: '#/$defs/pipeline' };

/** A tagged matcher. */
export const MATCHER: Schema = { $ref: '#/$defs/matcher' };
