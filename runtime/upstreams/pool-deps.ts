/** What upstream pools need from the thread that uses them. */
import type { Exchange } from '../../compiler/exchange/exchange.ts';
import type { EventCounter } from '../../compiler/exchange/leases.ts';
import type { RequestBodyMemory } from '../protocols/fastcgi/buffered-request-body.ts';
import type { AvailabilityChange } from './availability.ts';
import type { TlsProvider } from './transports/tls-provision.ts';
import type { UpstreamObserver } from './upstream-observer.ts';

/** Dependencies of a thread's upstream pools. */
export interface PoolDeps {
	/** Returns the client address, taking the trusted proxies of the current settings into account. */
	clientIp(x: Exchange): string;
	/** Reports whether the client's direct peer is a trusted proxy. */
	trustsPeer(x: Exchange): boolean;
	/** Measures requests; undefined if metrics are off. */
	readonly upstreamObserver: UpstreamObserver | undefined;
	/** The process's environment, for proxy variables. */
	readonly environment: { readonly [name: string]: string | undefined };
	/** Provides the certificates and keys for TLS to upstreams, except those in files. */
	readonly provideTls?: TlsProvider;
	/** Returns the counter of requests that a pool has refused because its upstreams were overloaded; undefined without metrics. */
	readonly shedCounter?: (pool: string) => EventCounter;
	/** Called if a response was cut short after its head, with the reason. */
	readonly onCutShort?: (upstream: string, cause: string) => void;
	/** Called if requests have made an upstream unavailable for a while, or available again. */
	readonly onAvailabilityChange?: (change: AvailabilityChange) => void;
	/**
	 * The memory for request bodies of unknown length to FastCGI applications, which all pools of the thread share. Without it,
	 * each pool has its own.
	 */
	readonly requestBodyMemory?: RequestBodyMemory;
	/** Receives what FastCGI applications write to standard error, with the status of their response. */
	readonly onStderr?: (text: string, status: number) => void;
}

/** Dependencies for tests and dry runs. */
export const PLAIN_POOL_DEPS: PoolDeps = {
	clientIp: x => x.connection.remoteAddress,
	trustsPeer: () => false,
	upstreamObserver: undefined,
	environment: {},
};
