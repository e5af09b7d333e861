/** `reverse_proxy`: passes requests on to other servers. */
import { parseIpRange } from '../../exchange/ip-ranges.ts';
import type { UpstreamSettings } from '../../exchange/leases.ts';
import type { LowerContext, Subdirective } from '../../lower/lower-context.ts';
import type { Line, Word } from '../../syntax/ast.ts';
import { handlerDirective } from '../directive.ts';
import { HEADER_EDITS, type HeaderEdits, lowerHeaderEdit } from '../header-edits.ts';
import { RESPONSE_RULES, type ResponseRule, ResponseRulesDraft } from '../responses/response-rules.ts';
import { settleHealth } from './lower-health.ts';
import {
	lowerAddresses,
	poolSubdirectives,
	refuseByName,
	SOURCES,
	UNAVAILABLE_OF_POOLS,
	type UpstreamDraft,
} from './lower-upstream.ts';
import { compileProxy, type ProxyStep } from './proxy-handler.ts';
import { settleSchemes } from './transports/lower-transport.ts';

const USAGE = 'reverse_proxy [matcher] [<upstream>… | upstream://<name>] [{ … }]';
const NAMED = 'upstream://';

/** Sub-directives of later builds. */
const UNAVAILABLE: readonly string[] = [
	...['request_buffers', 'response_buffers', 'stream_buffer_size', 'stream_timeout', 'stream_close_delay'],
	'verbose_logs',
];

/** `reverse_proxy [matcher] <upstream>… { … }`. */
export const reverseProxy = handlerDirective<ProxyStep>({
	kind: 'handler',
	id: 'proxy',
	names: { configfile: ['reverse_proxy'], compatfile: ['reverse_proxy'] },
	usage: USAGE,
	summary: 'Passes requests on to other servers and their responses back, streaming both ways.',
	documentation: [
		'An upstream is `host:port`, `:port`, `[v6]:port`, `host` (port 80), `http://host:port`, a range of ports such as',
		'`host:8001-8005`, or a unix socket: `unix//run/app.sock`. With placeholders in it, it is resolved for each request.',
		'`upstream://name` uses the pool that a block `upstream name { … }` defines: one pool, however many sites use it.',
		'',
		'```',
		'reverse_proxy /api/* 10.0.0.11:8080 10.0.0.12:8080 {',
		'	lb_policy least_conn',
		'	header_up X-Served-By svc',
		'	header_down -X-Powered-By',
		'	transport http {',
		'		dial_timeout 1s',
		'		response_header_timeout 30s',
		'	}',
		'}',
		'```',
		'',
		'Sub-directives: `to` adds upstreams; `lb_policy` chooses among them (`random`, `round_robin`, `least_conn`, `first`);',
		'`header_up` and `header_down` edit the fields of the request and of the response (`FIELD value` sets, `+FIELD value`',
		'adds, `-FIELD` removes, `FIELD regexp replacement` replaces); `method` and `rewrite` change the request that is sent,',
		'and only that one; `trusted_proxies` names peers whose `X-Forwarded-*` fields are believed, beside the global ones;',
		'`transport http { … }` sets `dial_timeout` (3s), `response_header_timeout`, `max_response_header` (10MiB),',
		'`keepalive` (2m, or `off`) and `keepalive_idle_conns_per_host` (32, of one thread). `flush_interval` is accepted:',
		'bytes are always passed on at once.',
		'',
		'`@name status CODE…` and `@name header FIELD VALUE` name responses. `replace_status [@name] CODE` sends another status',
		'with what the upstream answered; `handle_response [@name] { … }` runs directives in its place, for which',
		'`{rp.status_code}` and `{rp.header.NAME}` tell of it, and which may use `copy_response` and',
		'`copy_response_headers`. The first rule that matches is carried out, those without a name last. When no directive of a',
		'`handle_response` answers, the request goes on behind the `reverse_proxy`.',
		'',
		'Fields of one connection are not passed on, `Via` is added both ways, and `X-Forwarded-For`, `-Proto` and `-Host` are',
		'set. The `Host` field is passed on as it came. Upgrades such as WebSocket are joined byte for byte; 1xx responses and',
		'trailers are passed on. When the upstream cannot be reached or breaks off before it has answered, the status is 502,',
		'after a time-out 504, and 503 when there is none to choose.',
	].join('\n'),
	matcherToken: 'optional',
	answers: true,
	lower: ({ line, name, args }, cx) => {
		const draft: UpstreamDraft = { to: [] };
		const fields: Fields = {};
		const named = lowerName(args, cx);
		if (named === undefined) lowerAddresses(args, draft, cx);
		const pool = poolSubdirectives(draft, cx);
		const known: { [name: string]: Subdirective } = named === undefined ? pool : refusedBeside(named, pool, cx);
		const refused = [...UNAVAILABLE, ...UNAVAILABLE_OF_POOLS];
		const responses = new ResponseRulesDraft(line.block?.lines ?? [], cx);
		const every = refuseByName({ ...known, ...proxySubdirectives(fields, cx) }, refused, cx);
		Object.defineProperties(every, Object.getOwnPropertyDescriptors(responses.subdirectives()));
		cx.subdirectives(line.block, every, 'reverse_proxy');
		const rules = responses.rules();
		if (rules.length > 0) fields.responses = rules;
		if (named !== undefined) return cx.origin<ProxyStep>({ handler: 'proxy', pool: named, ...fields }, line.span);
		const hasAddress = args.length > 0 || line.block?.lines.some(({ words }) => SOURCES.has(words[0]!.text)) === true;
		if (!hasAddress && cx.dialect === 'configfile') {
			cx.problem('error', 'arguments/too-few', name.span, '`reverse_proxy` has no upstream.', {
				hint: `Usage: ${USAGE}`,
			});
		}
		settleSchemes(draft, args[0]?.span ?? line.span, cx);
		settleHealth(draft);
		const upstreams = cx.origin(draft as UpstreamDraft & UpstreamSettings, args[0]?.span ?? line.span);
		return cx.origin<ProxyStep>({ handler: 'proxy', upstreams, ...fields }, line.span);
	},
	schema: {
		properties: {
			pool: { type: 'string', description: 'Name of a pool in `upstreams` of the document.' },
			upstreams: { $ref: '#/$defs/upstreams' },
			header_up: HEADER_EDITS,
			header_down: HEADER_EDITS,
			method: {
				type: 'string',
				minLength: 1,
				description: 'Method of the request that is sent. Placeholders are resolved.',
			},
			rewrite: { type: 'string', description: 'Target of the request that is sent, as in `rewrite_target`’s `to`.' },
			trusted_proxies: {
				type: 'array',
				items: { type: 'string' },
				description: 'Addresses and ranges in CIDR form, beside `settings.trusted_proxies`.',
			},
			responses: RESPONSE_RULES,
		},
	},
	compile: compileProxy,
});

