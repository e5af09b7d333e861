/** Global option `admin`: where the Admin API listens and who may call it. */
import type { Word } from '../../syntax/ast.ts';
import type { GlobalOption } from './option.ts';

/** Address of the Admin API when the option names none. */
const DEFAULT_ADMIN_ADDRESS = '127.0.0.1:2019';

/** A number from 0 to 65535. */
const PORT = '([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])';

/** `settings.admin`. */
export const admin: GlobalOption = {
	id: 'admin',
	names: { configfile: ['admin'], compatfile: ['admin'] },
	usage: 'admin off | [<address> [<token>]] [{ origins <origin>…; enforce_origin }]',
	summary: 'The Admin API: its address, its token and its origins.',
	documentation: [
		`There is no Admin API without this option. The address is ${DEFAULT_ADMIN_ADDRESS} if left out.`,
		'With a token every request must carry it (`Authorization: Bearer …`); without one only loopback clients are',
		'admitted. `origins` names the browser origins that may call, `enforce_origin` refuses requests that name none.',
		'',
		'```',
		'{',
		'	admin 127.0.0.1:2019 {$ADMIN_TOKEN} {',
		'		origins https://ops.example.com',
		'	}',
		'}',
		'```',
		'',
		'The address stays what it was at start: a load that changes it, adds or removes `admin` needs a restart. Token and',
		'origins are taken over by a load.',
	].join('\n'),
	lower: (line, settings, cx) => {
		const [address, token, ...rest] = line.words.slice(1);
		if (address?.text === 'off') {
			if (token || line.block) {
				const message = 'No more option is allowed after turning off admin config';
				cx.problem('error', 'admin/after-off', token?.span ?? line.block!.open, message);
			}
			settings.admin = { off: true };
			return;
		}
		if (rest[0]) cx.count(line, line.words.slice(1), 0, 2, admin.usage);
		if (address && !isAdminAddress(address.text)) {
			cx.problem('error', 'admin/bad-address', address.span, `\`${address.text}\` is not an address.`, {
				hint: 'Write host:port, :port, unix//path or fd/3.',
			});
		}
		if (token) warnOfLiteralSecret(token, cx);
		else if (address) refuseLostToken(address, cx);
		const origins: string[] = [];
		let enforce = false;
		cx.subdirectives(
			line.block,
			{
				origins: (args, at) => {
					if (cx.count(at, args, 1, Number.POSITIVE_INFINITY, 'origins <origin>…')) {
						origins.push(...args.map(word => word.text));
					}
				},
				enforce_origin: (args, at) => {
					cx.count(at, args, 0, 0, 'enforce_origin');
					enforce = true;
				},
			},
			'admin',
			{ compatible: name => `unrecognized parameter '${name}'` },
		);
		settings.admin = cx.origin(
			{
				...(address ? { listen: address.text } : {}),
				...(token ? { token: token.text } : {}),
				...(origins.length > 0 ? { origins } : {}),
				...(enforce ? { enforce_origin: true } : {}),
			},
			line.span,
			{ ...(address ? { listen: address.span } : {}), ...(token ? { token: token.span } : {}) },
		);
	},
	schema: {
		type: 'object',
		properties: {
			off: { type: 'boolean', startup: true, description: 'There is no Admin API; nothing else may be set then.' },
			listen: {
				type: 'string',
				startup: true,
				default: DEFAULT_ADMIN_ADDRESS,
				pattern: `^(unix//.+|fd/[0-9]{1,7}|(tcp/)?(\\[[0-9a-fA-F:.%]+\\]|[^\\s:/\\[\\]]*):${PORT})$`,
				description: 'host:port, unix//path, or fd/3 for a socket that the process was started with.',
			},
			token: {
				type: 'string',
				minLength: 1,
				secret: true,
				description: 'Every request must carry it as a bearer token. Without one only this machine is admitted.',
			},
			origins: {
				type: 'array',
				items: { type: 'string' },
				description: 'Origins of web pages that may call the API.',
			},
			enforce_origin: { type: 'boolean', default: false, description: 'Requests without an `Origin` are refused.' },
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

/** A variable that is not set leaves no word behind: the API would be open to whoever is on this machine. */
function refuseLostToken(address: Word, cx: Parameters<GlobalOption['lower']>[2]): void {
	const { source, end } = address.span;
	const lost = /^[ \t]+(\{\$[^}\n]*\})/.exec(source.text.slice(end, end + 1000));
	if (!lost) return;
	const start = end + lost[0].length - lost[1]!.length;
	cx.problem('error', 'admin/empty-token', { source, start, end: end + lost[0].length }, 'The token is empty.', {
		hint: 'The environment variable that holds it is not set.',
	});
}

/** A secret in the file is seen by whoever sees the file; one from the environment is not. */
function warnOfLiteralSecret(token: Word, cx: Parameters<GlobalOption['lower']>[2]): void {
	const written = token.span.source.text.slice(token.span.start, token.span.end);
	if (written.includes('{$')) return;
	if (token.text.startsWith('{env.')) {
		cx.problem('error', 'admin/token-placeholder', token.span, 'The token cannot be a placeholder.', {
			hint: 'Write `{$NAME}`, which is replaced when the file is read.',
		});
		return;
	}
	if (cx.dialect === 'compatfile') return;
	cx.problem('warning', 'secret/in-file', token.span, 'The token stands in the file.', {
		hint: 'Take it from the environment: `{$ADMIN_TOKEN}`.',
	});
}
