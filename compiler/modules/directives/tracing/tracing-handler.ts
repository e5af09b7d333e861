/**
 * The handler `trace_request`: continues or starts a trace, propagates it to upstreams, and reports the span when the exchange
 * has ended.
 */

import type { Exchange } from '../../../exchange/exchange.ts';
import { removeFromConnection } from '../../../exchange/forwarded-request.ts';
import type { Handler } from '../../../exchange/handler.ts';
import type { SpanValue } from '../../../exchange/leases.ts';
import {
	readTraceContext,
	SAMPLED_FLAG,
	type TraceParent,
	writeTraceContext,
} from '../../../exchange/trace-context.ts';
import { enterTraceScope, TraceScope } from '../../../exchange/trace-scope.ts';
import type { CompileContext } from '../../contract/compile-context.ts';
import { defaultSpanName, requestAttributes, truncateAttribute } from './span-attributes.ts';
import type { TraceRequestStep } from './tracing.ts';

/** Names of the fields that {@link writeTraceContext} sets. */
const TRACE_FIELDS = ['traceparent', 'tracestate'];

/** Variable that holds the trace ID: `{http.vars.trace_id}`. */
const TRACE_ID_VARIABLE = 'trace_id';
/** Variable that holds the span ID: `{http.vars.span_id}`. */
const SPAN_ID_VARIABLE = 'span_id';

type CompiledAttribute = readonly [name: string, read: (x: Exchange) => SpanValue];

export function compileTracing(step: TraceRequestStep, cx: CompileContext, next: Handler): Handler {
	const tracer = cx.lease('tracer', {});
	const nameTemplate = step.span === undefined ? undefined : cx.template(step.span, 'empty');
	const extraAttributes = Object.entries(step.attributes ?? {}).map(
		([key, value]): CompiledAttribute => [key, compileAttribute(value, cx)],
	);
	return x => {
		const { request } = x;
		const callerContext = readTraceContext(request.headers);
		const parentSpan = callerContext?.parent;
		const traceId = parentSpan?.traceId ?? tracer.newTraceId();
		const spanId = tracer.newSpanId();
		const isSampled = tracer.isSampled(traceId, parentSpan && (parentSpan.flags & SAMPLED_FLAG) !== 0);
		// The caller's flags are kept, except for the sampling flag: this server decides by itself whether to sample.
		const flags = ((parentSpan?.flags ?? 0) & ~SAMPLED_FLAG) | (isSampled ? SAMPLED_FLAG : 0);
		writeTraceContext(request.headers, traceId, spanId, flags, callerContext?.state);
		removeFromConnection(request.headers, () => TRACE_FIELDS);
		// If the parent is another span of this server, the span is internal and not a server span.
		const isNested =
			x.variable(SPAN_ID_VARIABLE) !== undefined && x.variable(SPAN_ID_VARIABLE) === parentSpan?.parentId;
		x.variables.set(TRACE_ID_VARIABLE, traceId);
		x.variables.set(SPAN_ID_VARIABLE, spanId);
		x.log ??= {};
		x.log.fields ??= {};
		x.log.fields.traceID = traceId;
		x.log.fields.spanID = spanId;
		if (isSampled) {
			enterTraceScope(x, new TraceScope(tracer, traceId, spanId, flags, callerContext?.state));
			const spanName =
				truncateAttribute(nameTemplate ? nameTemplate.render(x) : '') || defaultSpanName(x.received.method);
			const pendingSpan = {
				traceId,
				spanId,
				flags,
				parent: parentSpan,
				isNested,
				spanName,
				state: callerContext?.state,
			};
			x.finishListeners ??= [];
			x.finishListeners.push(endedExchange => recordSpan(endedExchange, pendingSpan));
		}
		return next(x);
	};

	function recordSpan(x: Exchange, span: PendingSpan): void {
		const spanAttributes = requestAttributes(x, cx.clientIp(x));
		for (const [key, readValue] of extraAttributes) {
			const value = readValue(x);
			// The value is defined as a property, so that `__proto__` is a name like any other.
			Object.defineProperty(spanAttributes, key, { value, enumerable: true, configurable: true, writable: true });
		}
		const { parent } = span;
		const durationMs = performance.now() - x.startedAt;
		tracer.record({
			name: span.spanName,
			kind: span.isNested ? 'internal' : 'server',
			traceId: span.traceId,
			spanId: span.spanId,
			flags: span.flags,
			state: span.state,
			parentId: parent?.parentId,
			parentIsRemote: parent !== undefined && !span.isNested,
			startedAt: x.now() - durationMs,
			duration: durationMs,
			isError: x.isAborted || x.response.status >= 500,
			attributes: spanAttributes,
		});
	}
}

/** A span whose exchange is still in progress. */
interface PendingSpan {
	readonly traceId: string;
	readonly spanId: string;
	readonly flags: number;
	readonly parent: TraceParent | undefined;
	readonly isNested: boolean;
	readonly spanName: string;
	readonly state: string | undefined;
}

/**
 * Compiles the value of an attribute. If it is a single placeholder, a number or boolean keeps its type; all other values become
 * strings.
 */
function compileAttribute(value: string, cx: CompileContext): (x: Exchange) => SpanValue {
	const placeholderName = /^\{([^{}\\]+)\}$/.exec(value)?.[1];
	const readPlaceholder = placeholderName === undefined ? undefined : cx.placeholder(placeholderName);
	if (readPlaceholder) {
		const textTemplate = cx.template(value, 'empty');
		return x => {
			const placeholderValue = readPlaceholder(x);
			if (
				typeof placeholderValue === 'boolean' ||
				(typeof placeholderValue === 'number' && Number.isFinite(placeholderValue))
			)
				return placeholderValue;
			return truncateAttribute(textTemplate.render(x));
		};
	}
	const template = cx.template(value, 'empty');
	if (template.constant !== undefined) {
		const constant = truncateAttribute(template.constant);
		return () => constant;
	}
	return x => truncateAttribute(template.render(x));
}
