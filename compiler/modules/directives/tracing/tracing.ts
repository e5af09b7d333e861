/** `tracing`: records a span for each request, in its caller's trace or a new one. */
import type { Step } from '../../../document/document.ts';
import { handlerDirective } from '../../contract/directive.ts';
import { compileTracing } from './tracing-handler.ts';

export interface TraceRequestStep extends Step {
	readonly handler: 'trace_request';
	/** Name of the span, with placeholders; by default, the method. */
	readonly span?: string;
	/** Attributes of the span by name; values may contain placeholders. */
	readonly attributes?: { readonly [name: string]: string };
}

const USAGE = 'tracing [matcher] [{ span <name>; span_attributes { <key> <value>… } }]';

/** Syntax: `tracing [matcher] [{ … }]`. */
export const tracing = handlerDirective<TraceRequestStep>({
	kind: 'handler',
	id: 'trace_request',
	names: { configfile: ['tracing'], compatfile: ['tracing'] },
	usage: USAGE,
	summary: 'Records a span for each request, for an OpenTelemetry collector.',
	documentation: `The fields \`traceparent\` and \`tracestate\` of a request (W3C Trace Context) are parsed strictly: a valid trace is continued; without
one, or if it is invalid, a new trace starts. Each request to an upstream, including retries and \`forward_auth\`, gets its own
child span; upstreams receive the same fields with that span as their parent.

| Line | Meaning |
| --- | --- |
| \`span NAME\` | Name of the span, with placeholders, which are evaluated when the directive runs; default the method. Use few different names. |
| \`span_attributes { KEY VALUE… }\` | Attributes in addition to those of the HTTP semantic conventions, one per line; placeholders are evaluated when the response has been sent. |

\`{http.vars.trace_id}\` and \`{http.vars.span_id}\` are the IDs; access and error log entries have them as \`traceID\` and \`spanID\`.

Environment variables configure the export, as for every program that uses OpenTelemetry:

| Variable | Meaning |
| --- | --- |
| \`OTEL_EXPORTER_OTLP_ENDPOINT\`, \`OTEL_EXPORTER_OTLP_TRACES_ENDPOINT\` | The collector; default \`http://localhost:4318\` |
| \`OTEL_EXPORTER_OTLP_PROTOCOL\` | \`http/protobuf\` (default) or \`http/json\` |
| \`OTEL_EXPORTER_OTLP_HEADERS\`, \`_TIMEOUT\`, \`_COMPRESSION\`, \`_CERTIFICATE\`, \`_CLIENT_KEY\`, \`_CLIENT_CERTIFICATE\` | Connection to the collector |
| \`OTEL_SERVICE_NAME\`, \`OTEL_RESOURCE_ATTRIBUTES\` | Name of this server; default \`svc\` |
| \`OTEL_TRACES_SAMPLER\`, \`OTEL_TRACES_SAMPLER_ARG\` | Which requests are recorded; default \`parentbased_always_on\` |
| \`OTEL_BSP_SCHEDULE_DELAY\`, \`_MAX_QUEUE_SIZE\`, \`_MAX_EXPORT_BATCH_SIZE\`, \`_EXPORT_TIMEOUT\` | How spans are batched |
| \`OTEL_TRACES_EXPORTER=none\`, \`OTEL_SDK_DISABLED=true\` | Disables the export |

Spans are exported in batches, off the request path. If a collector is too slow, spans are dropped and counted
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
	logFieldsOf: () => ['traceID', 'spanID'],
	order: { rank: 10 },
	lower: ({ line, args }, cx) => {
		cx.count(line, args, 0, 0, USAGE);
		const step: { -readonly [K in keyof TraceRequestStep]: TraceRequestStep[K] } = { handler: 'trace_request' };
		const attributes: { [name: string]: string } = {};
		cx.subdirectives(
			line.block,
			{
				span: (words, innerLine) => {
					cx.noBlock(innerLine);
					if (cx.count(innerLine, words, 1, 1, 'span <name>')) step.span = cx.template(words[0]!);
				},
				span_attributes: (words, innerLine) => {
					cx.count(innerLine, words, 0, 0, 'span_attributes { <key> <value>… }');
					for (const attributeLine of innerLine.block?.lines ?? []) {
						cx.noBlock(attributeLine);
						const [keyWord, ...valueWords] = attributeLine.words;
						if (!keyWord || !cx.count(attributeLine, valueWords, 1, 1, '<key> <value>')) continue;
						if (keyWord.text === '') {
							cx.problem('error', 'tracing/no-key', keyWord.span, 'An attribute needs a name.');
							continue;
						}
						const value = cx.template(valueWords[0]!);
						// The value is defined as a property, so that `__proto__` is a name like any other.
						Object.defineProperty(attributes, keyWord.text, {
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
				description: 'Name of the span, with placeholders; default the request method.',
			},
			attributes: {
				type: 'object',
				additionalProperties: { type: 'string', secret: 'by-key' },
				description: 'Attributes of the span by name; values may contain placeholders.',
			},
		},
	},
	compile: compileTracing,
});
