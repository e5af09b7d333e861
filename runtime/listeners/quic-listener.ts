/** HTTP/3 of one listener on one thread: a UDP socket beside the TCP one, at the same address and port. */
import { X509Certificate } from 'node:crypto';
import type { QuicSettings } from '../../compiler/document/server-settings.ts';
import type { TlsInfo } from '../../compiler/exchange/exchange.ts';
import type { LogEntry } from '../logs/log-entry.ts';
import type { QuicCounters } from '../metrics/http3-counters.ts';
import { PresentedCertificate } from '../protocols/client-certificate.ts';
import { H3_ERROR } from '../protocols/http3/http3-codes.ts';
import { createHttp3Server, type Http3Server } from '../protocols/http3/http3-server.ts';
import { type ClosableConnection, NO_WAIT, type ProtocolHost } from '../protocols/protocol.ts';
import type { BequeathedDatagrams, InheritedDatagrams } from '../sockets/bequeathed-sockets.ts';
import type { InternalError } from '../sockets/quic/internal-error.ts';
import type { QuicConnection } from '../sockets/quic/quic-connection.ts';
import { QuicEndpoint, type QuicEndpointOwner } from '../sockets/quic/quic-endpoint.ts';
import { quicSupport } from '../sockets/quic/quic-library.ts';
import type { QuicLimits } from '../sockets/quic/quic-limits.ts';
import type { HandshakeResult, QuicRefusal } from '../sockets/quic/quic-results.ts';
import { joinQuicPeers, quicThread, waitForPoller } from '../sockets/quic/quic-thread.ts';
import type { QuicCertificateChoice, QuicHello } from '../sockets/quic/quic-tls.ts';
import type { HandshakeAlert } from '../sockets/quic/server-handshake.ts';
import { PEER_CHANNEL_SLOTS, PEER_ROW_SLOTS } from '../sockets/quic/thread-peers.ts';
import type { UdpAddress } from '../sockets/quic/udp-socket.ts';
import { clientKey } from '../threads/client-counts.ts';
import type { ConnectionTerms } from '../tls/connection-terms.ts';
import type { HandshakeRate } from '../tls/handshake-rate.ts';
import { DEFAULT_HANDSHAKE_TIMEOUT_MS } from '../tls/handshake-settings.ts';
import { QuicCertificates, type QuicCertificatesDeps } from '../tls/quic-certificates.ts';
import type { TableCertificate } from '../tls/table-certificate.ts';
import type { ThreadTlsListener } from '../tls/thread-tls.ts';
import { checkQuicPort } from './protocol-check.ts';

/** Seconds for which clients remember that a site offers HTTP/3. */
const ADVERTISED_SECONDS = 2_592_000;

const NO_SETTINGS: QuicSettings = {};

/** The refusals that are logged, because they mean that a limit was reached. */
const LOGGED_REFUSALS: ReadonlySet<QuicRefusal> = new Set<QuicRefusal>([
	...(['too_many_handshakes', 'evicted', 'too_many_connections', 'client_limit', 'client_rate', 'retry'] as const),
	...(['no_memory'] as const),
]);
/** Minimum milliseconds between two log entries about refusals, and between two about internal errors of OpenSSL. */
const LOG_INTERVAL_MS = 60_000;

/** Names of reasons, as in metrics and logs, by the TLS alert that we sent (RFC 8446 §6). */
const REASONS_BY_ALERT: { readonly [alert: number]: string } = {
	40: 'no_shared_cipher',
	42: 'client_certificate_untrusted',
	45: 'client_certificate_expired',
	46: 'client_certificate_untrusted',
	48: 'client_certificate_untrusted',
	70: 'version',
	116: 'client_certificate_missing',
	120: 'no_application_protocol',
};

export interface QuicListenerDeps extends QuicCertificatesDeps {
	readonly host: ProtocolHost;
	readonly counters: QuicCounters;
	/** Records which policy of client authentication applied when each connection of the listener began. */
	readonly connectionTerms: ConnectionTerms;
	/**
	 * Admits a connection of a client. Returns a function to call when the connection ends, or undefined if the connection is
	 * rejected.
	 */
	admit(address: string): (() => void) | undefined;
	/** Counts a completed handshake. */
	onHandshakeCompleted(version: string, resumed: boolean): void;
	log(entry: LogEntry): void;
	/** Called when a connection, or an attempt to establish one, has ended. */
	onConnectionEnded(): void;
}

