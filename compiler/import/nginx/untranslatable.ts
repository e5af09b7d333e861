/** The error for a value that has no counterpart. */

/** Thrown for a value that has no counterpart. The message is the reason that the import writes beside the directive. */
export class Untranslatable extends Error {}
