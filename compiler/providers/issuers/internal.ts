/** Issuer `internal`: an authority of our own. */
import type { IssuerModule } from './issuer-module.ts';

/** The internal authority. */
export const internal: IssuerModule = {
	id: 'internal',
	usage: 'issuer internal [{ ca <id>; lifetime <duration>; sign_with_root }]',
	summary: 'Signs with an internal authority.',
	documentation:
		'The authority is `local` unless `ca` names another, see the option `pki`. Certificates live 12 hours, never longer than what signs them, and are renewed when a third of that is left.',
	lower: (args, line, cx) => {
		const draft: { ca?: string; lifetime?: number; sign_with_root?: boolean } = {};
		cx.count(line, args, 0, 0, internal.usage);
		cx.subdirectives(
			line.block,
			{
				ca: (words, at) => {
					if (!cx.count(at, words, 1, 1, 'ca <id>')) return;
					if (/^(?!\.+$)[A-Za-z0-9._-]{1,64}$/.test(words[0]!.text)) draft.ca = words[0]!.text;
					else {
						const message = `\`${words[0]!.text}\` cannot be the id of an authority.`;
						cx.problem('error', 'pki/bad-id', words[0]!.span, message);
					}
				},
				lifetime: (words, at) => {
					if (!cx.count(at, words, 1, 1, 'lifetime <duration>')) return;
					const value = cx.duration(words[0]!);
					if (value !== undefined && value > 0) draft.lifetime = value;
					else if (value !== undefined) {
						cx.problem('error', 'value/out-of-range', words[0]!.span, 'The lifetime must be positive.');
					}
				},
				sign_with_root: (words, at) => {
					if (cx.count(at, words, 0, 0, 'sign_with_root')) draft.sign_with_root = true;
				},
			},
			'internal',
		);
		return draft;
	},
	schema: {
		properties: {
			ca: {
				type: 'string',
				pattern: '^(?!\\.+$)[A-Za-z0-9._-]{1,64}$',
				description: 'Id of the authority; `local` if left out.',
			},
			lifetime: {
				type: 'number',
				exclusiveMinimum: 0,
				description: 'Milliseconds that a certificate lives; 12 hours if left out.',
			},
			sign_with_root: { type: 'boolean', description: 'Signs with the root instead of the intermediate.' },
		},
	},
};
