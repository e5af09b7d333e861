/** The interface of DNS providers, which create and remove TXT records. */

/** A record that answers a challenge. Names have no final dot. */
export interface ChallengeRecord {
	/** The DNS zone that contains the record, such as `example.com`. */
	readonly zone: string;
	/** The full name of the record. */
	readonly name: string;
	readonly value: string;
	/** The TTL in seconds. */
	readonly ttl: number;
}

export interface DnsProvider {
	/** The zone, if the settings contain it. */
	readonly zone?: string | undefined;
	/** True if the provider does not need to know the zone. */
	readonly isZoneOptional?: boolean;
	/** Adds a record without replacing others of its name. Resolves to a function that removes it. Rejects with IssueError. */
	add(record: ChallengeRecord, signal: AbortSignal): Promise<() => Promise<void>>;
}

/** Returns a record's name relative to its zone; `@` for the zone itself. */
export function relativeName({ name, zone }: Pick<ChallengeRecord, 'name' | 'zone'>): string {
	return name === zone ? '@' : name.slice(0, -zone.length - 1);
}
