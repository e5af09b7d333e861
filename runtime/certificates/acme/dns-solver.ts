/** Answers DNS-01 challenges: finds the zone, creates the record, and waits until it is visible. */
import { Resolver } from 'node:dns/promises';
import type { IssuerSettings } from '../../../compiler/document/tls-settings.ts';
import type { DnsProvider } from '../dns/dns-provider.ts';
import { createDnsProvider } from '../dns/dns-providers.ts';
import { IssueError, issuerSetting } from '../issuer.ts';
import type { IssuerDeps } from '../issuer-deps.ts';
import { waitUnlessAborted } from './acme-connection.ts';
import type { DnsSolver } from './challenge-solver.ts';

/** Default milliseconds to wait for a record to become visible. */
const DEFAULT_PROPAGATION_TIMEOUT_MS = 120_000;
/** The first wait between two checks, in milliseconds. */
const FIRST_CHECK_DELAY_MS = 500;
/** Maximum wait between two checks, in milliseconds. */
const MAX_CHECK_DELAY_MS = 4000;
/** Default TTL of a record, in seconds. */
const DEFAULT_TTL_SECONDS = 120;

/** Creates the solver for an issuer's settings, in which `{env.NAME}` has already been replaced. */
export function createDnsSolver(settings: IssuerSettings, deps: IssuerDeps): DnsSolver {
	return new RecordSolver(settings, deps);
}

class RecordSolver implements DnsSolver {
	readonly #settings: IssuerSettings;
	readonly #deps: IssuerDeps;
	#provider: Promise<DnsProvider> | undefined;

	constructor(settings: IssuerSettings, deps: IssuerDeps) {
		this.#settings = settings;
		this.#deps = deps;
	}

	async present(domain: string, value: string, signal: AbortSignal): Promise<() => Promise<void>> {
		this.#provider ??= createDnsProvider(this.#settings.dns, this.#deps);
		const provider = await this.#provider;
		const overrideName = issuerSetting<string>(this.#settings, 'dns_challenge_override_domain');
		const name = overrideName ?? `_acme-challenge.${domain}`;
		const zone = provider.zone ?? (await this.#findZone(name, provider.isZoneOptional === true));
		const ttlMs = issuerSetting<number>(this.#settings, 'dns_ttl');
		const ttlSeconds = ttlMs === undefined ? DEFAULT_TTL_SECONDS : Math.max(1, Math.round(ttlMs / 1000));
		const remove = await provider.add({ zone, name, value, ttl: ttlSeconds }, signal);
		const removeRecord = async (): Promise<void> => {
			await remove().catch(error => {
				const cause = error instanceof Error ? error.message : String(error);
				this.#deps.log('warn', 'tls.obtain', 'a challenge record could not be removed', { name, cause });
			});
		};
		try {
			await this.#awaitPropagation(name, value, zone, signal);
			return removeRecord;
		} catch (error) {
			await removeRecord();
			throw error;
		}
	}

	/** Returns the zone of a name, which is the nearest domain at or above it with an SOA record. */
	async #findZone(name: string, isOptional: boolean): Promise<string> {
		const resolver = this.#createResolver();
		const labels = name.split('.');
		let failureCode: string | undefined;
		for (let firstLabel = 0; firstLabel < labels.length; firstLabel++) {
			const candidate = labels.slice(firstLabel).join('.');
			try {
				await resolver.resolveSoa(candidate);
				return candidate;
			} catch (error) {
				const { code } = error as NodeJS.ErrnoException;
				if (code === 'ENODATA' || code === 'ENOTFOUND') continue;
				failureCode = code;
				break;
			}
		}
		if (isOptional) return '';
		throw new IssueError(
			'dns/no-zone',
			failureCode === undefined
				? `No zone was found for \`${name}\`.`
				: `The zone of \`${name}\` cannot be determined: ${failureCode}.`,
		);
	}

	async #awaitPropagation(name: string, value: string, zone: string, signal: AbortSignal): Promise<void> {
		const delayMs = issuerSetting<number>(this.#settings, 'propagation_delay') ?? 0;
		if (delayMs > 0) await waitUnlessAborted(delayMs, signal);
		const timeoutMs = issuerSetting<number>(this.#settings, 'propagation_timeout') ?? DEFAULT_PROPAGATION_TIMEOUT_MS;
		if (timeoutMs < 0) return;
		const deadline = Date.now() + timeoutMs;
		const resolvers = await this.#checkingResolvers(zone);
		for (let waitMs = FIRST_CHECK_DELAY_MS; ; waitMs = Math.min(waitMs * 1.5, MAX_CHECK_DELAY_MS)) {
			const visibilities = await Promise.all(resolvers.map(resolver => hasRecord(resolver, name, value)));
			if (visibilities.every(Boolean)) return;
			if (Date.now() + waitMs > deadline) {
				throw new IssueError(
					'dns/not-propagated',
					`The record \`${name}\` did not become visible within ${Math.round(timeoutMs / 1000)} seconds.`,
				);
			}
			await waitUnlessAborted(waitMs, signal);
		}
	}

	/**
	 * Returns the resolvers that check whether a record is visible: the configured ones, or the zone's own name servers if none
	 * are configured, because other resolvers may have cached that the record does not exist.
	 */
	async #checkingResolvers(zone: string): Promise<Resolver[]> {
		const resolver = this.#createResolver();
		if (issuerSetting(this.#settings, 'resolvers') !== undefined || zone === '') return [resolver];
		try {
			const hosts = (await resolver.resolveNs(zone)).slice(0, 8);
			const addresses = await Promise.all(hosts.map(host => resolver.resolve4(host).catch(() => [])));
			const resolvers = addresses.flatMap(([address]) => (address === undefined ? [] : [resolverOf([address])]));
			return resolvers.length > 0 ? resolvers : [resolver];
		} catch {
			return [resolver];
		}
	}

	#createResolver(): Resolver {
		return resolverOf(issuerSetting<readonly string[]>(this.#settings, 'resolvers') ?? []);
	}
}

/**
 * Returns a resolver that asks `servers`, or the system's name servers if the list is empty. Throws IssueError if a server is
 * not an IP address: resolving a server's name would already require a resolver.
 */
function resolverOf(servers: readonly string[]): Resolver {
	const resolver = new Resolver({ timeout: 3000, tries: 2 });
	if (servers.length === 0) return resolver;
	try {
		resolver.setServers(servers);
		return resolver;
	} catch {
		throw new IssueError('dns/resolver', `\`${servers.join(' ')}\` are not addresses of name servers.`, {
			isFinal: true,
		});
	}
}

async function hasRecord(resolver: Resolver, name: string, value: string): Promise<boolean> {
	try {
		return (await resolver.resolveTxt(name)).some(parts => parts.join('') === value);
	} catch {
		return false;
	}
}
