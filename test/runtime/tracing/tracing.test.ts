/**
 * `tracing` in a running server: the trace context that is received and propagated, the spans that are exported, and an
 * unavailable collector.
 */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { SpanExport } from '../../../runtime/tracing/span-export.ts';
import { rawExchange } from '../../harness.ts';
import { eventually, type TestServer, withServer } from '../running-server.ts';
import { type OtlpReceiver, otlpReceiver, type ReceivedSpan } from './otlp-receiver.ts';

const tracing = suite('tracing');

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';

/** Runs a server with a Compatfile, on a free port and with a collector. */
async function withTracing(
	site: string,
	environment: { readonly [name: string]: string },
	test: (server: TestServer, collector: OtlpReceiver) => Promise<void>,
	global = '',
): Promise<void> {
	const collector = await otlpReceiver();
	const variables = {
		OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
		OTEL_BSP_SCHEDULE_DELAY: '20',
		...environment,
	};
	// The OpenTelemetry packages read the process environment.
	Object.assign(process.env, variables);
	const text = `{\nmetrics\n${global}\n}\nhttp://:0 {\nbind 127.0.0.1\n${site}\n}\n`;
	try {
		const input = { format: 'compatfile', text, name: 'Compatfile' } as const;
		await withServer(undefined, { input, threads: 1 }, server => test(server, collector));
	} finally {
		for (const name of Object.keys(variables)) delete process.env[name];
		collector.close();
	}
}

/** The results of requests to one server. Several tests share them, because starting a server for each test would take too long. */
interface SharedResults {
	readonly upstream: IncomingHttpHeaders;
	readonly first: {
		readonly ids: readonly [trace: string, span: string];
		readonly before: number;
		readonly port: number;
		/** The port of the upstream. */
		readonly up: number;
	};
	/** Response bodies, by the name of the request. */
	readonly bodies: { readonly [name: string]: string };
	readonly spans: readonly ReceivedSpan[];
	readonly request: OtlpReceiver['requests'][number];
	readonly entries: readonly { readonly [field: string]: unknown }[];
	readonly metrics: string;
}

const CONTEXT =
	'@rest not path /up/* /again\nrespond @rest "{http.request.header.Traceparent} {http.request.header.Tracestate}"';
const INVALID = [`00-${TRACE.toUpperCase()}-${SPAN}-01`, `ff-${TRACE}-${SPAN}-01`, `00-${TRACE}-${SPAN}-01-x`];

let seen: SharedResults;

tracing.before(async () => {
	const upstreamSaw: IncomingHttpHeaders[] = [];
	const upstream = createServer((request, response) => {
		upstreamSaw.push(request.headers);
		response.end('from upstream');
	}).listen(0, '127.0.0.1');
	await once(upstream, 'listening');
	const { port: upstreamPort } = upstream.address() as AddressInfo;
	const site = `log
	@plain not path /api/*
	tracing @plain
	tracing /api/* {
		span "api {http.request.header.X-Name}"
		span_attributes {
			status {http.response.status}
			tenant "t-{http.request.header.X-Name}"
			http.route /api
		}
	}
	handle_errors {
		respond oops 503
	}
	error /api/* no 500
	header /up/* X-Trace "{vars.trace_id} {http.vars.span_id}"
	reverse_proxy /up/* 127.0.0.1:${upstreamPort}
	reverse_proxy /again 127.0.0.1:1 127.0.0.1:${upstreamPort} {
		lb_policy first
		lb_retries 1
	}
	${CONTEXT}`;
	const names = { OTEL_SERVICE_NAME: 'shop', OTEL_RESOURCE_ATTRIBUTES: 'team=web' };
	try {
		await withTracing(site, names, async ({ get, port, log, runtime }, collector) => {
			const before = Date.now();
			const answer = await get('/up/a%20b?q=1&sig=secret', { 'user-agent': 'test/1' });
			const ids = answer.headers.get('x-trace')!.split(' ') as [string, string];
			const bodies: { [name: string]: string } = { first: answer.body };
			const ask = async (name: string, headers: { [name: string]: string }, path = '/') => {
				bodies[name] = (await get(path, headers)).body;
			};
			await ask('continued', { traceparent: `00-${TRACE}-${SPAN}-03`, tracestate: 'a=1 , b@c=2' });
			for (const traceparent of INVALID) await ask(traceparent, { traceparent, tracestate: 'a=1' });
			const field = `traceparent: 00-${TRACE}-${SPAN}-01\r\n`;
			bodies.twice = await rawExchange(port, `GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${field}${field}\r\n`);
			await ask('bad state', { traceparent: `00-${TRACE}-${SPAN}-01`, tracestate: 'a=1,a=2' });
			await ask('unsampled', { traceparent: `00-${TRACE}-${SPAN}-00` });
			await ask('again', {}, '/again');
			await ask('named', { 'x-name': '{env.PATH}' }, '/api/x');
			await eventually('the spans are received', () => collector.spans.length === 12);
			// The collector may receive the spans before the exporter has read the collector's response.
			await eventually('the spans are counted', async () => /exported_total 12$/m.test(await runtime.metrics()));
			await eventually(
				'the entries are logged',
				() => log.entries.filter(entry => entry.traceID !== undefined).length >= 10,
			);
			seen = {
				upstream: upstreamSaw[0]!,
				first: { ids, before, port, up: upstreamPort },
				bodies,
				spans: collector.spans,
				request: collector.requests[0]!,
				entries: log.entries,
				metrics: await runtime.metrics(),
			};
		});
	} finally {
		upstream.closeAllConnections();
		upstream.close();
	}
});

