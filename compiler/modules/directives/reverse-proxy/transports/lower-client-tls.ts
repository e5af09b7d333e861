/** Lowers the options of `transport http` that begin with `tls`. */

import type { TrustPool } from '../../../../document/tls-settings.ts';
import type { Word } from '../../../../syntax/ast.ts';
import type { LowerContext, SubdirectiveHandler } from '../../../contract/lower-context.ts';
import { lowerTrustPool } from '../../../providers/trust-pools/trust-pool.ts';
import { parseTransportDuration } from './transport-duration.ts';
import type { ClientTlsSettings } from './transport-settings.ts';

/** The TLS settings of a transport that is being lowered. Its lines set the fields. */
export type ClientTlsDraft = { -readonly [K in keyof ClientTlsSettings]: ClientTlsSettings[K] };

/** Key exchange groups of TLS 1.3 that can be selected. */
export const TLS_CURVES = ['x25519mlkem768', 'x25519', 'secp256r1', 'secp384r1', 'secp521r1'] as const;

/**
 * Returns the handlers of the TLS options. Each option enables TLS by calling `getDraft`, which creates the TLS settings if there are
 * none.
 */
export function clientTlsOptions(
	getDraft: () => ClientTlsDraft,
	cx: LowerContext,
): { [option: string]: SubdirectiveHandler } {
	const setTrust = (trustPool: TrustPool, word: Word): void => {
		if (getDraft().trust) {
			const message = 'The authorities for verifying certificates are already given.';
			cx.problem('error', 'upstream/two-trust-pools', word.span, message, {
				hint: 'Write one `tls_trust_pool`; `combined` joins several sources.',
			});
			return;
		}
		getDraft().trust = trustPool;
	};
	return {
		tls: (words, innerLine) => {
			if (cx.noBlock(innerLine) && cx.count(innerLine, words, 0, 0, 'tls')) getDraft();
		},
		tls_client_auth: (words, innerLine) => {
			const [certificateWord, keyWord] = words;
			if (
				!cx.noBlock(innerLine) ||
				!cx.count(innerLine, words, 1, 2, 'tls_client_auth <name> | <certificate file> <key file>')
			)
				return;
			if (certificateWord && keyWord) {
				getDraft().client_certificate = {
					certificate: cx.filePath(certificateWord.text, certificateWord.span),
					key: cx.filePath(keyWord.text, keyWord.span),
				};
			} else if (certificateWord && /^(?:\*\.)?[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*$/.test(certificateWord.text)) {
				getDraft().client_certificate = { managed: certificateWord.text.toLowerCase() };
			} else {
				const message = `\`${certificateWord!.text}\` is not the name of a certificate of this server.`;
				cx.problem('error', 'upstream/client-certificate', certificateWord!.span, message, {
					hint: 'Write the name of a site whose certificate this server manages, or two PEM files.',
				});
			}
		},
		tls_insecure_skip_verify: (words, innerLine) => {
			if (cx.noBlock(innerLine) && cx.count(innerLine, words, 0, 0, 'tls_insecure_skip_verify'))
				getDraft().insecure_skip_verify = true;
		},
		tls_timeout: (words, innerLine) => {
			const value = parseTransportDuration(words, innerLine, cx);
			if (value !== undefined) getDraft().handshake_timeout = value;
		},
		tls_server_name: (words, innerLine) => {
			if (cx.noBlock(innerLine) && cx.count(innerLine, words, 1, 1, 'tls_server_name <name>')) {
				getDraft().server_name = cx.template(words[0]!);
			}
		},
		tls_renegotiation: (words, innerLine) => {
			if (!cx.noBlock(innerLine) || !cx.count(innerLine, words, 1, 1, 'tls_renegotiation never|freely')) return;
			const value = cx.oneOf(words[0]!, ['never', 'once', 'freely'], 'level of renegotiation');
			if (value === 'once') {
				const message =
					'`once` is not available: the TLS engine either allows renegotiation or does not, and TLS 1.3 has none.';
				cx.problem('error', 'directive/unavailable', words[0]!.span, message, { hint: 'Write `never` or `freely`.' });
			} else if (value !== undefined) getDraft().renegotiation = value;
		},
		tls_except_ports: (words, innerLine) => {
			if (
				!cx.noBlock(innerLine) ||
				!cx.count(innerLine, words, 1, Number.POSITIVE_INFINITY, 'tls_except_ports <port>…')
			)
				return;
			const ports = words.map(word => cx.integer(word, 1, 65535)).filter(port => port !== undefined);
			getDraft().except_ports = [...(getDraft().except_ports ?? []), ...ports];
		},
		tls_curves: (words, innerLine) => {
			if (!cx.noBlock(innerLine) || !cx.count(innerLine, words, 1, Number.POSITIVE_INFINITY, 'tls_curves <curve>…'))
				return;
			const curves = words.map(word => cx.oneOf(word, TLS_CURVES, 'curve')).filter(curve => curve !== undefined);
			getDraft().curves = [...(getDraft().curves ?? []), ...curves];
		},
		tls_trust_pool: (words, innerLine) => {
			const settings = lowerTrustPool(words, innerLine, cx);
			if (settings) setTrust(settings, innerLine.words[0]!);
		},
		tls_trusted_ca_certs: (words, innerLine) => {
			if (
				!cx.noBlock(innerLine) ||
				!cx.count(innerLine, words, 1, Number.POSITIVE_INFINITY, 'tls_trust_pool file <file>…')
			)
				return;
			const word = innerLine.words[0]!;
			if (cx.dialect === 'configfile') {
				const message = '`tls_trusted_ca_certs` is supported only for old files.';
				cx.problem('error', 'directive/old-spelling', word.span, message, {
					hint: 'Write `tls_trust_pool file <file>…`.',
				});
				return;
			}
			setTrust({ source: 'file', files: words.map(({ text, span }) => cx.filePath(text, span)) }, word);
		},
	};
}
