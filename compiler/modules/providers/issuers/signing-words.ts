/** Options for signing with an internal authority, shared by the issuer `internal` and `acme_server`. */

import type { Schema } from '../../../document/schema-type.ts';
import type { LowerContext, SubdirectiveHandler } from '../../contract/lower-context.ts';
import { AUTHORITY_ID_PATTERN } from '../../options/pki.ts';

/** Settings for signing with an internal certificate authority. */
export interface SigningSettings {
	/** ID of the internal authority; default `local`. */
	ca?: string;
	/** Lifetime of certificates in milliseconds; default 12 hours. */
	lifetime?: number;
	sign_with_root?: boolean;
}

/** Schema of the settings that {@link signingSubdirectives} fills. */
export const SIGNING_PROPERTIES: { readonly [name: string]: Schema } = {
	ca: {
		type: 'string',
		pattern: AUTHORITY_ID_PATTERN,
		default: 'local',
		description: 'ID of the authority; default `local`.',
	},
	lifetime: {
		type: 'number',
		exclusiveMinimum: 0,
		default: 43_200_000,
		description: 'Lifetime of certificates in milliseconds; default 12 hours.',
	},
	sign_with_root: { type: 'boolean', default: false, description: 'Signs with the root instead of the intermediate.' },
};

/** Returns the handlers of the sub-directives about signing, which fill the draft. */
export function signingSubdirectives(
	draft: SigningSettings,
	cx: LowerContext,
): { readonly [name: string]: SubdirectiveHandler } {
	return {
		ca: (words, innerLine) => {
			if (!cx.count(innerLine, words, 1, 1, 'ca <id>')) return;
			const { text, span } = words[0]!;
			if (new RegExp(AUTHORITY_ID_PATTERN).test(text)) draft.ca = text;
			else cx.problem('error', 'pki/bad-id', span, `\`${text}\` is not a valid authority ID.`);
		},
		lifetime: (words, innerLine) => {
			if (!cx.count(innerLine, words, 1, 1, 'lifetime <duration>')) return;
			const lifetimeMs = cx.duration(words[0]!);
			if (lifetimeMs !== undefined && lifetimeMs > 0) draft.lifetime = lifetimeMs;
			else if (lifetimeMs !== undefined) {
				cx.problem('error', 'value/out-of-range', words[0]!.span, 'The lifetime must be positive.');
			}
		},
		sign_with_root: (words, innerLine) => {
			if (cx.count(innerLine, words, 0, 0, 'sign_with_root')) draft.sign_with_root = true;
		},
	};
}
