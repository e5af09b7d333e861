/**
 * The handler `trace_request`: continues or starts a trace, propagates it to upstreams, and reports the span when the exchange
 * has ended.
 */

import type { Exchange } from '../../../exchange/exchange.ts';
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

/** The variable with the trace ID: `{http.vars.trace_id}`. */
const TRACE_ID = 'trace_id';
/** The variable with the span ID: `{http.vars.span_id}`. */
const SPAN_ID = 'span_id';

type Attribute = readonly [name: string, read: (x: Exchange) => SpanValue];

/** Compiles a `trace_request` step. */
export function compileTracing(step: TraceRequestStep, cx: CompileContext, next: Handler): Handler {
	const tracer = cx.lease('tracer', {});
	const name = step.span === undefined ? undefined : cx.template(step.span, 'empty');
	const attributes = Object.entries(step.attributes ?? {}).map(
		([key, value]): Attribute => [key, compileAttribute(value, cx)],
	);
	return x => {
		const { request } = x;
		const caller = readTraceContext(request.headers);
		const parent = caller?.parent;
		const traceId = parent?.traceId ?? tracer.newTraceId();
		const spanId = tracer.newSpanId();
		const sampled = tracer.isSampled(traceId, parent && (parent.flags & SAMPLED_FLAG) !== 0);
		// Keeps the caller's flag about the randomness of the ID. The sampling decision is this server's own.
		const flags = ((parent?.flags ?? 0) & ~SAMPLED_FLAG) | (sampled ? SAMPLED_FLAG : 0);
		writeTraceContext(request.headers, traceId, spanId, flags, caller?.state);
		// A span whose parent is another span of this server is not a server span.
		const inner = x.variable(SPAN_ID) !== undefined && x.variable(SPAN_ID) === parent?.parentId;
		x.variables.set(TRACE_ID, traceId);
		x.variables.set(SPAN_ID, spanId);
		x.log ??= {};
		x.log.fields ??= {};
		x.log.fields.traceID = traceId;
		x.log.fields.spanID = spanId;
		if (sampled) {
			enterTraceScope(x, new TraceScope(tracer, traceId, spanId, flags, caller?.state));
			const title = truncateAttribute(name ? name.render(x) : '') || defaultSpanName(x.received.method);
			const span = { traceId, spanId, flags, parent, inner, title, state: caller?.state };
			x.finishListeners ??= [];
			x.finishListeners.push(ended => finish(ended, span));
		}
		return next(x);
	};

	function finish(x: Exchange, span: Begun): void {
		const values = requestAttributes(x, cx.clientIp(x));
		for (const [key, read] of attributes) {
			const value = read(x);
			// The value is defined as a property, so that `__proto__` is a name like any other.
			Object.defineProperty(values, key, { value, enumerable: true, configurable: true, writable: true });
		}
		const { parent } = span;
		const duration = performance.now() - x.startedAt;
		tracer.record({
			name: span.title,
			kind: span.inner ? 'internal' : 'server',
			traceId: span.traceId,
			spanId: span.spanId,
			flags: span.flags,
			state: span.state,
			parentId: parent?.parentId,
			parentIsRemote: parent !== undefined && !span.inner,
			startedAt: x.now() - duration,
			duration,
			isError: x.aborted || x.response.status >= 500,
			attributes: values,
		});
	}
}

/** A span whose exchange is still in progress. */
interface Begun {
	readonly traceId: string;
	readonly spanId: string;
	readonly flags: number;
	readonly parent: TraceParent | undefined;
	readonly inner: boolean;
	readonly title: string;
	readonly state: string | undefined;
}

/** Compiles an attribute's value: a single placeholder keeps its type, and everything else becomes a string. */
function compileAttribute(value: string, cx: CompileContext): (x: Exchange) => SpanValue {
	const whole = /^\{([^{}\\]+)\}$/.exec(value)?.[1];
	const read = whole === undefined ? undefined : cx.placeholder(whole);
	if (read) {
		const text = cx.template(value, 'empty');
		return x => {
			const found = read(x);
			if (typeof found === 'boolean' || (typeof found === 'number' && Number.isFinite(found))) return found;
			return truncateAttribute(text.render(x));
		};
	}
	const template = cx.template(value, 'empty');
	if (template.constant !== undefined) {
		const constant = truncateAttribute(template.constant);
		return () => constant;
	}
	return x => truncateAttribute(template.render(x));
}
