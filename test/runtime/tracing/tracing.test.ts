/** `tracing` in a running server: context taken and passed on, spans exported to a collector, what happens when there is none. */
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { rawExchange } from '../../harness.ts';
import { eventually, type TestServer, withServer } from '../running-server.ts';
import { type OtlpReceiver, otlpReceiver } from './otlp-receiver.ts';

const tracing = suite('tracing');

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';

/** Runs a Compatfile's site on a free port with a collector. */
async function traced(
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
	// The packages read the environment of the process.
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

tracing('begins a trace, tells the upstream and the collector, and logs the ids', async () => {
	const seen: IncomingHttpHeaders[] = [];
	const upstream = createServer((request, response) => {
		seen.push(request.headers);
		response.end('from upstream');
	}).listen(0, '127.0.0.1');
	await new Promise(resolve => upstream.once('listening', resolve));
	const { port: upstreamPort } = upstream.address() as AddressInfo;
	const site = `tracing\nlog\nheader X-Trace "{vars.trace_id} {http.vars.span_id}"\nreverse_proxy 127.0.0.1:${upstreamPort}`;
	try {
		await traced(site, { OTEL_SERVICE_NAME: 'shop' }, async ({ get, port, log, runtime }, collector) => {
			const before = Date.now();
			const { headers, status } = await get('/a%20b?q=1&sig=secret', { 'user-agent': 'test/1' });
			assert.is(status, 200);
			const [traceId, spanId] = headers.get('x-trace')!.split(' ') as [string, string];
			assert.match(traceId, /^[0-9a-f]{32}$/);
			assert.match(spanId, /^[0-9a-f]{16}$/);
			assert.is(seen[0]!.traceparent, `00-${traceId}-${spanId}-01`);
			assert.is(seen[0]!.tracestate, undefined);
			await eventually('the span comes', () => collector.spans.length === 1);
			const [span] = collector.spans as [(typeof collector.spans)[0]];
			assert.is(collector.requests[0]!.url, '/v1/traces');
			assert.is(collector.requests[0]!.headers['content-type'], 'application/x-protobuf');
			assert.equal([span.traceId, span.spanId, span.parentSpanId], [traceId, spanId, '']);
			assert.equal([span.name, span.kind, span.status], ['GET', 2, 0]);
			const start = Number(span.start / 1_000_000n);
			assert.ok(start >= before - 1000 && start <= Date.now() + 1000, `began at ${start}`);
			assert.ok(span.end > span.start);
			assert.is(span.resource['service.name'], 'shop');
			assert.is(span.resource['telemetry.sdk.name'], 'opentelemetry');
			const { 'network.peer.port': peerPort, ...attributes } = span.attributes;
			assert.type(peerPort, 'number');
			assert.equal(attributes, {
				'http.request.method': 'GET',
				'url.scheme': 'http',
				'url.path': '/a%20b',
				'url.query': 'q=1&sig=REDACTED',
				'server.address': '127.0.0.1',
				'server.port': port,
				'client.address': '127.0.0.1',
				'network.protocol.version': '1.1',
				'network.peer.address': '127.0.0.1',
				'user_agent.original': 'test/1',
				'http.request.body.size': 0,
				'http.response.body.size': 13,
				'http.response.status_code': 200,
			});
			await eventually('the access entry comes', () => log.entries.some(entry => entry.traceID !== undefined));
			const entry = log.entries.find(({ traceID }) => traceID !== undefined)!;
			assert.equal([entry.traceID, entry.spanID], [traceId, spanId]);
			assert.match(await runtime.metrics(), /^svc_trace_spans_exported_total 1$/m);
		});
	} finally {
		upstream.closeAllConnections();
		upstream.close();
	}
});

tracing('continues the trace of a caller, its state included', async () => {
	const site = 'tracing\nrespond "{http.request.header.Traceparent} {http.request.header.Tracestate}"';
	await traced(site, { OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' }, async ({ get }, collector) => {
		const { body } = await get('/', { traceparent: `00-${TRACE}-${SPAN}-03`, tracestate: 'a=1 , b@c=2' });
		const [sent, state] = body.split(' ') as [string, string];
		assert.match(sent, new RegExp(`^00-${TRACE}-[0-9a-f]{16}-03$`));
		assert.is(state, 'a=1,b@c=2');
		await eventually('the span comes', () => collector.spans.length === 1);
		const [span] = collector.spans as [(typeof collector.spans)[0]];
		assert.is(collector.requests[0]!.headers['content-type'], 'application/json');
		assert.equal([span.traceId, span.spanId], [TRACE, sent.slice(36, 52)]);
		assert.equal([span.parentSpanId, span.traceState], [SPAN, 'a=1,b@c=2']);
		// Sampled, random, and: the parent is known to be remote.
		assert.is(span.flags, 0x303);
		assert.is(span.resource['service.name'], 'svc');
	});
});

tracing('begins anew where what the caller says is not valid, and forgets its state', async () => {
	const site = 'tracing\nrespond "{vars.trace_id} [{http.request.header.Tracestate}]"';
	await traced(site, { OTEL_TRACES_EXPORTER: 'none' }, async ({ port, get }, collector) => {
		for (const traceparent of [
			`00-${TRACE.toUpperCase()}-${SPAN}-01`,
			`ff-${TRACE}-${SPAN}-01`,
			`00-${TRACE}-${SPAN}-01-x`,
		]) {
			const { body } = await get('/', { traceparent, tracestate: 'a=1' });
			assert.match(body, /^[0-9a-f]{32} \[\]$/);
			assert.not.match(body, TRACE);
		}
		const field = `traceparent: 00-${TRACE}-${SPAN}-01\r\n`;
		const twice = await rawExchange(port, `GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${field}${field}\r\n`);
		assert.not.match(twice, TRACE);
		const bad = await get('/', { traceparent: `00-${TRACE}-${SPAN}-01`, tracestate: 'a=1,a=2' });
		assert.is(bad.body, `${TRACE} []`);
		assert.is(collector.requests.length, 0);
	});
});

tracing('does not record what the caller does not record, and passes that on', async () => {
	const site = 'tracing\nrespond {http.request.header.Traceparent}';
	await traced(site, {}, async ({ get }, collector) => {
		const { body } = await get('/', { traceparent: `00-${TRACE}-${SPAN}-00` });
		assert.match(body, new RegExp(`^00-${TRACE}-[0-9a-f]{16}-00$`));
		await get('/');
		await eventually('the other span comes', () => collector.spans.length === 1);
		assert.is.not(collector.spans[0]!.traceId, TRACE);
	});
});

tracing('takes name and attributes from the configuration; what visitors send is data', async () => {
	const site = `tracing /api/* {
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
	respond plain`;
	await traced(site, { OTEL_RESOURCE_ATTRIBUTES: 'team=web' }, async ({ get, log }, collector) => {
		await get('/other');
		const { status } = await get('/api/x', { 'x-name': '{env.PATH}' });
		assert.is(status, 503);
		await eventually('the span comes', () => collector.spans.length === 1);
		const [span] = collector.spans as [(typeof collector.spans)[0]];
		assert.equal([span.name, span.status], ['api {env.PATH}', 2]);
		const { status: written, tenant, 'http.route': route, 'error.type': type } = span.attributes;
		assert.equal([written, tenant, route, type], [503, 't-{env.PATH}', '/api', '503']);
		assert.is(span.resource.team, 'web');
		assert.equal(
			log.entries.filter(entry => entry.level === 'warn'),
			[],
		);
	});
});

tracing('serves on when there is no collector: spans are dropped, counted, and told of once', async () => {
	const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://user:pw@127.0.0.1:1', OTEL_EXPORTER_OTLP_TIMEOUT: '50' };
	await traced('tracing\nrespond ok', environment, async ({ get, log, runtime }) => {
		for (let i = 0; i < 3; i++) assert.is((await get('/')).body, 'ok');
		await eventually('drops are counted', async () =>
			/^svc_trace_spans_dropped_total [1-3]$/m.test(await runtime.metrics()),
		);
		const told = log.entries.filter(({ logger }) => logger === 'tracing');
		assert.is(told.length, 1, JSON.stringify(told));
		assert.is(told[0]!.msg ?? told[0]!.message, 'spans could not be exported');
		assert.not.match(log.text(), 'user:pw');
	});
});

tracing('does not let the queue grow beyond its bound', async () => {
	const environment = { OTEL_BSP_MAX_QUEUE_SIZE: '2', OTEL_BSP_SCHEDULE_DELAY: '60000' };
	await traced('tracing\nrespond ok', environment, async ({ get, runtime }, collector) => {
		// They travel to the main thread together, within half a second.
		await Promise.all([get('/'), get('/'), get('/')]);
		await eventually('two are taken', () => collector.spans.length === 2);
		assert.match(await runtime.metrics(), /^svc_trace_spans_dropped_total 1$/m);
	});
});

tracing('exports what is left when the server stops', async () => {
	const environment = { OTEL_BSP_SCHEDULE_DELAY: '60000', OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip' };
	await traced('tracing\nrespond ok', environment, async ({ get, runtime }, collector) => {
		await get('/');
		await get('/');
		await runtime.stop();
		assert.is(collector.spans.length, 2);
		assert.is(collector.requests.length, 1);
	});
});

tracing('tells what the environment gets wrong, and goes on', async () => {
	const environment = { OTEL_TRACES_SAMPLER: 'sometimes', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' };
	await traced('tracing\nrespond ok', environment, async ({ get, log }, collector) => {
		await get('/');
		await eventually('the span comes', () => collector.spans.length === 1);
		const told = log.entries.filter(({ logger }) => logger === 'tracing').map(({ msg }) => msg as string);
		assert.is(told.length, 2, JSON.stringify(told));
		assert.match(told[0]!, 'OTEL_TRACES_SAMPLER');
		assert.match(told[1]!, 'OTEL_EXPORTER_OTLP_PROTOCOL');
	});
});

tracing.run();