/** Creates the HTTP/3 side of a listener (see the constructor of {@link QuicListener}). */
export function createQuicListener(...args: ConstructorParameters<typeof QuicListener>): QuicListener {
	return new QuicListener(...args);
}

/** Resolves when HTTP/3 listeners can be created. */
export function waitForQuic(): Promise<void> {
	return waitForPoller();
}

/**
 * Lets this thread receive datagrams of its connections that the kernel gives to other threads, and pass on those of other threads.
 * {@link waitForQuic} must have resolved.
 * @param row The thread's row in shared memory, one of `rowCount`.
 * @param takeMemory Resolves to memory with so many Int32 values for each row, and so many after all rows.
 */
export async function joinQuicThreads(
	row: number,
	rowCount: number,
	takeMemory: (slotCount: number, commonCount: number) => Promise<SharedArrayBuffer>,
): Promise<void> {
	if (quicSupport().library === undefined) return;
	let memory: SharedArrayBuffer;
	try {
		memory = await takeMemory(PEER_ROW_SLOTS, PEER_CHANNEL_SLOTS * rowCount);
	} catch {
		// There is too little memory. HTTP/3 works without it, except for clients whose ports change.
		return;
	}
	joinQuicPeers(memory, rowCount, row);
}

/** Returns what the machine lacks for HTTP/3; undefined if it lacks nothing. */
export function missingForQuic(): string | undefined {
	return quicSupport().missing;
}

/**
 * Opens a temporary socket with a listener's settings, and checks that it answers a packet. Rejects if it does not. Does nothing if
 * the machine lacks something for HTTP/3.
 */
export async function checkQuicListener(deps: QuicListenerDeps): Promise<void> {
	if (quicSupport().library === undefined) return;
	const listener = new QuicListener({ address: '127.0.0.1', port: 0, only6: false, shared: false }, deps);
	try {
		listener.open();
		await checkQuicPort(listener.port);
	} finally {
		listener.close();
	}
}

/** HTTP/3 of one listener on one thread. It accepts connections between `open` and `drain`. */
export class QuicListener implements QuicEndpointOwner, ThreadTlsListener {
	readonly #deps: QuicListenerDeps;
	readonly #certificates: QuicCertificates;
	readonly #http3: Http3Server;
	readonly #port: number;
	/**
	 * The endpoints, usually one. After a handover to another number of threads, a thread may have the sockets of several threads of
	 * the predecessor, or none.
	 */
	readonly #endpoints: QuicEndpoint[] = [];
	#handshakeRate: HandshakeRate | undefined;
	#handshakeLimitMs = DEFAULT_HANDSHAKE_TIMEOUT_MS;
	#isOpen = false;
	#nextWarningAt = 0;
	/** Number of refusals since the last log entry, by reason. */
	readonly #refusalCounts = new Map<QuicRefusal, number>();
	#nextReportAt = 0;
	/** Number of connections that OpenSSL has closed because of an internal error since the last log entry. */
	#internalErrorCount = 0;
	#nextInternalErrorAt = 0;
	#isDraining = false;

