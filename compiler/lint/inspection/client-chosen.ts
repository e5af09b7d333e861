/** Finds placeholders whose values a client chooses freely. */

/** Matches the full names of placeholders to which a client can give any value. */
const CLIENT_CHOSEN_NAME = /^http\.request\.(?:header\.|cookie\.|uri|orig_uri|body|method)/;

/** Reports whether a client can give a placeholder any value. `name` is the placeholder's full name. */
export function isClientChosen(name: string): boolean {
	return CLIENT_CHOSEN_NAME.test(name);
}

/** Returns the names of the placeholders in a text. */
export function placeholdersOf(text: string): string[] {
	return [...text.matchAll(/\{([^{}]+)\}/g)].map(([, name]) => name!);
}

/** Returns the names of the placeholders in a text to which a client can give any value. */
export function clientChosenPlaceholders(text: string): string[] {
	return placeholdersOf(text).filter(isClientChosen);
}
