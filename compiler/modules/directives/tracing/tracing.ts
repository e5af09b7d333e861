/** `tracing`: a span of each request, in the trace that its caller began or a new one. */
import type { Step } from '../../../document/document.ts';
import { handlerDirective } from '../directive.ts';
import { compileTracing } from './tracing-handler.ts';

/** A step of the handler `trace_request`. */
export interface TraceRequestStep extends Step {
	readonly handler: 'trace_request';
	/** Name of the span, with placeholders; the method if left out. */
	readonly span?: string;
	/** Attributes of the span by name; values may hold placeholders. */
	readonly attributes?: { readonly [name: string]: string };
}

const USAGE = 'tracing [matcher] [{ span <name>; span_attributes { <key> <value>… } }]';

/** `tracing [matcher] [{ … }]`. */
export const tracing = handlerDirective<TraceRequestStep>({
	kind: 'handler',
	id: 'trace_request',
	names: { configfile: ['tracing'], compatfile: ['tracing'] },
	usage: USAGE,
	summary: 'Makes a span of each request, for a collector of OpenTelemetry.',
	documentation: `The fields \`traceparent\` and \`tracestate\` of a request (W3C Trace Context) are read strictly: a valid one is continued, without
one, or with one that is not valid, a trace begins. Each request to an upstream, those of retries and of \`forward_auth\` too, has a span of
its own inside that of the request; upstreams are sent the same fields with it as their parent.

| Line | Meaning |
| --- | --- |
| \`span NAME\` | Name of the span, with placeholders as they are when the directive runs; the method if left out. Names should be few. |
| \`span_attributes { KEY VALUE… }\` | Attributes beside those of the HTTP semantic conventions, one a line; placeholders as they are when the response has been sent. |

\`{http.vars.trace_id}\` and \`{http.vars.span_id}\` are the ids; entries of access and error logs have them as \`traceID\` and \`spanID\`.

The environment of the process says where spans go, as for every program that uses OpenTelemetry:

| Variable | Meaning |
| --- | --- |
| \`OTEL_EXPORTER_OTLP_ENDPOINT\`, \`OTEL_EXPORTER_OTLP_TRACES_ENDPOINT\` | The collector; \`http://localhost:4318\` if left out |
| \`OTEL_EXPORTER_OTLP_PROTOCOL\` | \`http/protobuf\`, which holds if left out, or \`http/json\` |
| \`OTEL_EXPORTER_OTLP_HEADERS\`, \`_TIMEOUT\`, \`_COMPRESSION\`, \`_CERTIFICATE\`, \`_CLIENT_KEY\`, \`_CLIENT_CERTIFICATE\` | How it is spoken to |
| \`OTEL_SERVICE_NAME\`, \`OTEL_RESOURCE_ATTRIBUTES\` | What this server is called; \`svc\` if left out |
| \`OTEL_TRACES_SAMPLER\`, \`OTEL_TRACES_SAMPLER_ARG\` | Which requests are recorded; \`parentbased_always_on\` if left out |
| \`OTEL_BSP_SCHEDULE_DELAY\`, \`_MAX_QUEUE_SIZE\`, \`_MAX_EXPORT_BATCH_SIZE\`, \`_EXPORT_TIMEOUT\` | How spans are batched |
| \`OTEL_TRACES_EXPORTER=none\`, \`OTEL_SDK_DISABLED=true\` | Nothing is exported |

Spans travel in batches outside the request's path. Those that a collector does not take fast enough are dropped and counted
(\`svc_trace_spans_dropped_total\`).

\`\`\`
tracing /api/* {
	span api
	span_attributes {
		tenant {http.request.header.X-Tenant}
	}
}
\`\`\`
`,
	matcherToken: 'optional',
	order: { rank: 10 },
	lower: ({ line, args }, cx) => {
		cx.count(line, args, 0, 0, USAGE);
		const step: { -readonly [K in keyof TraceRequestStep]: TraceRequestStep[K] } = { handler: 'trace_request' };
		const attributes: { [name: string]: string } = {};
		cx.subdirectives(
			line.block,
			{
				span: (words, at) => {
					cx.noBlock(at);
					if (cx.count(at, words, 1, 1, 'span <name>')) step.span = cx.template(words[0]!);
				},
				span_attributes: (words, at) => {
					cx.count(at, words, 0, 0, 'span_attributes { <key> <value>… }');
					for (const inner of at.block?.lines ?? []) {
						cx.noBlock(inner);
						const [key, ...values] = inner.words;
						if (!key || !cx.count(inner, values, 1, 1, '<key> <value>')) continue;
						if (key.text === '') {
							cx.problem('error', 'tracing/no-key', key.span, 'An attribute needs a name.');
							continue;
						}
						const value = cx.template(values[0]!);
						// `__proto__` is a name like any other.
						Object.defineProperty(attributes, key.text, {
							value,
							enumerable: true,
							configurable: true,
							writable: true,
						});
					}
				},
			},
			'tracing',
		);
		if (Object.keys(attributes).length > 0) step.attributes = attributes;
		return cx.origin<TraceRequestStep>(step, line.span);
	},
	schema: {
		properties: {
			span: {
				type: 'string',
				minLength: 1,
				description: 'Name of the span, with placeholders; the method of the request if left out.',
			},
			attributes: {
				type: 'object',
				additionalProperties: { type: 'string', secret: 'by-key' },
				description: 'Attributes of the span by name; values may hold placeholders.',
			},
		},
	},
	compile: compileTracing,
});
