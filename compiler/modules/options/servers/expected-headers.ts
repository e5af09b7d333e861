/**
 * `expected_underscore_headers` and `expected_dot_headers` inside `servers`: names of request fields that are kept although they
 * contain `_` or `.`.
 */
import { isToken } from '../../../exchange/field-syntax.ts';
import type { ServerOption } from '../../contract/server-option.ts';

/**
 * Names of fields that determine framing or routing. Clients must not be able to send names that programs behind this server
 * mistake for them, such as `content_length`.
 */
const FORBIDDEN_NAMES: ReadonlySet<string> = new Set([
	'content-length',
	'transfer-encoding',
	'connection',
	'host',
	'proxy-connection',
]);

/** Option inside `servers`; sets `settings.servers[].expected_underscore_headers` in the document. */
export const expectedUnderscoreHeaders: ServerOption = expectedHeadersOption('expected_underscore_headers', '_');

/** Option inside `servers`; sets `settings.servers[].expected_dot_headers` in the document. */
export const expectedDotHeaders: ServerOption = expectedHeadersOption('expected_dot_headers', '.');

function expectedHeadersOption(name: string, character: '_' | '.'): ServerOption {
	const usage = `${name} <name>…`;
	return {
		name,
		usage,
		summary: `Names of request fields with \`${character}\` to keep; others with it are dropped.`,
		documentation: [
			'Programs behind a proxy often treat such a name like the one with `-`. A name that ends in `*` is a prefix; case is',
			'ignored. For a listed name, the spelling with `-` is dropped, and so is a repeated field. A name with both',
			'characters must be listed exactly.',
		],
		lower: (line, args, { server }, cx) => {
			cx.noBlock(line);
			if (!cx.count(line, args, 1, Number.POSITIVE_INFINITY, usage)) return;
			const expectedNames = args.flatMap(({ text, span }) => {
				const nameOrPrefix = text.replace(/\*$/, '');
				const hint = `Write a field name that contains \`${character}\`, such as X${character}Name, or a prefix such as X${character}*.`;
				if (!isToken(nameOrPrefix) || nameOrPrefix.includes('*') || !nameOrPrefix.includes(character)) {
					cx.problem('error', 'servers/expected-header', span, `\`${text}\` cannot be listed here.`, { hint });
					return [];
				}
				if (FORBIDDEN_NAMES.has(nameOrPrefix.toLowerCase().replace(/[_.]/g, '-'))) {
					const message = `\`${text}\` could be mistaken for a field that frames or routes the message.`;
					cx.problem('error', 'servers/expected-header', span, message);
					return [];
				}
				return [text];
			});
			if (expectedNames.length > 0)
				server[name] = [...((server[name] as string[] | undefined) ?? []), ...expectedNames];
		},
		schema: {
			[name]: {
				type: 'array',
				items: { type: 'string', pattern: "^[!#$%&'+.^_`|~0-9A-Za-z-]+\\*?$" },
				description: `Names of request fields with \`${character}\` to keep; a final * makes a prefix.`,
			},
		},
	};
}
