/** Makes the links to upstreams that a pool's settings ask for. */
import { isIP } from 'node:net';
import type {
	ClientTlsSettings,
	HttpTransportSettings,
} from '../../../compiler/directives/reverse-proxy/transports/transport-settings.ts';
import type { UpstreamAddress } from '../../../compiler/directives/reverse-proxy/upstream-address.ts';
import type { TransportValues, UpstreamSettings } from '../../../compiler/exchange/leases.ts';
import type { ClientOptions } from '../../protocols/http1/client-call.ts';
import type { ClientTarget } from './dialer.ts';
import { forwardProxyFor, proxyTarget, tunnelThrough } from './forward-proxy.ts';
import { Http1Link, type Http1Settings } from './http1-link.ts';
import { Http2Link } from './http2-link.ts';
import { KeyedLinks } from './keyed-links.ts';
import type { IdleLimits, LinkSurroundings, UpstreamLink } from './link.ts';
import { NegotiatedLink } from './negotiated-link.ts';
import { proxyHeader } from './proxy-header.ts';
import { resolverLookup } from './resolver-lookup.ts';
import { type Prelude, SocketDialer, type SocketOptions } from './socket-dialer.ts';
import { TlsClient } from './tls-client.ts';
import { ClientTlsContext } from './tls-context.ts';

/** Bytes of a response's head when nothing is said. */
const MAX_RESPONSE_HEAD = 10_485_760;
/** Milliseconds of silence after which TCP probes a connection. */
const PROBE_INTERVAL = 30_000;
/** Milliseconds after which the next address of a host is tried too (RFC 8305 §5). */
const FALLBACK_DELAY = 300;

const PLAIN: HttpTransportSettings = { type: 'http' };

/** How idle connections of a pool are kept. */
export function keepAliveOf(settings: UpstreamSettings): IdleLimits {
	return { timeout: settings.keepalive ?? 120_000, count: settings.keepalive_idle_conns ?? 32 };
}

/**
 * A link to one address; opens nothing yet. For several addresses of one pool a {@link LinkMaker} shares more.
 * @throws MaterialError when a certificate's file cannot be used
 */
export function createLink(
	address: UpstreamAddress,
	settings: UpstreamSettings,
	surroundings: LinkSurroundings,
): UpstreamLink {
	return new LinkMaker(settings, surroundings).link(address);
}

/** Makes links of one pool. */
export class LinkMaker {
	readonly #transport: HttpTransportSettings;
	readonly #surroundings: LinkSurroundings;
	readonly #options: ClientOptions;
	readonly #http1: Http1Settings;
	readonly #sockets: SocketOptions;
	#context: ClientTlsContext | undefined = undefined;

	/** @throws MaterialError when a certificate's file cannot be used */
	constructor(settings: UpstreamSettings, surroundings: LinkSurroundings) {
		this.#surroundings = surroundings;
		const transport = settings.transport?.type === 'http' ? settings.transport : PLAIN;
		this.#transport = transport;
		const limits = keepAliveOf(settings);
		this.#options = {
			responseHeaderTimeout: settings.response_header_timeout ?? 0,
			readTimeout: transport.read_timeout ?? 0,
			writeTimeout: transport.write_timeout ?? 0,
			continueTimeout: transport.expect_continue_timeout ?? 1000,
			maxResponseHead: settings.max_response_header ?? MAX_RESPONSE_HEAD,
			keepAlive: limits.timeout > 0 && limits.count > 0,
			pieces: surroundings.pieces,
		};
		const total = transport.keepalive_idle_conns_total;
		const idled = (): boolean => {
			surroundings.idled();
			return total === undefined || (surroundings.idleConnections ?? 0) <= total;
		};
		const most = transport.max_conns_per_host ?? 0;
		const maxConnections = most === 0 ? 0 : Math.max(1, Math.floor(most / surroundings.threads));
		this.#http1 = { options: this.#options, limits, maxConnections, idled };
		const connectTimeout = settings.connect_timeout ?? 3000;
		this.#sockets = {
			connectTimeout,
			readBuffer: surroundings.readBuffer,
			probeInterval: transport.keepalive_interval ?? PROBE_INTERVAL,
			localAddress: transport.local_address,
			lookup: transport.resolvers && resolverLookup(transport.resolvers, connectTimeout),
			fallbackDelay: transport.dial_fallback_delay ?? FALLBACK_DELAY,
		};
		if (transport.tls) this.#context = new ClientTlsContext(transport.tls);
	}

	/** The link to one address. */
	link(address: UpstreamAddress): UpstreamLink {
		const { proxy_protocol: proxyProtocol, tls } = this.#transport;
		const keyed = proxyProtocol !== undefined || tls?.server_name?.includes('{');
		return keyed ? new KeyedLinks(values => this.#link(address, values)) : this.#link(address, undefined);
	}

	#link(address: UpstreamAddress, values: TransportValues | undefined): UpstreamLink {
		const target: ClientTarget =
			address.path === undefined ? { host: address.host, port: address.port } : { path: address.path };
		const tls = this.#tlsTo(address);
		const prelude = this.#prelude(address, values);
		const dialer = (protocols: readonly string[]): SocketDialer => {
			const proxy =
				'path' in target
					? undefined
					: forwardProxyFor(this.#transport, target, this.#surroundings.environment ?? process.env);
			const whole: Prelude = {
				...prelude,
				...(proxy && { tunnel: tunnelThrough(proxy, target as { host: string; port: number }) }),
				...(tls && { tls: this.#tls(tls, address, values, protocols) }),
			};
			return new SocketDialer(proxy ? proxyTarget(proxy) : target, this.#sockets, whole);
		};
		const { versions } = this.#transport;
		const scheme = tls ? 'https' : 'http';
		const http2 = { ...this.#http1, scheme } as const;
		if (!tls) {
			const h2c = versions?.includes('h2c') || address.scheme === 'h2c';
			return h2c ? new Http2Link(dialer([]), http2) : new Http1Link(dialer([]), this.#http1);
		}
		const one = versions === undefined || versions.includes('1.1');
		const two = versions === undefined || versions.includes('2');
		if (!two) return new Http1Link(dialer(['http/1.1']), this.#http1);
		if (!one) return new Http2Link(dialer(['h2']), http2);
		const plain = new Http1Link(dialer(['http/1.1']), this.#http1);
		return new NegotiatedLink(dialer(['h2', 'http/1.1']), plain, new Http2Link(undefined, http2));
	}

	#prelude(_address: UpstreamAddress, values: TransportValues | undefined): Prelude {
		const version = this.#transport.proxy_protocol;
		return version ? { header: proxyHeader(version, values?.client) } : {};
	}

	/** TLS settings, unless this address is spoken to without. */
	#tlsTo(address: UpstreamAddress): ClientTlsSettings | undefined {
		const { tls } = this.#transport;
		if (!tls) return address.scheme === 'https' ? {} : undefined;
		return tls.except_ports?.includes(address.port) ? undefined : tls;
	}

	#tls(
		settings: ClientTlsSettings,
		address: UpstreamAddress,
		values: TransportValues | undefined,
		protocols: readonly string[],
	): TlsClient {
		this.#context ??= new ClientTlsContext(settings);
		const host = address.path === undefined ? address.host : 'localhost';
		const name = values?.serverName || (settings.server_name?.includes('{') ? undefined : settings.server_name) || host;
		return new TlsClient(settings, this.#context, isIP(name) === 0 ? name.replace(/\.$/, '') : name, protocols);
	}
}
