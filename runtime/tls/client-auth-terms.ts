/** What the option `client_auth` of a TLS policy demands of a handshake, for TLS over TCP and over QUIC. */
import { createHash } from 'node:crypto';
import type { ClientAuth } from '../../compiler/document/tls-settings.ts';
import type { ClientCertificateCriteria } from '../sockets/client-verifier.ts';
import type { ClientTrust } from './tls-update.ts';

/** The demands of one `client_auth`, with the currently trusted certificates. */
export interface ClientAuthTerms {
	/** Authorities in PEM. They verify the certificate, and the server names them when it requests a certificate. */
	readonly authorities: readonly string[];
	/** Whether a client without a certificate is rejected. */
	readonly required: boolean;
	/**
	 * Session ID context: a session can be resumed only under the same terms. When the trusted certificates change, earlier sessions
	 * must not be resumed, because their clients were verified against the old ones.
	 */
	readonly context: string;
	readonly criteria: ClientCertificateCriteria;
}

/** Returns the terms of a `client_auth` with these trusted certificates. */
export function clientAuthTerms(auth: ClientAuth, trust: ClientTrust): ClientAuthTerms {
	const authorities = [...trust.authorities];
	const context = createHash('sha256')
		.update(JSON.stringify([trust.key, authorities, trust.leaves]))
		.digest('hex')
		.slice(0, 32);
	const verifies = auth.mode === 'verify_if_given' || auth.mode === 'require_and_verify';
	const chain = verifies && (auth.trust_pool !== undefined || trust.leaves === undefined);
	return {
		authorities,
		required: auth.mode === 'require' || auth.mode === 'require_and_verify',
		context,
		criteria: { chain, leaves: auth.mode === 'request' ? undefined : trust.leaves },
	};
}
