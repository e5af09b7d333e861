/**
 * Asks Sentinels which server is the master. All Sentinels are asked, and the answer with the highest configuration epoch is
 * used, because a Sentinel that was cut off returns an outdated answer with a lower epoch.
 */
import type { ClusterSettings } from '../../compiler/document/cluster-settings.ts';
import {
	connectRedisClient,
	joinAddress,
	plainCause,
	REPLIES_AS_BYTES,
	type RedisClient,
	replyCodeOf,
	unavailableError,
	withinLimit,
} from './redis-client.ts';
import type { MasterLocator } from './redis-connection.ts';

/** Maximum milliseconds for connecting to a Sentinel, and again for its answer. */
const SENTINEL_TIMEOUT_MS = 2000;
/** Milliseconds between two rounds of questions to the Sentinels while a connection to the master exists. */
const QUESTION_INTERVAL_MS = 2000;

interface SentinelAnswer {
	readonly address: string;
	readonly epoch: number;
}

/** Parses a Sentinel's two replies. Throws ClusterError if they do not have the form of a Sentinel's replies. */
function answerFrom(location: unknown, facts: unknown): SentinelAnswer {
	const [host, port] = Array.isArray(location) ? location.map(String) : [];
	const words = Array.isArray(facts) ? facts.map(String) : [];
	const epochIndex = words.findIndex((word, index) => index % 2 === 0 && word === 'config-epoch');
	const epoch = epochIndex === -1 ? Number.NaN : Number(words[epochIndex + 1]);
	if (!host || port === undefined || !/^\d+$/.test(port) || !Number.isFinite(epoch))
		throw unavailableError('the answer of a Sentinel is not valid');
	return { address: joinAddress(host, port), epoch };
}

/** Locates the master for all connections of one process. */
export class SentinelLocator implements MasterLocator {
	readonly #settings: ClusterSettings;
	readonly #masterName: string;
	readonly #clients = new Map<string, Promise<RedisClient>>();
	readonly #watchers = new Set<(addresses: readonly string[]) => void>();
	#timer: NodeJS.Timeout | undefined;

	constructor(settings: ClusterSettings, masterName: string) {
		this.#settings = settings;
		this.#masterName = masterName;
	}

	async locate(): Promise<readonly string[]> {
		const { address, other_addresses: others = [] } = this.#settings;
		const results = await Promise.allSettled([address, ...others].map(sentinel => this.#ask(sentinel)));
		const answers = results.flatMap(result => (result.status === 'fulfilled' ? (result.value ?? []) : []));
		if (answers.length > 0) {
			const newest = Math.max(...answers.map(({ epoch }) => epoch));
			// During a failover, some Sentinels name the new master before the epoch changes, so one epoch can have several addresses.
			return [...new Set(answers.filter(({ epoch }) => epoch === newest).map(answer => answer.address))];
		}
		if (results.some(({ status }) => status === 'fulfilled'))
			throw unavailableError(`no Sentinel knows the master \`${this.#masterName}\``);
		const [failure] = results as [PromiseRejectedResult];
		throw unavailableError(`no Sentinel answers: ${plainCause(failure.reason)}`);
	}

	watch(onLocated: (addresses: readonly string[]) => void): () => void {
		this.#watchers.add(onLocated);
		this.#timer ??= setInterval(() => void this.#tellWatchers(), QUESTION_INTERVAL_MS).unref();
		return () => {
			this.#watchers.delete(onLocated);
			if (this.#watchers.size > 0) return;
			clearInterval(this.#timer);
			this.#timer = undefined;
			for (const address of [...this.#clients.keys()]) this.#dropClient(address);
		};
	}

	async #tellWatchers(): Promise<void> {
		try {
			const addresses = await this.locate();
			for (const onLocated of [...this.#watchers]) onLocated(addresses);
		} catch {
			// Without an answer, connections to the last known master continue.
		}
	}

	/** Asks one Sentinel. Resolves to undefined if the Sentinel does not know the master. Rejects if it does not answer. */
	async #ask(sentinel: string): Promise<SentinelAnswer | undefined> {
		try {
			const client = await this.#clientFor(sentinel);
			const questions = [
				client.sendCommand(['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', this.#masterName], REPLIES_AS_BYTES),
				client.sendCommand(['SENTINEL', 'MASTER', this.#masterName], REPLIES_AS_BYTES),
			];
			const answers = withinLimit(Promise.all(questions), SENTINEL_TIMEOUT_MS, 'no answer in time');
			const [location, facts] = await answers;
			if (location === null) return undefined;
			return answerFrom(location, facts);
		} catch (error) {
			if (replyCodeOf(error) === 'ERR') return undefined;
			this.#dropClient(sentinel);
			throw error;
		}
	}

	#clientFor(sentinel: string): Promise<RedisClient> {
		const existingClient = this.#clients.get(sentinel);
		if (existingClient) return existingClient;
		const { tls, sentinel: { user, password } = {} } = this.#settings;
		const login = {
			...(tls ? { tls } : {}),
			...(user === undefined ? {} : { user }),
			...(password === undefined ? {} : { password }),
		};
		const newClient = connectRedisClient(sentinel, login, SENTINEL_TIMEOUT_MS, () => this.#dropClient(sentinel));
		this.#clients.set(sentinel, newClient);
		return newClient;
	}

	#dropClient(sentinel: string): void {
		const client = this.#clients.get(sentinel);
		this.#clients.delete(sentinel);
		client?.then(
			connected => connected.isOpen && connected.destroy(),
			() => {},
		);
	}
}
