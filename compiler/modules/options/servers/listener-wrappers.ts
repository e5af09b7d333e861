/** `listener_wrappers` inside `servers`: protocols that are handled on a connection before HTTP, such as the PROXY protocol. */
import type { ListenerWrapper, ProxyPolicy, ProxyProtocolWrapper } from '../../../document/server-settings.ts';
import { PROXY_POLICIES } from '../../../document/server-settings.ts';
import { PRIVATE_RANGES, parseIpRange } from '../../../exchange/ip-ranges.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { LowerContext } from '../../contract/lower-context.ts';
import type { ServerOption } from '../../contract/server-option.ts';

const RANGES_SCHEMA = { type: 'array', items: { type: 'string' } };

/** Option inside `servers`; sets `settings.servers[].listener_wrappers` in the document. */
export const listenerWrappers: ServerOption = {
	name: 'listener_wrappers',
	usage:
		'listener_wrappers { proxy_protocol { timeout <duration>; allow <range>…; deny <range>…; fallback_policy <policy> }; http_redirect; tls }',
	summary: 'Configures what is read from a connection before its protocol.',
	documentation: [
		'`proxy_protocol` reads a PROXY header of version 1 or 2 from a load balancer: its source address becomes the',
		"client's. Connections from `deny` are closed; headers from `allow` are used; others are handled by `fallback_policy`:",
		'`IGNORE` (the default) reads a header without using it, `USE` uses it, `REJECT` closes connections that send',
		'one, `REQUIRE` closes connections without one, `SKIP` does not look for it. Without `allow` and `deny`, every',
		"peer's header is used. A malformed header, or one incomplete after `timeout` (5s), closes the connection.",
		'HTTP/3 has no PROXY header, and is off on such a listener unless `protocols` names `h3`.',
		'`http_redirect` answers plain HTTP on a TLS listener with a redirect. `tls` marks where TLS starts: the header is read',
		'before it, wherever it is listed.',
	],
	lower: (line, args, { server }, cx) => {
		if (!cx.count(line, args, 0, 0, 'listener_wrappers { … }')) return;
		const wrappers: ListenerWrapper[] = [];
		const wrapperHandler = (wrapper: 'http_redirect' | 'tls') => (words: readonly Word[], innerLine: Line) => {
			cx.noBlock(innerLine);
			if (cx.count(innerLine, words, 0, 0, wrapper)) wrappers.push(cx.origin({ wrapper }, innerLine.span));
		};
		const lowerTlsWrapper = wrapperHandler('tls');
		cx.subdirectives(
			line.block,
			{
				proxy_protocol: (words, innerLine) => {
					if (cx.count(innerLine, words, 0, 0, 'proxy_protocol { … }'))
						wrappers.push(lowerProxyProtocol(innerLine, cx));
				},
				http_redirect: wrapperHandler('http_redirect'),
				tls: (words, innerLine) => {
					const { span } = innerLine.words[0]!;
					if (wrappers.some(wrapper => wrapper.wrapper === 'tls')) {
						cx.problem('error', 'servers/tls-wrapper', span, 'TLS listener wrapper can only be specified once');
					} else if (wrappers.length === 0) {
						const message =
							'it is unnecessary to specify the TLS listener wrapper in the first position because that is the default';
						cx.problem('error', 'servers/tls-wrapper', span, message);
					} else lowerTlsWrapper(words, innerLine);
				},
			},
			'listener_wrappers',
		);
		server.listener_wrappers = cx.origin(wrappers, line.span);
	},
	schema: {
		listener_wrappers: {
			type: 'array',
			description: 'Read before the protocol, in this order.',
			items: {
				type: 'object',
				discriminator: { propertyName: 'wrapper' },
				required: ['wrapper'],
				oneOf: [
					{
						properties: {
							wrapper: { const: 'proxy_protocol' },
							timeout: {
								type: 'number',
								minimum: 0,
								maximum: 3_600_000,
								default: 5000,
								description: 'Milliseconds to wait for the header.',
							},
							allow: { ...RANGES_SCHEMA, description: 'Peers whose header is used.' },
							deny: { ...RANGES_SCHEMA, description: 'Peers whose connections are closed.' },
							fallback_policy: {
								enum: [...PROXY_POLICIES],
								description: 'For all other peers; default `ignore`, or `use` without `allow` and `deny`.',
							},
							'@id': { type: 'string' },
						},
						additionalProperties: false,
					},
					...(['http_redirect', 'tls'] as const).map(wrapper => ({
						properties: { wrapper: { const: wrapper }, '@id': { type: 'string' } },
						additionalProperties: false,
					})),
				],
			},
		},
	},
};

function lowerProxyProtocol(line: Line, cx: LowerContext): ProxyProtocolWrapper {
	const proxySettings: { timeout?: number; allow?: string[]; deny?: string[]; fallback_policy?: ProxyPolicy } = {};
	cx.subdirectives(
		line.block,
		{
			timeout: (words, innerLine) => {
				cx.noBlock(innerLine);
				const timeoutMs = cx.count(innerLine, words, 1, 1, 'timeout <duration>') ? cx.duration(words[0]!) : undefined;
				if (timeoutMs === undefined) return;
				if (timeoutMs >= 0 && timeoutMs <= 3_600_000) proxySettings.timeout = timeoutMs;
				else {
					cx.problem('error', 'value/out-of-range', words[0]!.span, `\`${words[0]!.text}\` is out of range.`, {
						hint: 'Write a time from 0 to 1h.',
					});
				}
			},
			allow: (words, innerLine) => {
				proxySettings.allow = [...(proxySettings.allow ?? []), ...lowerRanges(words, innerLine, cx)];
			},
			deny: (words, innerLine) => {
				proxySettings.deny = [...(proxySettings.deny ?? []), ...lowerRanges(words, innerLine, cx)];
			},
			fallback_policy: (words, innerLine) => {
				cx.noBlock(innerLine);
				if (!cx.count(innerLine, words, 1, 1, 'fallback_policy <policy>')) return;
				const { text, span } = words[0]!;
				const policy = PROXY_POLICIES.find(name => name === text.toLowerCase());
				if (policy) proxySettings.fallback_policy = policy;
				else {
					cx.problem('error', 'servers/proxy-policy', span, `${text} is invalid policy`, {
						hint: 'Write IGNORE, USE, REJECT, REQUIRE or SKIP.',
					});
				}
			},
		},
		'proxy_protocol',
	);
	return cx.origin({ wrapper: 'proxy_protocol', ...proxySettings } as const, line.span);
}

function lowerRanges(words: readonly Word[], line: Line, cx: LowerContext): string[] {
	cx.noBlock(line);
	if (!cx.count(line, words, 1, Number.POSITIVE_INFINITY, `${line.words[0]!.text} <range>…`)) return [];
	return words.flatMap(word => {
		if (word.text === 'private_ranges') return PRIVATE_RANGES;
		if (parseIpRange(word.text)) return [word.text];
		cx.problem('error', 'value/not-a-range', word.span, `\`${word.text}\` is not an address or range.`, {
			hint: 'Write an address such as 10.0.0.1, a range such as 10.0.0.0/8, or private_ranges.',
		});
		return [];
	});
}