	/**
	 * Binds a socket or, if `inheritedSockets` is given, uses duplicates of these. Throws an error with the system's code, or ENOSYS
	 * where HTTP/3 is unavailable.
	 */
	constructor(address: UdpAddress, deps: QuicListenerDeps, inheritedSockets?: readonly InheritedDatagrams[]) {
		this.#deps = deps;
		this.#certificates = new QuicCertificates(deps);
		this.#http3 = createHttp3Server(deps.host);
		const thread = quicThread();
		if (thread === undefined) {
			throw Object.assign(new Error(`HTTP/3 is unavailable: ${quicSupport().missing}.`), { code: 'ENOSYS' });
		}
		try {
			if (inheritedSockets === undefined) this.#endpoints.push(new QuicEndpoint(thread, address, this));
			for (const datagrams of inheritedSockets ?? []) {
				this.#endpoints.push(new QuicEndpoint(thread, address, this, datagrams));
			}
		} catch (error) {
			for (const endpoint of this.#endpoints) endpoint.close();
			throw error;
		}
		this.#port = this.#endpoints[0]?.port ?? address.port;
		this.onSettingsChanged();
		deps.tls.addListener(this);
	}

	/** The port of the socket. */
	get port(): number {
		return this.#port;
	}

	/** The value of `Alt-Svc` for clients over TCP (RFC 7838 §3). */
	get altSvcValue(): string {
		return `h3=":${this.#port}"; ma=${ADVERTISED_SECONDS}`;
	}

	/** Starts to accept connections. May be called again after `drain`. */
	open(): void {
		this.#isDraining = false;
		for (const endpoint of this.#endpoints) endpoint.resume();
		if (this.#isOpen) return;
		this.#isOpen = true;
		for (const endpoint of this.#endpoints) endpoint.open();
	}

	/**
	 * Limits new handshakes.
	 * @param handshakeRate Handshakes per second; undefined for no limit.
	 * @param limitMs Milliseconds per handshake; 0 for no limit.
	 * @param quicSettings Limits of QUIC that differ from the defaults.
	 */
	limitHandshakes(
		handshakeRate: HandshakeRate | undefined,
		limitMs: number = DEFAULT_HANDSHAKE_TIMEOUT_MS,
		quicSettings: QuicSettings = NO_SETTINGS,
	): void {
		const limits = quicLimits(quicSettings);
		for (const endpoint of this.#endpoints) endpoint.limits = limits;
		this.#handshakeRate = handshakeRate;
		this.#handshakeLimitMs = limitMs === 0 ? Number.POSITIVE_INFINITY : limitMs;
	}

	get handshakeLimitMs(): number {
		return this.#handshakeLimitMs;
	}

	/** Number of open connections, including unfinished handshakes. */
	get connections(): number {
		return this.#endpoints.reduce((sum, endpoint) => sum + endpoint.connectionCount, 0);
	}

	/** Returns the sockets for a successor of this process; see `QuicEndpoint.bequeath`. */
	bequeath(): BequeathedDatagrams[] {
		return this.#endpoints.flatMap(endpoint => endpoint.bequeath() ?? []);
	}

	closable(): Iterable<ClosableConnection> {
		return this.#http3.closable();
	}

	retire(matches: (tls: TlsInfo | undefined) => boolean): void {
		this.#http3.retire(matches);
	}

	/**
	 * Stops accepting connections. Open connections end after their current requests. If `requestWaits` lets idle connections wait
	 * for another request, handshakes in progress may finish.
	 */
	drain(requestWaits = NO_WAIT): void {
		this.#isDraining = true;
		for (const endpoint of this.#endpoints) endpoint.drain(requestWaits.nextRequestMs > 0);
		// The endpoints stay open, because HTTP/3 may be turned on again before the last connection has ended.
		this.#http3.retire(() => true);
	}

	/** True between `drain` and the next `open`. */
	get draining(): boolean {
		return this.#isDraining;
	}

	/** Closes all connections and the sockets immediately. */
	close(): void {
		this.#deps.tls.removeListener(this);
		for (const endpoint of this.#endpoints) endpoint.close();
	}

	chooseCertificate: (hello: QuicHello, resume: () => void) => QuicCertificateChoice = (hello, resume) =>
		this.#certificates.choose(hello, resume);

	onConnected(connection: QuicConnection): void {
		const { cipherSuite, serverName, resumed, client } = connection.facts;
		let tls: TlsInfo = { version: 'tls1.3', cipherSuite, protocol: 'h3', serverName, resumed };
		if (client !== undefined) {
			const certificate = client.certificate && new X509Certificate(client.certificate);
			const refusal = this.#certificates.refusalReason(client, certificate);
			if (refusal !== undefined) {
				this.#deps.countFailure(refusal);
				connection.close(H3_ERROR.rejected);
				return;
			}
			if (certificate !== undefined) tls = { ...tls, client: new PresentedCertificate(certificate) };
		}
		const { connectionTerms } = this.#deps;
		const selector = this.#deps.selector();
		const auth = client && this.#certificates.authOf(client);
		connectionTerms.record(tls, selector.nameFor(serverName, connection), auth);
		// The configuration may have changed since the handshake began.
		if (connectionTerms.isOutdated(tls, selector)) {
			this.#deps.countFailure('client_certificate_untrusted');
			connection.close(H3_ERROR.rejected);
			return;
		}
		this.#deps.onHandshakeCompleted('tls1.3', resumed);
		this.#http3.accept(connection, tls);
	}

	onHandshakeEnded(result: HandshakeResult, resumed: boolean, alert?: HandshakeAlert): void {
		this.#deps.counters.countHandshake(result, resumed);
		if (result === 'timeout') this.#deps.countFailure('timeout');
		else if (alert !== undefined) this.#deps.countFailure(alertReason(alert));
	}

	admit(address: string): (() => void) | undefined {
		if (this.#handshakeRate?.admits(address, Date.now()) === false) {
			this.#deps.countFailure('rate_limited');
			return undefined;
		}
		return this.#deps.admit(address);
	}

	onRefused(reason: QuicRefusal): void {
		this.#deps.counters.countRefusal(reason);
		if (!LOGGED_REFUSALS.has(reason)) return;
		this.#refusalCounts.set(reason, (this.#refusalCounts.get(reason) ?? 0) + 1);
		const now = performance.now();
		if (now < this.#nextReportAt) return;
		this.#nextReportAt = now + LOG_INTERVAL_MS;
		const fields = { port: this.#port, refused: Object.fromEntries(this.#refusalCounts) };
		this.#refusalCounts.clear();
		this.#deps.log({ level: 'warn', logger: 'http.quic', message: 'QUIC packets were refused', fields });
	}

	countDatagrams(received: number, sent: number, lost: number): void {
		this.#deps.counters.countDatagrams(received, sent, lost);
	}

	onPortChanged(): void {
		this.#deps.counters.countPortChange();
	}

	onConnectionEnded(): void {
		this.#deps.onConnectionEnded();
	}

	onInternalError({ reason, errors }: InternalError): void {
		this.#internalErrorCount++;
		const now = performance.now();
		if (now < this.#nextInternalErrorAt) return;
		this.#nextInternalErrorAt = now + LOG_INTERVAL_MS;
		const fields = { port: this.#port, connections: this.#internalErrorCount, reason, errors };
		this.#internalErrorCount = 0;
		const message = 'OpenSSL closed QUIC connections because of an internal error';
		this.#deps.log({ level: 'warn', logger: 'http.quic', message, fields });
	}

	onError(error: unknown): void {
		// Logs at most one warning per minute, because an error on one connection may occur on many others, too.
		const now = performance.now();
		if (now < this.#nextWarningAt) return;
		this.#nextWarningAt = now + 60_000;
		process.emitWarning(error instanceof Error ? error : String(error));
	}

	clientKey(address: string): string {
		return clientKey(address);
	}

	onCertificateGone(certificate: TableCertificate): void {
		for (const endpoint of this.#endpoints) endpoint.tls.forgetCertificate(certificate.serial);
	}

	onSettingsChanged(): void {
		const { ticketKeys } = this.#deps.tls;
		const [encryptingKey] = ticketKeys;
		for (const endpoint of this.#endpoints) endpoint.tls.useTicketKeys(ticketKeys);
		if (encryptingKey !== undefined) quicThread()?.retryTokens?.useSecret(encryptingKey);
	}

	/** Retires the connections of clients that may no longer be trusted; their current requests complete. */
	onTrustLost(keys: ReadonlySet<string>): void {
		this.retire(tls => {
			const key = tls && this.#deps.connectionTerms.trustKeyOf(tls);
			return key !== undefined && keys.has(key);
		});
	}
}

/** Returns the reason of a failed handshake for metrics and logs. The reasons are the same as for TLS over TCP. */
function alertReason({ alert, byPeer }: HandshakeAlert): string {
	return byPeer ? 'alert' : (REASONS_BY_ALERT[alert] ?? 'protocol');
}

/** Returns the limits of QUIC that a configuration sets. */
export function quicLimits(settings: QuicSettings): Partial<QuicLimits> {
	const limitNames = Object.entries(LIMIT_BY_SETTING) as [keyof QuicSettings, keyof QuicLimits][];
	return Object.fromEntries(
		limitNames.flatMap(([name, limit]) => (settings[name] === undefined ? [] : [[limit, settings[name]]])),
	);
}

const LIMIT_BY_SETTING: { readonly [name in keyof QuicSettings]-?: keyof QuicLimits } = {
	connections: 'maxConnections',
	connections_per_client: 'maxConnectionsPerClient',
	handshakes: 'maxHandshakes',
	handshakes_per_client: 'maxHandshakesPerClient',
	retry_above: 'retryAbove',
	retries: 'maxRetryRate',
	proven_handshakes: 'maxHandshakeRate',
	initials_per_client: 'maxClientInitialRate',
};
