/** Finds placeholders whose values a client chooses freely. */

/** Matches placeholders that a client can set to anything. */
const CLIENT_CHOSEN = /^http\.request\.(?:header\.|cookie\.|uri|orig_uri|body|method)/;

/** Reports whether a client can set a placeholder, given by its full name, to anything. */
export function isClientChosen(name: string): boolean {
	return CLIENT_CHOSEN.test(name);
}

/** Returns the names of the placeholders in a text. */
export function placeholdersOf(text: string): string[] {
	return [...text.matchAll(/\{([^{}]+)\}/g)].map(([, name]) => name!);
}

/** Returns the names of the placeholders in a text that a client can set to anything. */
export function clientChosenPlaceholders(text: string): string[] {
	return placeholdersOf(text).filter(isClientChosen);
}
