/** `expected_underscore_headers` and `expected_dot_headers` inside `servers`: names of fields with `_` or `.` that are kept. */
import { isToken } from '../../../exchange/field-syntax.ts';
import type { ServerOption } from './server-option.ts';

/** Names that frame or route: what a program behind takes for them must come from nobody but this server. */
const NEVER: ReadonlySet<string> = new Set([
	'content-length',
	'transfer-encoding',
	'connection',
	'host',
	'proxy-connection',
]);

/** `settings.servers[].expected_underscore_headers`. */
export const expectedUnderscoreHeaders: ServerOption = expected('expected_underscore_headers', '_');

/** `settings.servers[].expected_dot_headers`. */
export const expectedDotHeaders: ServerOption = expected('expected_dot_headers', '.');

function expected(name: string, character: '_' | '.'): ServerOption {
	const usage = `${name} <name>…`;
	return {
		name,
		usage,
		summary: `Request fields with \`${character}\` in their names that are kept; others with it are dropped.`,
		documentation: [
			'Programs behind often read such a name as the one with `-`. A name that ends in `*` is a prefix; letter case does not',
			'count. Of a listed name the spelling with `-` is dropped, and so is a field that is given twice. A name with both',
			'characters has to be listed as it is.',
		],
		lower: (line, args, { server }, cx) => {
			cx.noBlock(line);
			if (!cx.count(line, args, 1, Number.POSITIVE_INFINITY, usage)) return;
			const names = args.flatMap(({ text, span }) => {
				const plain = text.replace(/\*$/, '');
				const hint = `Write a field name that holds \`${character}\`, such as X${character}Name, or a prefix such as X${character}*.`;
				if (!isToken(plain) || plain.includes('*') || !plain.includes(character)) {
					cx.problem('error', 'servers/expected-header', span, `\`${text}\` cannot be listed here.`, { hint });
					return [];
				}
				if (NEVER.has(plain.toLowerCase().replace(/[_.]/g, '-'))) {
					const message = `\`${text}\` would be taken for a field that frames or routes the message.`;
					cx.problem('error', 'servers/expected-header', span, message);
					return [];
				}
				return [text];
			});
			if (names.length > 0) server[name] = [...((server[name] as string[] | undefined) ?? []), ...names];
		},
		schema: {
			[name]: {
				type: 'array',
				items: { type: 'string', pattern: "^[!#$%&'+.^_`|~0-9A-Za-z-]+\\*?$" },
				description: `Names of request fields with \`${character}\` that are kept; a last * makes a prefix.`,
			},
		},
	};
}