const spanOf = (name: string): ReceivedSpan => {
	const id = /^00-[0-9a-f]{32}-([0-9a-f]{16})/.exec(seen.bodies[name]!)![1];
	return seen.spans.find(({ spanId }) => spanId === id)!;
};

tracing('a new trace is started, propagated to the upstream, exported and logged', () => {
	const [traceId, spanId] = seen.first.ids;
	assert.match(traceId, /^[0-9a-f]{32}$/);
	assert.match(spanId, /^[0-9a-f]{16}$/);
	const sent = seen.spans.find(one => one.kind === 3 && one.attributes['http.response.status_code'] === 200)!;
	assert.is(seen.upstream.traceparent, `00-${traceId}-${sent.spanId}-01`);
	assert.equal([sent.traceId, sent.parentSpanId, sent.name, sent.status], [traceId, spanId, 'GET', 0]);
	assert.is(seen.upstream.tracestate, undefined);
	const span = seen.spans.find(one => one.spanId === spanId)!;
	assert.is(seen.request.url, '/v1/traces');
	assert.is(seen.request.headers['content-type'], 'application/x-protobuf');
	assert.equal([span.traceId, span.parentSpanId], [traceId, '']);
	assert.equal([span.name, span.kind, span.status], ['GET', 2, 0]);
	const start = Number(span.start / 1_000_000n);
	assert.ok(start >= seen.first.before - 1000 && start <= Date.now() + 1000, `started at ${start}`);
	assert.ok(span.end > span.start);
	assert.is(span.resource['service.name'], 'shop');
	assert.is(span.resource.team, 'web');
	assert.is(span.resource['telemetry.sdk.name'], 'opentelemetry');
	const { 'network.peer.port': peerPort, ...attributes } = span.attributes;
	assert.type(peerPort, 'number');
	assert.equal(attributes, {
		'http.request.method': 'GET',
		'url.scheme': 'http',
		'url.path': '/up/a%20b',
		'url.query': 'q=1&sig=REDACTED',
		'server.address': '127.0.0.1',
		'server.port': seen.first.port,
		'client.address': '127.0.0.1',
		'network.protocol.version': '1.1',
		'network.peer.address': '127.0.0.1',
		'user_agent.original': 'test/1',
		'http.request.body.size': 0,
		'http.response.body.size': 13,
		'http.response.status_code': 200,
	});
	assert.ok(seen.entries.some(entry => entry.traceID === traceId && entry.spanID === spanId));
	assert.match(seen.metrics, /^svc_trace_spans_exported_total 12$/m);
	assert.match(seen.metrics, /^svc_trace_spans_dropped_total 0$/m);
});

tracing('each upstream attempt is a child span of the request', () => {
	const attempts = seen.spans.filter(
		({ kind, attributes }) => kind === 3 && attributes['server.port'] !== seen.first.up,
	);
	const [failed, ...none] = attempts;
	assert.is(none.length, 0);
	assert.equal(failed!.attributes, {
		'http.request.method': 'GET',
		'server.address': '127.0.0.1',
		'server.port': 1,
		'error.type': 'connect',
	});
	assert.is(failed!.status, 2);
	const second = seen.spans.find(({ kind, parentSpanId }) => kind === 3 && parentSpanId === failed!.parentSpanId)!;
	const again = seen.spans.find(({ attributes }) => attributes['http.request.resend_count'] === 1)!;
	assert.equal([again.parentSpanId, second.parentSpanId], [failed!.parentSpanId, failed!.parentSpanId]);
	assert.equal(again.attributes, {
		'http.request.method': 'GET',
		'server.address': '127.0.0.1',
		'server.port': seen.first.up,
		'http.request.resend_count': 1,
		'http.response.status_code': 200,
		'network.protocol.version': '1.1',
	});
});