/** What `reverse_proxy` itself has beside its pool. */
interface Fields {
	header_up?: HeaderEdits;
	header_down?: HeaderEdits;
	method?: string;
	rewrite?: string;
	trusted_proxies?: string[];
	responses?: readonly ResponseRule[];
}

/** The name of `upstream://name`; undefined when there is none, or it is not alone. */
function lowerName(args: readonly Word[], cx: LowerContext): string | undefined {
	if (cx.dialect === 'compatfile') return undefined;
	const word = args.find(({ text }) => text.startsWith(NAMED));
	if (!word) return undefined;
	const name = word.text.slice(NAMED.length);
	if (args.length > 1) {
		cx.problem('error', 'upstream/named-and-others', word.span, 'A named upstream stands alone: it is a whole pool.', {
			hint: 'Add the other addresses to its block.',
		});
	}
	if (!cx.upstreamExists(name)) {
		const nearest = cx.nearestUpstream(name);
		cx.problem('error', 'upstream/unknown', word.span, `There is no upstream named \`${name}\`.`, {
			label: nearest === undefined ? undefined : `did you mean \`${nearest}\`?`,
			hint: `Define it: upstream ${name === '' ? '<name>' : name} { to <address>… }`,
		});
	}
	return name;
}

/** Settings of a named pool are made where it is defined: here they would change it for every other user. */
function refusedBeside(name: string, pool: { readonly [name: string]: Subdirective }, cx: LowerContext) {
	const refused: { [name: string]: Subdirective } = {};
	for (const subdirective of Object.keys(pool)) {
		refused[subdirective] = (_args, line) => {
			const word = line.words[0]!;
			const message = `\`${word.text}\` belongs to the pool: it cannot stand beside \`${NAMED}${name}\`.`;
			cx.problem('error', 'upstream/setting-of-named', word.span, message, {
				hint: `Write it in the block \`upstream ${name}\`.`,
			});
		};
	}
	return refused;
}

function proxySubdirectives(fields: Fields, cx: LowerContext): { [name: string]: Subdirective } {
	const once = (args: readonly Word[], line: Line, usage: string): Word | undefined =>
		cx.noBlock(line) && cx.count(line, args, 1, 1, usage) ? args[0] : undefined;
	const known: { [name: string]: Subdirective } = {
		header_up: (args, line) => {
			if (!cx.noBlock(line) || !cx.count(line, args, 1, 3, 'header_up [+|-]<field> [<value>|<regexp> [<replacement>]]'))
				return;
			fields.header_up = lowerHeaderEdit(args, fields.header_up, 'request', cx);
		},
		header_down: (args, line) => {
			if (
				!cx.noBlock(line) ||
				!cx.count(line, args, 1, 3, 'header_down [+|-]<field> [<value>|<regexp> [<replacement>]]')
			)
				return;
			fields.header_down = lowerHeaderEdit(args, fields.header_down, 'response', cx);
		},
		method: (args, line) => {
			const word = once(args, line, 'method <method>');
			if (word) fields.method = word.text.includes('{') ? cx.template(word) : word.text.toUpperCase();
		},
		rewrite: (args, line) => {
			const word = once(args, line, 'rewrite <target>');
			if (word) fields.rewrite = cx.template(word);
		},
		trusted_proxies: (args, line) => {
			if (!cx.count(line, args, 1, Number.POSITIVE_INFINITY, 'trusted_proxies <range>…')) return;
			for (const word of args) {
				if (word.text === 'private_ranges' || parseIpRange(word.text)) {
					fields.trusted_proxies = [...(fields.trusted_proxies ?? []), word.text];
				} else {
					const message = `\`${word.text}\` is not an IP address or range.`;
					cx.problem('error', 'value/not-a-range', word.span, message, {
						hint: 'Write an address, a range such as 10.0.0.0/8, or `private_ranges`.',
					});
				}
			}
		},
		flush_interval: (args, line) => {
			const word = once(args, line, 'flush_interval <duration>');
			// Bytes are always passed on at once, which every interval allows.
			if (word && !/^-?\d+$/.test(word.text)) cx.duration(word);
		},
	};
	return known;
}
