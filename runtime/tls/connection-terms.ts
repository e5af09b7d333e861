/**
 * The terms of client authentication under which the open TLS connections of a listener began. A reload may demand more of the
 * clients of a site, for example a certificate where none was requested. Connections that began under the old terms are then
 * outdated: their clients have to connect again.
 */
import type { ClientAuth } from '../../compiler/document/tls-settings.ts';
import type { TlsInfo } from '../../compiler/exchange/exchange.ts';
import type { HandshakeSelector } from './handshake-selector.ts';
import { type ThreadTls, trustsAllOf } from './thread-tls.ts';

/** The terms of client authentication under which one connection began. */
interface Terms {
	/** The name by which the policy was selected. */
	readonly name: string;
	readonly auth: ClientAuth | undefined;
}

/** The terms of client authentication of a listener's connections, over TCP and QUIC. */
export class ConnectionTerms {
	readonly #tls: ThreadTls;
	/** Connections without client authentication that sent a server name have no entry. */
	readonly #termsByTls = new WeakMap<TlsInfo, Terms>();
	#outdated: WeakSet<TlsInfo> | undefined;

	constructor(tls: ThreadTls) {
		this.#tls = tls;
	}

	/** The connections found by {@link isOutdated}; undefined if there have been none. */
	get outdated(): WeakSet<TlsInfo> | undefined {
		return this.#outdated;
	}

	/** Records the terms of a new connection. `name` is the name by which its policy was selected. */
	record(tls: TlsInfo, name: string, auth: ClientAuth | undefined): void {
		if (auth === undefined && name === tls.serverName) return;
		this.#termsByTls.set(tls, { name, auth });
	}

	/** Returns the {@link ClientTrust.key} of the certificates that verified a client; undefined without client authentication. */
	trustKeyOf(tls: TlsInfo): string | undefined {
		const auth = this.#termsByTls.get(tls)?.auth;
		return auth && this.#tls.trustKeyOf(auth);
	}

	/** Reports whether the current policy for a connection's name demands more of its client than its handshake did. */
	isOutdated(tls: TlsInfo, selector: HandshakeSelector): boolean {
		const terms = this.#termsByTls.get(tls);
		const { client_auth: auth } = selector.policy(selector.policyIndexOf(terms?.name ?? tls.serverName));
		if (this.#areSufficient(terms, auth)) return false;
		this.#outdated ??= new WeakSet();
		this.#outdated.add(tls);
		return true;
	}

	#areSufficient(terms: Terms | undefined, auth: ClientAuth | undefined): boolean {
		if (auth === undefined || auth.mode === 'request') return true;
		const oldAuth = terms?.auth;
		if (oldAuth === undefined) return auth.mode === 'verify_if_given';
		if (oldAuth.mode !== auth.mode && oldAuth.mode !== 'require_and_verify') return false;
		const oldKey = this.#tls.trustKeyOf(oldAuth);
		const key = this.#tls.trustKeyOf(auth);
		if (oldKey === key) return true;
		if ((oldAuth.trust_pool === undefined) !== (auth.trust_pool === undefined)) return false;
		const oldTrust = this.#tls.trustFor(oldKey);
		const trust = this.#tls.trustFor(key);
		return oldTrust !== undefined && trust !== undefined && trustsAllOf(trust, oldTrust);
	}
}
