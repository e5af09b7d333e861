/** Words that both languages know and this build cannot run yet: refused by name, never mistaken for a misspelling. */

/** Directives of the languages that have no module in this build. */
export const UNAVAILABLE_DIRECTIVES: ReadonlySet<string> = new Set([...['rate_limit']]);

/** Request matchers of the languages that have no module in this build. */
export const UNAVAILABLE_MATCHERS: ReadonlySet<string> = new Set([]);

/** Global options of the languages that have no module in this build. */
export const UNAVAILABLE_OPTIONS: ReadonlySet<string> = new Set([...['events', 'filesystem'], ...['ech']]);

/** Global options inside `servers` that have no module in this build. */
export const UNAVAILABLE_SERVER_OPTIONS: ReadonlySet<string> = new Set(['packet_conn_wrappers']);

/** The one sentence for all of them. */
export function unavailableMessage(word: string): string {
	return `\`${word}\` is not part of this build yet.`;
}
