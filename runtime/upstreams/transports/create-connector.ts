/** Creates connectors from a pool's settings. */

import { Resolver } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { type TransportValues, UpstreamError } from '../../../compiler/exchange/leases.ts';
import type {
	ClientTlsSettings,
	ForwardProxySettings,
	HttpTransportSettings,
} from '../../../compiler/modules/directives/reverse-proxy/transports/transport-settings.ts';
import type { UpstreamAddress } from '../../../compiler/modules/directives/reverse-proxy/upstream-address.ts';
import type { UpstreamSettings } from '../../../compiler/modules/directives/reverse-proxy/upstream-pool.ts';
import { FastcgiConnection } from '../../protocols/fastcgi/fastcgi-connection.ts';
import type { ClientOptions, ConnectionKeeper } from '../../protocols/http1/client-call.ts';
import { ClientConnection } from '../../protocols/http1/client-connection.ts';
import { CachedHeads, FieldLineCache } from '../../protocols/http1/remembered-heads.ts';
import { ClientCoders } from '../../protocols/http2/client-session.ts';
import type { ClientTarget, DialAttempt, Dialer, DialOptions, DialOwner } from '../../sockets/dialer.ts';
import type { UpstreamSocket } from '../../sockets/upstream-socket.ts';
import type { ConnectorDeps, IdleLimits, UpstreamConnector } from './connector.ts';
import { forwardProxyFor, proxyCredentials, proxyTarget, tunnelThrough } from './forward-proxy.ts';
import { ForwardingConnector } from './forwarding-connector.ts';
import { Http2Connector } from './http2-connector.ts';
import { KeyedConnectors } from './keyed-connectors.ts';
import { NegotiatedConnector } from './negotiated-connector.ts';
import { encodeProxyHeader } from './proxy-header.ts';
import { SerialConnector, type SerialSettings } from './serial-connector.ts';
import { type ConnectionPrelude, SocketDialer } from './socket-dialer.ts';
import { TlsClient } from './tls-client.ts';
import { ClientTlsContext } from './tls-context.ts';

/** A dialer that waits for the certificates that the main thread provides, and then uses another dialer. */
class ProvisionedDialer implements Dialer {
	readonly #dialer: Dialer;
	readonly #tlsContext: ClientTlsContext;

	constructor(dialer: Dialer, context: ClientTlsContext) {
		this.#dialer = dialer;
		this.#tlsContext = context;
	}

	dial(owner: DialOwner): DialAttempt {
		const pendingMaterial = this.#tlsContext.pendingMaterial();
		if (!pendingMaterial) return this.#dialer.dial(owner);
		let isAbandoned = false;
		let attempt: DialAttempt | undefined;
		void pendingMaterial.then(problem => {
			if (isAbandoned) return;
			if (problem === undefined) attempt = this.#dialer.dial(owner);
			else owner.onDialFailed(new UpstreamError('connect', problem));
		});
		return {
			abandon() {
				isAbandoned = true;
				attempt?.abandon();
			},
		};
	}
}

/** Default maximum size of a response head, in bytes. */
const DEFAULT_MAX_RESPONSE_HEAD_BYTES = 10_485_760;
/** Milliseconds of silence after which TCP keep-alive probes are sent. */
const PROBE_INTERVAL_MS = 30_000;
/** Milliseconds after which the next address of a host is tried in parallel (RFC 8305 §5). */
const FALLBACK_DELAY_MS = 300;

const PLAIN_TRANSPORT: HttpTransportSettings = { type: 'http' };
/** Transport settings for direct connections, without a forward proxy. They are used for FastCGI. */
const DIRECT_TRANSPORT: HttpTransportSettings = { type: 'http', forward_proxy: 'none' };

/** Returns a pool's keep-alive limits. */
export function keepAliveOf(settings: UpstreamSettings): IdleLimits {
	// An idle connection occupies one of the application's few processes, so by default FastCGI keeps none.
	const defaultTimeout = settings.transport?.type === 'fastcgi' ? 0 : 120_000;
	return { timeoutMs: settings.keepalive ?? defaultTimeout, maxCount: settings.keepalive_idle_conns ?? 32 };
}

/**
 * Creates a connector for one address; it does not connect yet. For several addresses of one pool, use one
 * {@link ConnectorFactory}, which shares TLS contexts and buffers.
 * @throws MaterialError if a certificate file cannot be used
 */
export function createConnector(
	address: UpstreamAddress,
	settings: UpstreamSettings,
	deps: ConnectorDeps,
): UpstreamConnector {
	return new ConnectorFactory(settings, deps).create(address);
}

/** Creates the connectors of one pool. */
export class ConnectorFactory {
	readonly #transport: HttpTransportSettings;
	readonly #deps: ConnectorDeps;
	readonly #options: ClientOptions;
	readonly #serialSettings: SerialSettings;
	readonly #dialOptions: DialOptions;
	#tlsContext: ClientTlsContext | undefined = undefined;
	/** The header encoder and buffers that all HTTP/2 connections share. They are created with the first connection. */
	#http2Coders: ClientCoders | undefined = undefined;

