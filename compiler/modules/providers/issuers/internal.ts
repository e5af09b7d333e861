/** Issuer `internal`: this server's own certificate authority. */
import type { IssuerModule } from './issuer-module.ts';
import { SIGNING_PROPERTIES, type SigningSettings, signingSubdirectives } from './signing-words.ts';

/** An issuer that signs with an internal certificate authority. */
export const internal: IssuerModule = {
	id: 'internal',
	usage: 'issuer internal [{ ca <id>; lifetime <duration>; sign_with_root }]',
	summary: 'Signs with an internal authority.',
	documentation:
		'The authority is `local` unless `ca` names another; see the option `pki`. Certificates are valid for 12 hours, but never longer than their signer, and are renewed when a third of that is left.',
	lower: (args, line, cx) => {
		const draft: SigningSettings = {};
		cx.count(line, args, 0, 0, internal.usage);
		cx.subdirectives(line.block, signingSubdirectives(draft, cx), 'internal');
		return { ...draft };
	},
	schema: { properties: SIGNING_PROPERTIES },
};
