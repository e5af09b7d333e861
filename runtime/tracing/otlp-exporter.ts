/** Exports spans as OTLP over HTTP, with OpenTelemetry's packages, which are loaded only if something is traced. */
import { type Attributes, DiagLogLevel, diag, type HrTime, SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { ExportResultCode, type InstrumentationScope, TraceState } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { convertLegacyHttpOptions, createOtlpHttpExportDelegate } from '@opentelemetry/otlp-exporter-base/node-http';
import { ProtobufTraceSerializer, TraceExporterMetricsHelper } from '@opentelemetry/otlp-transformer';
import {
	defaultResource,
	detectResources,
	envDetector,
	type Resource,
	resourceFromAttributes,
} from '@opentelemetry/resources';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';
import { ATTR_SERVICE_NAME } from '@opentelemetry/semantic-conventions';
import type { SpanRecord } from '../../compiler/exchange/leases.ts';

/** Sends spans to a collector. */
export interface SpanExporter {
	/**
	 * Sends the spans. Resolves when the collector has accepted them; rejects with the reason, after at most `timeoutMs`. Calls
	 * must not overlap.
	 */
	export(spans: readonly SpanRecord[], timeoutMs: number): Promise<void>;
	close(): Promise<void>;
}

/** The members that OpenTelemetry's exporters have in common. */
type ExporterDelegate = Pick<OTLPTraceExporter, 'export' | 'shutdown'>;

const INSTRUMENTATION_SCOPE: InstrumentationScope = { name: 'svc' };

/** Creates the exporter configured by `OTEL_EXPORTER_OTLP_…`; `warn` receives mistakes in the configuration. */
export function openOtlpExporter(
	environment: { readonly [name: string]: string | undefined },
	warn: (message: string) => void,
): SpanExporter {
	listenToPackages(warn);
	const delegate = createDelegate(environment, warn);
	const resource = createResource();
	return {
		export(spans, timeoutMs) {
			return new Promise((resolve, reject) => {
				const timer = setTimeout(() => reject(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
				delegate.export(
					spans.map(span => toReadableSpan(span, resource)),
					({ code, error }) => {
						clearTimeout(timer);
						if (code === ExportResultCode.SUCCESS) resolve();
						else reject(error ?? new Error('the export failed'));
					},
				);
			});
		},
		close: () => delegate.shutdown(),
	};
}

/**
 * Forwards the messages that OpenTelemetry's packages write to a global logger: problems with the environment variables and with
 * the collector's responses.
 */
function listenToPackages(warn: (message: string) => void): void {
	const forward = (message: string, ...details: unknown[]): void =>
		warn([message, ...details.filter(detail => typeof detail === 'string')].join(' '));
	const ignore = (): void => {};
	diag.setLogger(
		{ error: forward, warn: forward, info: ignore, debug: ignore, verbose: ignore },
		{ logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
	);
}

function createDelegate(
	environment: { readonly [name: string]: string | undefined },
	warn: (message: string) => void,
): ExporterDelegate {
	const protocol =
		environment.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL?.trim() || environment.OTEL_EXPORTER_OTLP_PROTOCOL?.trim();
	if (protocol === 'http/json') return new OTLPTraceExporter();
	if (protocol !== undefined && protocol !== '' && protocol !== 'http/protobuf') {
		warn(`OTEL_EXPORTER_OTLP_PROTOCOL is neither http/protobuf nor http/json: \`${protocol}\`; http/protobuf is used.`);
	}
	const options = convertLegacyHttpOptions({}, 'TRACES', 'v1/traces', { 'Content-Type': 'application/x-protobuf' });
	const delegate = createOtlpHttpExportDelegate(
		options,
		ProtobufTraceSerializer,
		'otlp_http_span_exporter',
		TraceExporterMetricsHelper,
		undefined,
	);
	return {
		export: (spans, onDone) => delegate.export(spans, onDone),
		shutdown: () => delegate.shutdown(),
	};
}

/**
 * Returns the resource that describes this process. Its service name is the program's name unless the environment sets another
 * name.
 */
function createResource(): Resource {
	return defaultResource()
		.merge(resourceFromAttributes({ [ATTR_SERVICE_NAME]: 'svc' }))
		.merge(detectResources({ detectors: [envDetector] }));
}

function toReadableSpan(span: SpanRecord, resource: Resource): ReadableSpan {
	const { traceId, state, parentId, parentIsRemote, startedAt, duration } = span;
	const traceState = state === undefined ? undefined : new TraceState(state);
	const context = { traceId, spanId: span.spanId, traceFlags: span.flags, ...(traceState ? { traceState } : {}) };
	return {
		name: span.name,
		kind: SPAN_KINDS[span.kind],
		spanContext: () => context,
		...(parentId === undefined
			? {}
			: { parentSpanContext: { traceId, spanId: parentId, traceFlags: span.flags, isRemote: parentIsRemote } }),
		startTime: toHrTime(startedAt),
		endTime: toHrTime(startedAt + duration),
		duration: toHrTime(duration),
		status: { code: span.isError ? SpanStatusCode.ERROR : SpanStatusCode.UNSET },
		attributes: span.attributes as Attributes,
		links: [],
		events: [],
		ended: true,
		resource,
		instrumentationScope: INSTRUMENTATION_SCOPE,
		droppedAttributesCount: 0,
		droppedEventsCount: 0,
		droppedLinksCount: 0,
	};
}

/** Converts milliseconds to seconds and nanoseconds. */
function toHrTime(milliseconds: number): HrTime {
	const seconds = Math.floor(milliseconds / 1000);
	return [seconds, Math.min(999_999_999, Math.round((milliseconds - seconds * 1000) * 1_000_000))];
}

const SPAN_KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL } as const;
