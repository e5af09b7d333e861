/**
 * `client_ip_headers`, `trusted_proxies_strict` and `trusted_proxies_unix` inside `servers`: how a client's address is
 * determined.
 */
import { isToken } from '../../../exchange/field-syntax.ts';
import type { GlobalOption } from '../../contract/option.ts';
import type { ServerOption } from '../../contract/server-option.ts';

const ALL_LISTENERS_NOTE = 'Applies to all listeners. Changing it needs a restart.';

/** Option inside `servers`; sets `settings.client_ip_headers` in the document. */
export const clientIpHeaders: ServerOption = {
	name: 'client_ip_headers',
	usage: 'client_ip_headers <field>…',
	summary:
		'Fields in which trusted proxies name the client; the first that contains an address counts. Default `X-Forwarded-For`.',
	documentation: ['Applies to all listeners.'],
	lower: (line, args, { settings }, cx) => {
		if (!cx.noBlock(line) || !cx.count(line, args, 1, Number.POSITIVE_INFINITY, clientIpHeaders.usage)) return;
		const earlierNames = (settings.client_ip_headers as readonly string[] | undefined) ?? [];
		const clientIpHeaderNames: string[] = [...earlierNames];
		for (const { text, span } of args) {
			if (clientIpHeaderNames.some(name => name.toLowerCase() === text.toLowerCase())) {
				const message = `client IP header ${text} specified more than once`;
				cx.problem('error', 'servers/client-ip-header-twice', span, message);
			} else if (isToken(text)) clientIpHeaderNames.push(text);
			else cx.problem('error', 'header/invalid-name', span, `\`${text}\` is not a field name.`);
		}
		settings.client_ip_headers = clientIpHeaderNames;
	},
	schema: {},
};

/** Option inside `servers`; sets `settings.trusted_proxies_strict` in the document. */
export const trustedProxiesStrict: ServerOption = {
	name: 'trusted_proxies_strict',
	usage: 'trusted_proxies_strict',
	summary: 'Uses the right-most address that is not a trusted proxy as the client’s, not the left-most.',
	documentation: [
		'Anybody who reaches a trusted proxy that only appends to the field can forge the addresses further left.',
		ALL_LISTENERS_NOTE,
	],
	lower: (line, args, { settings }, cx) => {
		cx.noBlock(line);
		if (cx.count(line, args, 0, 0, trustedProxiesStrict.usage)) settings.trusted_proxies_strict = true;
	},
	schema: {},
};

/** Option inside `servers`; sets `settings.trusted_proxies_unix` in the document. */
export const trustedProxiesUnix: ServerOption = {
	name: 'trusted_proxies_unix',
	usage: 'trusted_proxies_unix',
	summary: 'Trusts peers on Unix sockets like `trusted_proxies` trusts addresses.',
	documentation: [ALL_LISTENERS_NOTE],
	lower: (line, args, { settings }, cx) => {
		cx.noBlock(line);
		if (cx.count(line, args, 0, 0, trustedProxiesUnix.usage)) settings.trusted_proxies_unix = true;
	},
	schema: {},
};

const EXAMPLE_LINES = [
	'```',
	'{',
	'	servers {',
	'		trusted_proxies static 10.0.0.0/8',
	'		trusted_proxies_strict',
	'		trusted_proxies_unix',
	'		client_ip_headers X-Real-IP X-Forwarded-For',
	'	}',
	'}',
	'```',
];

/** Defines a setting without a line of its own in the global block: only an option inside `servers` sets it. */
function internalSetting(
	id: string,
	option: ServerOption,
	startup: boolean,
	schema: GlobalOption['schema'],
): GlobalOption {
	return {
		id,
		names: { configfile: [], compatfile: [] },
		usage: `servers { ${option.usage} }`,
		summary: option.summary,
		documentation: [...(option.documentation ?? []), '', ...EXAMPLE_LINES].join('\n'),
		lower: () => {},
		schema,
		startup,
	};
}

/** The settings that the options of this module set. */
export const clientIpSettings: readonly GlobalOption[] = [
	internalSetting('client_ip_headers', clientIpHeaders, false, {
		type: 'array',
		items: { type: 'string', pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$" },
		minItems: 1,
		description: 'Names of fields; the first that contains an address counts.',
	}),
	internalSetting('trusted_proxies_strict', trustedProxiesStrict, true, {
		type: 'boolean',
		description: 'Whether the right-most untrusted address counts.',
	}),
	internalSetting('trusted_proxies_unix', trustedProxiesUnix, true, {
		type: 'boolean',
		description: 'Whether peers on Unix sockets are trusted.',
	}),
];