	/** @throws MaterialError if a certificate file cannot be used */
	constructor(settings: UpstreamSettings, deps: ConnectorDeps) {
		this.#deps = deps;
		const fastcgi = settings.transport?.type === 'fastcgi' ? settings.transport : undefined;
		const transport =
			settings.transport?.type === 'http' ? settings.transport : fastcgi ? DIRECT_TRANSPORT : PLAIN_TRANSPORT;
		this.#transport = transport;
		const limits = keepAliveOf(settings);
		this.#options = {
			responseHeaderTimeout: settings.response_header_timeout ?? 0,
			readTimeout: settings.transport?.read_timeout ?? 0,
			writeTimeout: settings.transport?.write_timeout ?? 0,
			continueTimeout: transport.expect_continue_timeout ?? 1000,
			maxResponseHead: settings.max_response_header ?? DEFAULT_MAX_RESPONSE_HEAD_BYTES,
			keepAlive: limits.timeoutMs > 0 && limits.maxCount > 0,
			pieceMemory: deps.pieceMemory,
			openRelay: deps.openRelay,
			lineCache: new FieldLineCache(),
			headCache: new CachedHeads(),
		};
		const maxIdleConnections = transport.keepalive_idle_conns_total;
		const onIdle = (): boolean => {
			deps.onIdle();
			return maxIdleConnections === undefined || (deps.idleConnections ?? 0) <= maxIdleConnections;
		};
		const maxPerHost = transport.max_conns_per_host ?? 0;
		const maxConnections = maxPerHost === 0 ? 0 : Math.max(1, Math.floor(maxPerHost / deps.threadCount));
		const options = this.#options;
		const onStderr = fastcgi?.capture_stderr ? deps.onStderr : undefined;
		const cgiOptions = { ...options, requestBodyMemory: deps.requestBodyMemory, onStderr };
		const createConnection = fastcgi
			? (socket: UpstreamSocket, keeper: ConnectionKeeper) => new FastcgiConnection(socket, cgiOptions, keeper)
			: (socket: UpstreamSocket, keeper: ConnectionKeeper) => new ClientConnection(socket, options, keeper);
		this.#serialSettings = { createConnection, limits, maxConnections, onIdle };
		const connectTimeout = settings.connect_timeout ?? 3000;
		this.#dialOptions = {
			connectTimeout,
			readBuffer: deps.readBuffer,
			probeInterval: transport.keepalive_interval ?? PROBE_INTERVAL_MS,
			localAddress: transport.local_address,
			lookup: transport.resolvers && createResolverLookup(transport.resolvers, connectTimeout),
			fallbackDelay: transport.dial_fallback_delay ?? FALLBACK_DELAY_MS,
		};
		if (transport.tls) this.#tlsContext = new ClientTlsContext(transport.tls, deps.provideTls);
	}

	/**
	 * Reports whether existing connections were verified with certificates that have since been replaced. Reports each replacement
	 * once.
	 */
	takeReplaced(): boolean {
		return this.#tlsContext?.takeReplaced() ?? false;
	}

	create(address: UpstreamAddress): UpstreamConnector {
		const { proxy_protocol: proxyProtocol, tls } = this.#transport;
		const isKeyed = proxyProtocol !== undefined || tls?.server_name?.includes('{');
		return isKeyed
			? new KeyedConnectors(values => this.#createConnector(address, values))
			: this.#createConnector(address, undefined);
	}

	#createConnector(address: UpstreamAddress, values: TransportValues | undefined): UpstreamConnector {
		const target: ClientTarget =
			address.path === undefined ? { host: address.host, port: address.port } : { path: address.path };
		const tls = this.#tlsSettingsFor(address);
		const prelude = this.#createPrelude(address, values);
		const proxy = 'path' in target ? undefined : forwardProxyFor(this.#transport, target, this.#environment());
		const { versions } = this.#transport;
		const h2c = !tls && (versions?.includes('h2c') || address.scheme === 'h2c');
		// An HTTP proxy forwards plain HTTP requests, and tunnels everything else.
		const isForwarded = proxy?.url.startsWith('http') && !tls && !h2c && !prelude.header;
		const createDialer = (protocols: readonly string[]): Dialer => {
			const fullPrelude: ConnectionPrelude = {
				...prelude,
				...(proxy?.url.startsWith('https:') && { outerTls: this.#tlsToProxy(proxy) }),
				...(proxy && !isForwarded && { tunnel: tunnelThrough(proxy, target as { host: string; port: number }) }),
				...(tls && { tls: this.#createTlsClient(tls, address, values, protocols) }),
			};
			const socketDialer = new SocketDialer(proxy ? proxyTarget(proxy) : target, this.#dialOptions, fullPrelude, !h2c);
			return tls && this.#tlsContext?.needsProvision
				? new ProvisionedDialer(socketDialer, this.#tlsContext)
				: socketDialer;
		};
		const scheme = tls ? 'https' : 'http';
		const { limits, onIdle, maxConnections } = this.#serialSettings;
		const http2Settings = {
			options: this.#options,
			coders: this.#coders,
			limits,
			onIdle,
			maxConnections,
			scheme,
		} as const;
		if (h2c) return new Http2Connector(createDialer([]), http2Settings);
		if (!tls) {
			const connector = new SerialConnector(createDialer([]), this.#serialSettings);
			return isForwarded
				? new ForwardingConnector(connector, `http://${address.address}`, proxyCredentials(proxy!))
				: connector;
		}
		const speaksHttp1 = versions === undefined || versions.includes('1.1');
		const speaksHttp2 = versions === undefined || versions.includes('2');
		if (!speaksHttp2) return new SerialConnector(createDialer(['http/1.1']), this.#serialSettings);
		if (!speaksHttp1) return new Http2Connector(createDialer(['h2']), http2Settings);
		const http1Connector = new SerialConnector(createDialer(['http/1.1']), this.#serialSettings);
		return new NegotiatedConnector(
			createDialer(['h2', 'http/1.1']),
			http1Connector,
			new Http2Connector(undefined, http2Settings),
		);
	}

	readonly #coders = (): ClientCoders => {
		this.#http2Coders ??= new ClientCoders();
		return this.#http2Coders;
	};

	#environment(): { readonly [name: string]: string | undefined } {
		return this.#deps.environment ?? process.env;
	}

	#tlsToProxy(proxy: ForwardProxySettings): TlsClient {
		const { host } = proxyTarget(proxy);
		return new TlsClient({}, new ClientTlsContext({}), host, ['http/1.1']);
	}

	#createPrelude(_address: UpstreamAddress, values: TransportValues | undefined): ConnectionPrelude {
		const version = this.#transport.proxy_protocol;
		return version ? { header: encodeProxyHeader(version, values?.client) } : {};
	}

	/** Returns the TLS settings, unless this address is reached without TLS. */
	#tlsSettingsFor(address: UpstreamAddress): ClientTlsSettings | undefined {
		const { tls } = this.#transport;
		if (!tls) return address.scheme === 'https' ? {} : undefined;
		return tls.except_ports?.includes(address.port) ? undefined : tls;
	}

	#createTlsClient(
		settings: ClientTlsSettings,
		address: UpstreamAddress,
		values: TransportValues | undefined,
		protocols: readonly string[],
	): TlsClient {
		this.#tlsContext ??= new ClientTlsContext(settings, this.#deps.provideTls);
		const host = address.path === undefined ? address.host : 'localhost';
		const name = values?.serverName || (settings.server_name?.includes('{') ? undefined : settings.server_name) || host;
		return new TlsClient(settings, this.#tlsContext, isIP(name) === 0 ? name.replace(/\.$/, '') : name, protocols);
	}
}

/** Returns a `lookup` for `net.connect` that queries these servers (`host:port`) for IPv4 and IPv6 addresses. */
function createResolverLookup(servers: readonly string[], timeoutMs: number): LookupFunction {
	const resolver = new Resolver({ timeout: timeoutMs > 0 ? Math.min(timeoutMs, 5000) : 5000, tries: 2 });
	resolver.setServers([...servers]);
	return (host, options, callback) => {
		const knownFamily = isIP(host);
		if (knownFamily !== 0) {
			if (options.all) callback(null, [{ address: host, family: knownFamily }]);
			else callback(null, host, knownFamily);
			return;
		}
		const addresses: { address: string; family: number }[] = [];
		let pendingQueryCount = 2;
		let firstError: NodeJS.ErrnoException | null = null;
		const onAnswer = (family: 4 | 6) => (error: NodeJS.ErrnoException | null, foundAddresses: readonly string[]) => {
			if (error) firstError ??= error;
			else for (const address of foundAddresses) addresses.push({ address, family });
			if (--pendingQueryCount > 0) return;
			const matchingAddresses = addresses.filter(one => !options.family || one.family === familyOf(options.family));
			const [firstAddress] = matchingAddresses;
			if (!firstAddress) callback(firstError ?? new Error(`no address for ${host}`), '', 4);
			else if (options.all) callback(null, matchingAddresses);
			else callback(null, firstAddress.address, firstAddress.family);
		};
		resolver.resolve6(host, onAnswer(6));
		resolver.resolve4(host, onAnswer(4));
	};
}

function familyOf(family: number | 'IPv4' | 'IPv6'): number {
	return family === 'IPv4' ? 4 : family === 'IPv6' ? 6 : family;
}