tracing("a caller's trace is continued, including its state", () => {
	const [sent, state] = seen.bodies.continued!.split(' ') as [string, string];
	assert.match(sent, new RegExp(`^00-${TRACE}-[0-9a-f]{16}-03$`));
	assert.is(state, 'a=1,b@c=2');
	const span = spanOf('continued');
	assert.equal([span.traceId, span.parentSpanId, span.traceState], [TRACE, SPAN, 'a=1,b@c=2']);
	// The flags mean that the trace is sampled, that its ID is random, and that the parent span is known to be remote.
	assert.is(span.flags, 0x303);
});

tracing("an invalid trace context starts a new trace without the caller's state", () => {
	for (const traceparent of INVALID) {
		assert.match(seen.bodies[traceparent]!, /^00-[0-9a-f]{32}-[0-9a-f]{16}-01 $/);
		assert.not.match(seen.bodies[traceparent]!, TRACE);
		assert.is(spanOf(traceparent).parentSpanId, '');
	}
	assert.not.match(seen.bodies.twice!, TRACE);
	assert.match(seen.bodies['bad state']!, new RegExp(`^00-${TRACE}-[0-9a-f]{16}-01 $`));
	assert.is(spanOf('bad state').parentSpanId, SPAN);
});

tracing('a trace that the caller does not sample is not recorded, and the flag is propagated', () => {
	assert.match(seen.bodies.unsampled!, new RegExp(`^00-${TRACE}-[0-9a-f]{16}-00 $`));
	assert.is(spanOf('unsampled'), undefined);
});

tracing(
	'span names and attributes come from the configuration, and placeholders in client input are not expanded',
	() => {
		assert.is(seen.bodies.named, 'oops');
		const span = seen.spans.find(({ name }) => name.startsWith('api'))!;
		assert.equal([span.name, span.status], ['api {env.PATH}', 2]);
		const { status, tenant, 'http.route': route, 'error.type': type } = span.attributes;
		assert.equal([status, tenant, route, type], [503, 't-{env.PATH}', '/api', '503']);
		assert.equal(
			seen.entries.filter(entry => entry.level === 'warn'),
			[],
		);
	},
);

tracing('without a collector, requests are served, and spans are dropped, counted and reported once', async () => {
	const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://user:pw@127.0.0.1:1', OTEL_EXPORTER_OTLP_TIMEOUT: '50' };
	await withTracing('tracing\nrespond ok', environment, async ({ get, log, runtime }) => {
		for (let i = 0; i < 3; i++) assert.is((await get('/')).body, 'ok');
		await eventually('drops are counted', async () =>
			/^svc_trace_spans_dropped_total [1-3]$/m.test(await runtime.metrics()),
		);
		const logged = log.entries.filter(({ logger }) => logger === 'tracing');
		assert.is(logged.length, 1, JSON.stringify(logged));
		assert.is(logged[0]!.msg, 'spans could not be exported');
		assert.not.match(log.text(), 'user:pw');
	});
});

tracing(
	'remaining spans are exported when the server stops, and invalid environment variables are reported',
	async () => {
		const environment = {
			OTEL_BSP_SCHEDULE_DELAY: '60000',
			OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
			OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
			OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json',
			OTEL_TRACES_SAMPLER: 'sometimes',
		};
		await withTracing('tracing\nrespond ok', environment, async ({ get, runtime, log }, collector) => {
			await get('/');
			await get('/');
			await runtime.stop();
			assert.is(collector.spans.length, 2);
			assert.is(collector.requests.length, 1);
			const { headers } = collector.requests[0]!;
			assert.equal([headers['content-type'], headers['content-encoding']], ['application/json', 'gzip']);
			assert.is(collector.spans[0]!.resource['service.name'], 'svc');
			const logged = log.entries.filter(({ logger }) => logger === 'tracing').map(({ msg }) => msg as string);
			assert.is(logged.length, 1, JSON.stringify(logged));
			assert.match(logged[0]!, 'OTEL_TRACES_SAMPLER');
		});
	},
);

tracing('the span queue does not exceed its limit', async () => {
	const logged: string[] = [];
	const environment = { OTEL_BSP_MAX_QUEUE_SIZE: '2', OTEL_TRACES_EXPORTER: 'none' };
	const spans = new SpanExport(environment, (_, message) => logged.push(message));
	spans.queueSpans('{},{},{}', 3);
	assert.is(spans.droppedCount, 1);
	spans.queueSpans('{}', 1);
	assert.is(spans.droppedCount, 2);
	assert.equal(logged, ['spans were dropped: they come faster than they are exported']);
	await spans.close(10);
});

tracing.run();
