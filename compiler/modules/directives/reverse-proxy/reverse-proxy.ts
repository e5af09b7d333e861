/** `reverse_proxy`: forwards requests to other servers. */

import type { Schema } from '../../../document/schema-type.ts';
import { handlerDirective } from '../../contract/directive.ts';
import { HEADER_EDITS_SCHEMA } from '../../words/header-edits.ts';
import { RESPONSE_RULES_SCHEMA } from '../responses/response-rules.ts';
import { lowerProxy } from './lower-proxy.ts';
import { POOL_PAGE } from './pool-page.ts';
import { compileProxy, type ProxyStep } from './proxy-handler.ts';
import { RETRY_PREDICATE_SCHEMA } from './retry-predicate.ts';
import { TRANSPORT_PAGE } from './transports/transport-page.ts';

const USAGE = 'reverse_proxy [matcher] [<upstream>… | upstream://<name>] [{ … }]';

const BUFFER_BYTES_SCHEMA: Schema = { type: 'integer', minimum: -1 };
const MILLISECONDS_SCHEMA: Schema = { type: 'number', minimum: 0, maximum: 2_147_483_647 };

/** Syntax: `reverse_proxy [matcher] <upstream>… { … }`. */
export const reverseProxy = handlerDirective<ProxyStep>({
	kind: 'handler',
	id: 'proxy',
	observedFields: ['pool', 'upstreams', 'header_up', 'header_down', 'method', 'rewrite'],
	names: { configfile: ['reverse_proxy'], compatfile: ['reverse_proxy'] },
	usage: USAGE,
	summary: 'Forwards requests to other servers and returns their responses, streaming in both directions.',
	documentation: [
		'An upstream is `host:port`, `:port`, `[v6]:port`, `host` (port 80), a URL without a path, a range of ports such as',
		'`host:8001-8005`, or a Unix socket: `unix//run/app.sock`. If it contains placeholders, it is resolved for each request.',
		'`upstream://name` uses the pool defined by a block `upstream name { … }`: one pool, however many sites use it.',
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
		'Sub-directives: `to` adds upstreams;',
		'`header_up` and `header_down` edit the fields of the request and of the response (`FIELD value` sets, `+FIELD value`',
		'adds, `-FIELD` removes, `FIELD regexp replacement` replaces); `method` and `rewrite` change only the forwarded',
		'request; `trusted_proxies` lists peers whose `X-Forwarded-*` fields are trusted, in addition to the global ones;',
		'`forwarded on` adds `Forwarded` (RFC 7239). `request_buffers` and `response_buffers` (a size, or `unlimited`) read a body',
		'before passing it on; without them, bytes are always passed on immediately, which every',
		'`flush_interval` allows. Upgraded connections last at most `stream_timeout`, and continue for `stream_close_delay` after a load that removes',
		'their pool. `verbose_logs` lists each attempt in the access log. `transport` says how upstreams are reached.',
		'',
		...POOL_PAGE,
		'',
		...TRANSPORT_PAGE,
		'',
		'`@name status CODE…` and `@name header FIELD VALUE` name responses. `replace_status [@name] CODE` changes the status',
		"of the upstream's response; `handle_response [@name] { … }` runs directives in its place, for which",
		'`{rp.status_code}` and `{rp.header.NAME}` describe it, and which may use `copy_response` and',
		'`copy_response_headers`. The first rule that matches applies, those without a name last. If no directive of a',
		'`handle_response` answers, the request continues after the `reverse_proxy`.',
		'',
		'Hop-by-hop fields are not passed on, `Via` is added both ways, and `X-Forwarded-For`, `-Proto` and `-Host` are set. The',
		'`Host` field is passed on unchanged. Upgraded connections, such as WebSockets, are relayed byte for byte; 1xx responses and',
		'trailers are passed on, except trailer fields that belong in a head because they route, authenticate, frame or identify',
		'the client (RFC 9110 §6.5.1). If the upstream cannot be reached or fails before it has answered, the status is 502,',
		'after a timeout 504, and 503 if no upstream is available. Access log entries have `upstream`: `address`, `tries`,',
		'`latency` of the head, and `error` if the last attempt failed or the response broke off after its head; the',
		'latter is also a warning in the process log.',
		'',
		'`Max-Forwards` of TRACE and OPTIONS is decremented; at 0 the request is answered here (RFC 9110 §7.6.2): OPTIONS with',
		'the methods that are forwarded, TRACE with its request line and the fields that contain no secrets.',
	].join('\n'),
	matcherToken: 'optional',
	answers: 'always',
	// Routes of `handle_response` do not necessarily answer.
	passesOn: ({ responses }) => responses !== undefined,
	upstreamAddressesOf: ({ upstreams }) =>
		(upstreams?.to ?? []).map((text, index) => ({ text, pointer: `/upstreams/to/${index}` })),
	fieldEdits: { header_up: 'upstream_request', header_down: 'upstream_response' },
	// A FastCGI application receives the path of its script, which is below `root`.
	readsRoot: ({ upstreams }) => {
		const transport = upstreams?.transport;
		return transport?.type === 'fastcgi' && transport.root === undefined;
	},
	makesPages: true,
	order: { rank: 340 },
	lower: (directive, cx) => [lowerProxy(directive, { directiveName: 'reverse_proxy', usage: USAGE }, cx)],
	schema: {
		properties: {
			pool: { type: 'string', description: 'Name of a pool in `upstreams` of the document.' },
			upstreams: { $ref: '#/$defs/upstreams' },
			header_up: HEADER_EDITS_SCHEMA,
			header_down: HEADER_EDITS_SCHEMA,
			method: {
				type: 'string',
				minLength: 1,
				description: 'Method of the forwarded request. Placeholders are resolved.',
			},
			rewrite: {
				type: 'string',
				secret: 'url',
				description: 'Target of the forwarded request, as in `rewrite_target`’s `to`.',
			},
			trusted_proxies: {
				type: 'array',
				items: { type: 'string' },
				description: 'Addresses and ranges in CIDR form, in addition to `settings.trusted_proxies`.',
			},
			forwarded: {
				type: 'boolean',
				default: false,
				description: 'Adds `Forwarded` (RFC 7239) in addition to `X-Forwarded-*`.',
			},
			request_buffers: {
				...BUFFER_BYTES_SCHEMA,
				description:
					'Bytes of a request body to read before forwarding; a fully buffered body can be sent again. −1 for all.',
			},
			response_buffers: {
				...BUFFER_BYTES_SCHEMA,
				description: 'Bytes of a response body to read before passing it on. −1 for all.',
			},
			stream_timeout: {
				...MILLISECONDS_SCHEMA,
				description: 'Maximum milliseconds of an upgraded connection; 0 for no limit.',
			},
			stream_close_delay: {
				...MILLISECONDS_SCHEMA,
				description: 'Milliseconds for which upgraded connections continue after a load removes their pool.',
			},
			verbose_logs: { type: 'boolean', default: false, description: 'Lists each attempt in the access log.' },
			retry_match: {
				...RETRY_PREDICATE_SCHEMA,
				description: 'Which failures and responses are retried, overriding the pool’s setting.',
			},
			responses: RESPONSE_RULES_SCHEMA,
		},
	},
	compile: compileProxy,
});
