/** The type of the JSON Schemas that describe documents, which are configurations in JSON. */

/** A JSON Schema object (draft 2020-12 or 7, as ajv accepts it). `secret: true` marks values that must be redacted. */
export type Schema = { readonly [keyword: string]: unknown };
