/** The error for something that cannot be translated. */

/**
 * Thrown for a value or directive that has no counterpart in a Configfile. The message is the reason that is written next to the
 * directive.
 */
export class Untranslatable extends Error {}
