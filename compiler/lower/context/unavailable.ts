/**
 * Names that the languages define but this build does not implement. Such names are rejected as unavailable, not as misspellings.
 */

/** Global options that this build does not implement. */
export const UNAVAILABLE_GLOBAL_OPTIONS: ReadonlySet<string> = new Set(['events', 'filesystem', 'ech']);

/** Options of `servers` that this build does not implement. */
export const UNAVAILABLE_SERVER_OPTIONS: ReadonlySet<string> = new Set(['packet_conn_wrappers']);

/** Returns the message for a name that is not implemented. */
export function unavailableMessage(word: string): string {
	return `\`${word}\` is not supported by this build yet.`;
}

/**
 * Returns the reason why a name is not implemented, or an alternative to it; undefined if there is nothing to add to the message.
 */
export function unavailableHint(word: string): string | undefined {
	if (word !== 'ech') return undefined;
	return `Node's TLS cannot decrypt an encrypted ClientHello: leave the option out. Host names stay readable on the network.`;
}
