/**
 * Names that the languages define but that this build does not implement. They are rejected as unavailable rather than as
 * misspelled.
 */

/** Global options that this build does not implement. */
export const UNAVAILABLE_GLOBAL_OPTIONS: ReadonlySet<string> = new Set(['events', 'filesystem', 'ech']);

/** Options of `servers` that this build does not implement. */
export const UNAVAILABLE_SERVER_OPTIONS: ReadonlySet<string> = new Set(['packet_conn_wrappers']);

/** Returns the message for a name that this build does not implement. */
export function unavailableMessage(word: string): string {
	return `\`${word}\` is not supported by this build yet.`;
}

/** Returns the hint for a name that this build does not implement: the reason, or an alternative. Undefined if there is none. */
export function unavailableHint(word: string): string | undefined {
	if (word !== 'ech') return undefined;
	return `Node's TLS cannot decrypt an encrypted ClientHello: leave the option out. Host names stay readable on the network.`;
}
