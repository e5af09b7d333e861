/** What a DNS provider does: sets a TXT record and removes it again. */

/** A record that answers a challenge. Names have no final dot. */
export interface ChallengeRecord {
	/** The zone that the record is in. */
	readonly zone: string;
	/** Its whole name. */
	readonly name: string;
	readonly value: string;
	/** Seconds that resolvers may keep it. */
	readonly ttl: number;
}

export interface DnsProvider {
	/** The zone, where the settings name it. */
	readonly zone?: string | undefined;
	/** Whether it can do without knowing the zone. */
	readonly zoneOptional?: boolean;
	/** Sets a record beside others of the same name; gives what removes it. Rejects with IssueError. */
	add(record: ChallengeRecord, signal: AbortSignal): Promise<() => Promise<void>>;
}

/** The name of a record below its zone; `@` for the zone itself. */
export function relativeName({ name, zone }: Pick<ChallengeRecord, 'name' | 'zone'>): string {
	return name === zone ? '@' : name.slice(0, -zone.length - 1);
}
