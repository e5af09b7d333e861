/** Global option `admin`: the address of the Admin API and who may use it. */
import type { Word } from '../../syntax/ast.ts';
import type { GlobalOption } from '../contract/option.ts';

const DEFAULT_ADMIN_ADDRESS = '127.0.0.1:2019';

/** Source of a regular expression for a port number from 0 to 65535. */
const PORT_PATTERN = '([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])';

/** Global option; sets `settings.admin` in the document. */
export const admin: GlobalOption = {
	id: 'admin',
	names: { configfile: ['admin'], compatfile: ['admin'] },
	usage: 'admin off | [<address> [<token>]] [{ origins <origin>…; enforce_origin }]',
	summary: 'Configures the Admin API: its address, token and allowed origins.',
	documentation: [
		`Without this option there is no Admin API. The default address is ${DEFAULT_ADMIN_ADDRESS}.`,
		'With a token, every request must carry it (`Authorization: Bearer …`); without one, only loopback clients are',
		'admitted. `origins` lists the browser origins that may use the API; `enforce_origin` rejects requests without one.',
		'',
		'```',
		'{',
		'	admin 127.0.0.1:2019 {$ADMIN_TOKEN} {',
		'		origins https://ops.example.com',
		'	}',
		'}',
		'```',
		'',
		'The address is fixed at start: changing it, or adding or removing `admin`, needs a restart. Token and',
		'origins are changed by a reload.',
	].join('\n'),
	lower: (line, settings, cx) => {
		const [addressWord, tokenWord, ...extraWords] = line.words.slice(1);
		if (addressWord?.text === 'off') {
			if (tokenWord || line.block) {
				const message = 'No more option is allowed after turning off admin config';
				cx.problem('error', 'admin/after-off', tokenWord?.span ?? line.block!.open, message);
			}
			settings.admin = { off: true };
			return;
		}
		if (extraWords[0]) cx.count(line, line.words.slice(1), 0, 2, admin.usage);
		if (addressWord && !isAdminAddress(addressWord.text)) {
			cx.problem('error', 'admin/bad-address', addressWord.span, `\`${addressWord.text}\` is not an address.`, {
				hint: 'Write host:port, :port, unix//path or fd/3.',
			});
		}
		if (tokenWord) warnOfLiteralSecret(tokenWord, cx);
		else if (addressWord) reportEmptyToken(addressWord, cx);
		const origins: string[] = [];
		let enforceOrigin = false;
		cx.subdirectives(
			line.block,
			{
				origins: (args, innerLine) => {
					if (cx.count(innerLine, args, 1, Number.POSITIVE_INFINITY, 'origins <origin>…')) {
						origins.push(...args.map(word => word.text));
					}
				},
				enforce_origin: (args, innerLine) => {
					cx.count(innerLine, args, 0, 0, 'enforce_origin');
					enforceOrigin = true;
				},
			},
			'admin',
			{ compatibleMessage: name => `unrecognized parameter '${name}'` },
		);
		settings.admin = cx.origin(
			{
				...(addressWord ? { listen: addressWord.text } : {}),
				...(tokenWord ? { token: tokenWord.text } : {}),
				...(origins.length > 0 ? { origins } : {}),
				...(enforceOrigin ? { enforce_origin: true } : {}),
			},
			line.span,
			{ ...(addressWord ? { listen: addressWord.span } : {}), ...(tokenWord ? { token: tokenWord.span } : {}) },
		);
	},
	schema: {
		type: 'object',
		properties: {
			off: { type: 'boolean', startup: true, description: 'Disables the Admin API; no other field is allowed then.' },
			listen: {
				type: 'string',
				startup: true,
				default: DEFAULT_ADMIN_ADDRESS,
				pattern: `^(unix//.+|fd/[0-9]{1,7}|(tcp/)?(\\[[0-9a-fA-F:.%]+\\]|[^\\s:/\\[\\]]*):${PORT_PATTERN})$`,
				description: 'host:port, unix//path, or fd/3 for an inherited socket.',
			},
			token: {
				type: 'string',
				minLength: 1,
				secret: true,
				description:
					'Token that every request must carry as a bearer token. Without one, only this machine is admitted.',
			},
			origins: {
				type: 'array',
				items: { type: 'string' },
				description: 'Origins of web pages that may use the API.',
			},
			enforce_origin: { type: 'boolean', default: false, description: 'Rejects requests without an `Origin`.' },
			'@id': { type: 'string' },
		},
		additionalProperties: false,
	},
	startup: false,
};

function isAdminAddress(text: string): boolean {
	if (text.startsWith('unix//')) return text.length > 'unix//'.length;
	if (/^fd\/\d{1,7}$/.test(text)) return true;
	const port = /^(?:tcp\/)?(?:\[[0-9a-fA-F:.%]+\]|[^\s:/[\]]*):(\d{1,5})$/.exec(text)?.[1];
	return port !== undefined && Number(port) <= 65_535;
}

/**
 * Reports a token that is empty because its environment variable is not set: without a token, the API would be open to everybody on
 * this machine.
 */
function reportEmptyToken(addressWord: Word, cx: Parameters<GlobalOption['lower']>[2]): void {
	const { source, end } = addressWord.span;
	const tokenReference = /^(?:[^\S\n]|\\\r*\n)+(\{\$[^}\n]*\})/.exec(source.text.slice(end, end + 1000));
	if (!tokenReference) return;
	const start = end + tokenReference[0].length - tokenReference[1]!.length;
	cx.problem(
		'error',
		'admin/empty-token',
		{ source, start, end: end + tokenReference[0].length },
		'The token is empty.',
		{
			hint: 'Its environment variable is not set.',
		},
	);
}

/** Warns about a token that is written into the configuration, where everybody who can read the file sees it. */
function warnOfLiteralSecret(tokenWord: Word, cx: Parameters<GlobalOption['lower']>[2]): void {
	const sourceText = tokenWord.span.source.text.slice(tokenWord.span.start, tokenWord.span.end);
	if (sourceText.includes('{$')) return;
	if (tokenWord.text.startsWith('{env.')) {
		cx.problem('error', 'admin/token-placeholder', tokenWord.span, 'The token cannot be a placeholder.', {
			hint: 'Write `{$NAME}`, which is replaced when the file is read.',
		});
		return;
	}
	if (cx.dialect === 'compatfile') return;
	cx.problem('warning', 'secret/in-file', tokenWord.span, 'The token is written into the file.', {
		hint: 'Take it from the environment: `{$ADMIN_TOKEN}`.',
	});
}
