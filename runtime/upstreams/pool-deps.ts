/** What pools of a thread need of it. */
import type { Exchange } from '../../compiler/exchange/exchange.ts';
import type { TlsProvider } from './transports/tls-provision.ts';
import type { UpstreamObserver } from './upstream-observer.ts';

/** The thread as its pools see it. */
export interface PoolDeps {
	/** The client's address, behind the trusted proxies of the settings served now. */
	clientIp(x: Exchange): string;
	/** Whether what the peer says of the client is believed. */
	trustsPeer(x: Exchange): boolean;
	/** Measures calls; undefined without metrics. */
	readonly upstreamObserver: UpstreamObserver | undefined;
	/** The process's environment, for proxies that it names. */
	readonly environment: { readonly [name: string]: string | undefined };
	/** Gives what TLS to upstreams needs and no file holds. */
	readonly provideTls?: TlsProvider;
	/** Is told that a response broke off behind its head, and why. */
	readonly brokeOff?: (upstream: string, cause: string) => void;
	/** Gets what FastCGI applications write to standard error, with the status of their response. */
	readonly complained?: (text: string, status: number) => void;
}

/** A thread without settings: for tests and dry runs. */
export const PLAIN_SURROUNDINGS: PoolDeps = {
	clientIp: x => x.connection.remoteAddress,
	trustsPeer: () => false,
	upstreamObserver: undefined,
	environment: {},
};
