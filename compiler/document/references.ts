/** References to recursive parts of the document's schema, for steps and matchers that contain other steps or matchers. */
import type { Schema } from './schema-type.ts';

/** The schema of a list of steps. */
export const PIPELINE_SCHEMA: Schema = { $ref: '#/$defs/pipeline' };

/** The schema of a matcher: an object whose `type` names the kind of matcher. */
export const MATCHER_SCHEMA: Schema = { $ref: '#/$defs/matcher' };
