/** `reverse_proxy` and `upstream` lines, the documents they compile to, and their errors. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { compile } from '../../../../../compiler/compiler.ts';
import type { Dialect } from '../../../../../compiler/dialects/dialect.ts';
import { NO_FILES } from './proxied-site.ts';

const lowering = suite('reverse_proxy in text');

function compiled(text: string, format: Dialect | 'json' = 'configfile') {
	return compile({ format, text, name: 'file' }, NO_FILES);
}

function step(lines: string, format: Dialect = 'configfile') {
	const { document, diagnostics } = compiled(`:8080 {\n${lines}\n}\n`, format);
	assert.equal(
		diagnostics.map(({ message }) => message),
		[],
	);
	return document!.sites![0]!.pipeline[0];
}

function mistakes(lines: string, before = '', format: Dialect = 'configfile'): string[] {
	const { diagnostics } = compiled(`${before}\n:8080 {\n${lines}\n}\n`, format);
	return diagnostics.map(({ code, span }) => `${code} at ${span?.source.text.slice(span.start, span.end)}`);
}

lowering('every option is lowered', () => {
	assert.equal(
		step(`reverse_proxy /api/* a:1 {
			to b:2-3 http://c
			lb_policy round_robin
			header_up X-A a
			header_up +X-B {host}
			header_up -X-C
			header_up X-D d(.) e$1
			header_down -Server
			method put
			rewrite /x{uri}
			trusted_proxies private_ranges 10.1.0.0/16
			flush_interval -1
			transport http {
				dial_timeout 1s
				response_header_timeout 30s
				max_response_header 64KiB
				keepalive 10s
				keepalive_idle_conns_per_host 4
				versions 1.1
				compression off
				network_proxy none
			}
		}`),
		{
			handler: 'proxy',
			upstreams: {
				to: ['a:1', 'b:2', 'b:3', 'c:80'],
				balance: { policy: 'round_robin' },
				connect_timeout: 1000,
				response_header_timeout: 30000,
				max_response_header: 65536,
				keepalive: 10000,
				keepalive_idle_conns: 4,
				transport: { type: 'http', versions: ['1.1'], compression: false, forward_proxy: 'none' },
			},
			header_up: {
				set: [{ name: 'X-A', value: 'a' }],
				add: [{ name: 'X-B', value: '{http.request.host}' }],
				delete: ['X-C'],
				replace: [{ name: 'X-D', find: 'd(.)', replace: 'e$1' }],
			},
			header_down: { delete: ['Server'] },
			method: 'PUT',
			rewrite: '/x{http.request.uri}',
			trusted_proxies: ['private_ranges', '10.1.0.0/16'],
			when: { type: 'path', patterns: ['/api/*'] },
		},
	);
});

lowering('`http://` equals no scheme, keep-alive can be off, addresses can be templates', () => {
	assert.equal(step('reverse_proxy http://localhost:3000'), step('reverse_proxy localhost:3000'));
	assert.equal(step('reverse_proxy {header.X} {\ntransport http {\nkeepalive off\n}\n}'), {
		handler: 'proxy',
		upstreams: { to: ['{http.request.header.X}'], keepalive: 0 },
	});
});

lowering('a named upstream occurs once in the document', () => {
	const { document } = compiled(
		'upstream api {\n\tto a:1\n\tlb_policy first\n}\n:8080 {\n\treverse_proxy upstream://api\n}\n',
	);
	assert.equal(document!.upstreams, { api: { to: ['a:1'], balance: { policy: 'first' } } });
	assert.equal(document!.sites![0]!.pipeline, [{ handler: 'proxy', pool: 'api' }]);
});

lowering('all mistakes are reported at once, each at its word', () => {
	assert.equal(
		mistakes(`reverse_proxy /a a:x wss://b https://c {
			lb_policy rund_robin
			lb_policy ip_hash now
			lb_policy first
			lb_retries many
			header_up
			trusted_proxies 10.0.0.0/99
			nonsense
			transport http {
				dial_timeout soon
				tls
				versions 3
			}
			transport http
		}
		reverse_proxy`),
		[
			'upstream/invalid-port at a:x',
			'upstream/browser-scheme at wss://b',
			'value/unknown at rund_robin',
			'arguments/too-many at now',
			'balancing/policy-twice at lb_policy',
			'value/not-a-whole-number at many',
			'arguments/too-few at header_up',
			'value/not-a-range at 10.0.0.0/99',
			'directive/unknown-subdirective at nonsense',
			'value/not-a-duration at soon',
			'directive/unavailable at 3',
			'upstream/transport-twice at transport',
			'arguments/too-few at reverse_proxy',
		],
	);
});

lowering('a named upstream must exist, be the only one, and have an address; its settings cannot be overridden', () => {
	assert.equal(mistakes('reverse_proxy upstream://nope'), ['upstream/unknown at upstream://nope']);
	const defined = 'upstream api {\n\tto a:1\n}';
	assert.equal(mistakes('reverse_proxy upstream://api b:2', defined), ['upstream/named-and-others at upstream://api']);
	assert.equal(mistakes('reverse_proxy upstream://api {\nlb_policy first\n}', defined), [
		'upstream/setting-of-named at lb_policy',
	]);
	assert.equal(mistakes('reverse_proxy upstream://api', 'upstream api {\n\tlb_policy first\n}'), [
		'upstream/empty at api',
	]);
});

lowering("a Compatfile has Caddy's messages for invalid addresses", () => {
	const { diagnostics } = compiled(':8080 {\n\treverse_proxy ws://localhost\n}\n', 'compatfile');
	assert.is(
		diagnostics[0]!.message,
		"parsing compatfile tokens for 'reverse_proxy': parsing upstream 'ws://localhost': the scheme ws:// is only supported in browsers; use http:// instead, at file:2",
	);
});

lowering('JSON must obey the same rules', () => {
	const json = (proxy: object, upstreams = {}) =>
		compiled(
			JSON.stringify({ upstreams, sites: [{ addresses: [':8080'], pipeline: [{ handler: 'proxy', ...proxy }] }] }),
			'json',
		).diagnostics.map(({ pointer }) => pointer);
	assert.equal(json({ upstreams: { to: ['a:1', '{http.request.host}:80'] } }), []);
	assert.equal(json({ pool: 'a' }, { a: { to: ['a:1'] } }), []);
	assert.equal(json({ pool: 'b' }, { a: { to: ['a:1'] } }), ['/sites/0/pipeline/0']);
	assert.equal(json({}), ['/sites/0/pipeline/0']);
	assert.equal(json({ upstreams: { to: ['a:b'] } }), ['/sites/0/pipeline/0']);
	assert.equal(json({ upstreams: { to: ['a:1'] }, trusted_proxies: ['x'] }), ['/sites/0/pipeline/0']);
	assert.equal(json({ upstreams: { to: ['a:1'], balance: { policy: 'nope' } } }).length, 1);
	assert.equal(json({ upstreams: { to: ['a:1'], connect_timeout: -1 } }).length, 1);
});

lowering.run();
