/** Words that the languages know and this build cannot run: refused by name, never mistaken for a misspelling. */

/** Global options of the languages that have no module in this build. */
export const UNAVAILABLE_OPTIONS: ReadonlySet<string> = new Set(['events', 'filesystem', 'ech']);

/** Global options inside `servers` that have no module in this build. */
export const UNAVAILABLE_SERVER_OPTIONS: ReadonlySet<string> = new Set(['packet_conn_wrappers']);

/** The one sentence for all of them. */
export function unavailableMessage(word: string): string {
	return `\`${word}\` is not part of this build yet.`;
}

/** Why, or what to do instead; undefined where there is nothing to say. */
export function unavailableHint(word: string): string | undefined {
	if (word !== 'ech') return undefined;
	return 'The TLS of Node cannot decrypt a ClientHello: leave the option out. Names of sites stay readable on the wire.';
}
