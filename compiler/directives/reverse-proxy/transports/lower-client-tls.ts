/** Lowering of the options of `transport http` that begin with `tls`. */
import type { LowerContext, Subdirective } from '../../../lower/lower-context.ts';
import type { Word } from '../../../syntax/ast.ts';
import { lowerFile, lowerUpstreamTrust } from './lower-trust.ts';
import { transportDuration } from './transport-duration.ts';
import type { ClientTlsSettings, TrustSettings } from './transport-settings.ts';

/** TLS settings while they are lowered. */
export type ClientTlsDraft = { -readonly [K in keyof ClientTlsSettings]: ClientTlsSettings[K] };

/** Groups of TLS 1.3 that can be named. */
export const TLS_CURVES = ['x25519mlkem768', 'x25519', 'secp256r1', 'secp384r1', 'secp521r1'] as const;

/** The options; the first of them turns TLS on, which `draft` does. */
export function clientTlsOptions(draft: () => ClientTlsDraft, cx: LowerContext): { [option: string]: Subdirective } {
	const trust = (settings: TrustSettings, word: Word): void => {
		if (draft().trust) {
			const message = 'What certificates are verified with has been said before.';
			cx.problem('error', 'upstream/two-trust-pools', word.span, message, {
				hint: 'Write one `tls_trust_pool`; `combined` joins several sources.',
			});
			return;
		}
		draft().trust = settings;
	};
	return {
		tls: (words, at) => {
			if (cx.noBlock(at) && cx.count(at, words, 0, 0, 'tls')) draft();
		},
		tls_client_auth: (words, at) => {
			const [certificate, key] = words;
			if (!cx.noBlock(at) || !cx.count(at, words, 1, 2, 'tls_client_auth <certificate file> <key file>')) return;
			if (!certificate || !key) {
				const message = 'A client certificate by the name of a managed one is not part of this build.';
				cx.problem('error', 'directive/unavailable', certificate!.span, message, {
					hint: 'Give two PEM files: tls_client_auth client.crt client.key',
				});
				return;
			}
			draft().client_certificate = { certificate: lowerFile(certificate, cx), key: lowerFile(key, cx) };
		},
		tls_insecure_skip_verify: (words, at) => {
			if (cx.noBlock(at) && cx.count(at, words, 0, 0, 'tls_insecure_skip_verify')) draft().insecure_skip_verify = true;
		},
		tls_timeout: (words, at) => {
			const value = transportDuration(words, at, cx);
			if (value !== undefined) draft().handshake_timeout = value;
		},
		tls_server_name: (words, at) => {
			if (cx.noBlock(at) && cx.count(at, words, 1, 1, 'tls_server_name <name>')) {
				draft().server_name = cx.template(words[0]!);
			}
		},
		tls_renegotiation: (words, at) => {
			if (!cx.noBlock(at) || !cx.count(at, words, 1, 1, 'tls_renegotiation never|freely')) return;
			const value = cx.oneOf(words[0]!, ['never', 'once', 'freely'], 'level of renegotiation');
			if (value === 'once') {
				const message = 'Renegotiations cannot be counted: `once` is not part of this build.';
				cx.problem('error', 'directive/unavailable', words[0]!.span, message, { hint: 'Write `never` or `freely`.' });
			} else if (value !== undefined) draft().renegotiation = value;
		},
		tls_except_ports: (words, at) => {
			if (!cx.noBlock(at) || !cx.count(at, words, 1, Number.POSITIVE_INFINITY, 'tls_except_ports <port>…')) return;
			const ports = words.map(word => cx.integer(word, 1, 65535)).filter(port => port !== undefined);
			draft().except_ports = [...(draft().except_ports ?? []), ...ports];
		},
		tls_curves: (words, at) => {
			if (!cx.noBlock(at) || !cx.count(at, words, 1, Number.POSITIVE_INFINITY, 'tls_curves <curve>…')) return;
			const curves = words.map(word => cx.oneOf(word, TLS_CURVES, 'curve')).filter(curve => curve !== undefined);
			draft().curves = [...(draft().curves ?? []), ...curves];
		},
		tls_trust_pool: (words, at) => {
			const settings = lowerUpstreamTrust(words, at, cx);
			if (settings) trust(settings, at.words[0]!);
		},
		tls_trusted_ca_certs: (words, at) => {
			if (!cx.noBlock(at) || !cx.count(at, words, 1, Number.POSITIVE_INFINITY, 'tls_trust_pool file <file>…')) return;
			const word = at.words[0]!;
			if (cx.dialect === 'configfile') {
				const message = '`tls_trusted_ca_certs` is kept for old files only.';
				cx.problem('error', 'directive/old-spelling', word.span, message, {
					hint: 'Write `tls_trust_pool file <file>…`.',
				});
				return;
			}
			trust({ source: 'file', files: words.map(one => lowerFile(one, cx)) }, word);
		},
	};
}
