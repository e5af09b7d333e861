/** Words that the languages define but this build does not implement: rejected by name rather than taken for misspellings. */

/** Global options without a module in this build. */
export const UNAVAILABLE_OPTIONS: ReadonlySet<string> = new Set(['events', 'filesystem', 'ech']);

/** Options of `servers` without a module in this build. */
export const UNAVAILABLE_SERVER_OPTIONS: ReadonlySet<string> = new Set(['packet_conn_wrappers']);

/** Returns the message for all of them. */
export function unavailableMessage(word: string): string {
	return `\`${word}\` is not supported by this build yet.`;
}

/** Returns the reason, or what to do instead; undefined if there is nothing to add. */
export function unavailableHint(word: string): string | undefined {
	if (word !== 'ech') return undefined;
	return `Node's TLS cannot decrypt an encrypted ClientHello: leave the option out. Host names stay readable on the network.`;
}
