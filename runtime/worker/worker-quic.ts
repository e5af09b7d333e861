/** The HTTP/3 sides of a worker thread's listeners: bound for a generation, opened when it is served, and drained when HTTP/3 is turned off. */
import { socketText } from '../../compiler/codegen/plan/planned-socket.ts';
import type { QuicSettings } from '../../compiler/document/server-settings.ts';
import type { CertificateRequestedByClient } from '../certificates/certificate-feed.ts';
import { http3UnavailableError, withoutHttp3Entry } from '../listeners/http3-probe.ts';
import type { ListenerAddress } from '../listeners/listener-address.ts';
import { ListenError } from '../listeners/port-probe.ts';
import {
	checkQuicListener,
	createQuicListener,
	missingForQuic,
	type QuicListener,
	type QuicListenerDeps,
} from '../listeners/quic-listener.ts';
import type { WorkerListener } from '../listeners/worker-listener.ts';
import type { BequeathedDatagrams } from '../sockets/bequeathed-sockets.ts';
import type { HandshakeRate } from '../tls/handshake-rate.ts';
import { advertisesHttp3 } from '../tls/quic-certificates.ts';
import type { TlsServer } from '../tls/tls-server.ts';
import type { RequestHost, RequestHostThread } from './request-host.ts';

export interface WorkerQuicDeps {
	readonly thread: RequestHostThread;
	/** Whether several threads bind each address. */
	readonly sharePorts: boolean;
	/** Obtains a certificate that a handshake needs. Resolves to true once it has been published. */
	obtainCertificate(certificate: CertificateRequestedByClient): Promise<boolean>;
	onHandshakeCompleted(version: string, resumed: boolean): void;
	onHandshakeFailed(port: number, reason: string): void;
}

/** A listener over TCP with TLS, and its host: the same ones serve HTTP/3. */
export interface TlsListener {
	readonly listener: WorkerListener;
	readonly protocol: TlsServer;
	readonly host: RequestHost;
}

/** The HTTP/3 sides, by the keys of their listeners. */
export class WorkerQuic {
	readonly #deps: WorkerQuicDeps;
	readonly #listeners = new Map<string, QuicListener>();
	/** Those that were bound for a generation that is not served yet. */
	readonly #pending = new Map<string, QuicListener>();

	constructor(deps: WorkerQuicDeps) {
		this.#deps = deps;
	}

	/**
	 * Binds the UDP socket of a listener that offers HTTP/3. Throws ListenError if binding fails although the configuration names
	 * `h3`.
	 * @param tlsListener The listener over TCP, which must be bound; undefined if it does not begin with TLS.
	 */
	bind(address: ListenerAddress, tlsListener: TlsListener | undefined): void {
		const { key, http3 } = address;
		if (http3 === undefined || this.#listeners.has(key) || this.#pending.has(key)) return;
		const boundAddress = tlsListener?.listener.boundAddress;
		if (tlsListener === undefined || boundAddress === undefined) {
			throw new ListenError('ENOTSUP', socketText(address), 'HTTP/3 (`h3`) needs an IP address and a port of its own');
		}
		const bindOptions = {
			address: boundAddress.address,
			port: boundAddress.port,
			only6: address.only6 === true,
			shared: this.#deps.sharePorts,
		};
		try {
			const quic = createQuicListener(
				bindOptions,
				this.#listenerDeps(tlsListener, boundAddress.port),
				address.datagrams,
			);
			this.#pending.set(key, quic);
		} catch (error) {
			const missing = missingForQuic();
			const code = (error as NodeJS.ErrnoException).code ?? 'EIO';
			const reason = missing === undefined ? `the UDP port cannot be bound (${code})` : missing;
			if (http3 === 'named') throw http3UnavailableError(code, address, reason);
			this.#deps.thread.log(withoutHttp3Entry(address, reason));
		}
	}

	/** Checks that a listener answers over HTTP/3, without its socket. Rejects if it does not. */
	check(tlsListener: TlsListener): Promise<void> {
		return checkQuicListener(this.#listenerDeps(tlsListener, tlsListener.listener.address.port));
	}

	/** Opens or drains a listener's HTTP/3 side, and sets the `Alt-Svc` value for other clients. */
	configure(
		{ listener, protocol, host }: TlsListener,
		handshakeRate: HandshakeRate | undefined,
		handshakeTimeout: number | undefined,
		settings: QuicSettings | undefined,
	): void {
		const { key } = listener.address;
		const pendingQuic = this.#pending.get(key);
		if (pendingQuic !== undefined) {
			this.#pending.delete(key);
			this.#listeners.set(key, pendingQuic);
		}
		const quic = this.#listeners.get(key);
		const offersHttp3 = quic !== undefined && host.protocols.includes('h3');
		if (quic !== undefined) {
			protocol.http3Side = quic;
			if (offersHttp3) quic.open();
			else if (!quic.draining) {
				quic.drain();
				this.#onConnectionEnded(key);
			}
		}
		host.altSvc = offersHttp3 ? quic.altSvcValue : undefined;
		const { selector } = protocol;
		const allPoliciesAdvertise = selector.settings.policies.every(advertisesHttp3);
		host.advertisesHttp3 = allPoliciesAdvertise
			? undefined
			: name => advertisesHttp3(selector.policy(selector.policyIndexOf(name)));
		quic?.limitHandshakes(handshakeRate, handshakeTimeout, settings);
	}

	/** Closes the HTTP/3 sides that were bound for a generation that will not be served. */
	discardPending(): void {
		for (const quic of this.#pending.values()) quic.close();
		this.#pending.clear();
	}

	/** Returns the UDP sockets for a successor of this process. */
	collectDatagrams(): [key: string, datagrams: BequeathedDatagrams[]][] {
		const { isDraining } = this.#deps.thread;
		const openListeners = [...this.#listeners].filter(([, quic]) => isDraining || !quic.draining);
		return openListeners.map(([key, quic]) => [key, quic.bequeath()]);
	}

	#listenerDeps({ listener, protocol, host }: TlsListener, port: number): QuicListenerDeps {
		const { thread, obtainCertificate, onHandshakeCompleted, onHandshakeFailed } = this.#deps;
		return {
			tls: thread.tls,
			host,
			counters: host.http3,
			selector: () => protocol.selector,
			connectionTerms: protocol.connectionTerms,
			obtain: obtainCertificate,
			admit: client => listener.admit(client),
			onHandshakeCompleted,
			countFailure: reason => onHandshakeFailed(port, reason),
			log: entry => thread.log(entry),
			onConnectionEnded: () => this.#onConnectionEnded(listener.address.key),
		};
	}

	/** Closes a listener that no longer offers HTTP/3 once it has closed its last HTTP/3 connection. */
	#onConnectionEnded(key: string): void {
		const { thread } = this.#deps;
		const quic = this.#listeners.get(key);
		if (quic?.draining && quic.connections === 0 && !thread.isDraining) {
			setImmediate(() => {
				if (!quic.draining || quic.connections > 0 || this.#listeners.get(key) !== quic) return;
				this.#listeners.delete(key);
				quic.close();
			});
		}
		if (thread.isDraining) thread.onConnectionEnded();
	}
}
