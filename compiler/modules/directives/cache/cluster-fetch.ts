/** Fetching a response in a cluster: another machine may have stored the response, or may be fetching it. */
import type { Exchange } from '../../../exchange/exchange.ts';
import type {
	CachedResponse,
	ClusterAnswer,
	ClusterIntent,
	ClusterTier,
	FetchTicket,
} from '../../../exchange/response-cache.ts';
import { cacheKeyHost } from './cache-key.ts';

/**
 * Variable that says from where a stored response was loaded: `disk` or `cluster`. It is not set if the response was in memory.
 */
export const CACHE_TIER_VARIABLE = 'http.cache.tier';

/** A fetch that is unnecessary if another machine of the cluster has stored the response. */
export interface ClusterFetch {
	readonly key: string;
	readonly intent: ClusterIntent;
	readonly ticket: FetchTicket | undefined;
	/** True if the response is not fetched while another machine is fetching it. */
	readonly skipsIfBusy: boolean;
	/**
	 * Called after responses were loaded from the cluster. Returns 'answered' if no fetch is needed, otherwise the stored response to
	 * validate, if there is one.
	 */
	answerIfLoaded(): 'answered' | CachedResponse | undefined;
	/** Fetches the response. `storedResponse` is the last result of {@link answerIfLoaded}. */
	fetch(ticket: FetchTicket | undefined, storedResponse: CachedResponse | undefined): void | Promise<void>;
}

/** Answers with a response from another machine, or fetches it. */
export async function fetchInCluster(
	tier: ClusterTier,
	x: Exchange,
	{ key, intent, ticket, skipsIfBusy, answerIfLoaded, fetch }: ClusterFetch,
): Promise<void> {
	const url = { host: cacheKeyHost(x.request), path: x.received.path, query: x.received.query };
	let storedResponse: CachedResponse | undefined;
	let answer: ClusterAnswer;
	for (let knownVersions: readonly string[] = []; ; knownVersions = answer.versions) {
		answer = await tier.consult(key, url, intent, knownVersions);
		if (answer.outcome !== 'loaded' || x.isGone) break;
		const result = answerOrEndFetch(answerIfLoaded, ticket);
		if (result === 'answered') {
			ticket?.done('stored');
			return;
		}
		storedResponse = result;
	}
	const ownTicket = answer.outcome === 'lead' ? tier.ticketWithLease(ticket, answer.leaseId) : ticket;
	if (x.isGone || (answer.outcome === 'busy' && skipsIfBusy)) {
		ownTicket?.done('failed');
		return;
	}
	if (answer.outcome === 'private') ticket?.done('private');
	await fetch(ownTicket, storedResponse);
}

function answerOrEndFetch(
	answerIfLoaded: ClusterFetch['answerIfLoaded'],
	ticket: FetchTicket | undefined,
): ReturnType<ClusterFetch['answerIfLoaded']> {
	try {
		return answerIfLoaded();
	} catch (error) {
		ticket?.done('failed');
		throw error;
	}
}

/** Records, for placeholders and the access log, that a stored response was loaded from disk or from the cluster. */
export function recordTier(x: Exchange, tier: 'disk' | 'cluster'): void {
	x.variables.set(CACHE_TIER_VARIABLE, tier);
	x.log ??= {};
	x.log.fields ??= {};
	x.log.fields.cache_tier = tier;
}
