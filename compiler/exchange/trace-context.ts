/** W3C Trace Context: strict parsing of `traceparent` and `tracestate` (https://www.w3.org/TR/trace-context-2/). */
import { trimBlanks } from './field-syntax.ts';
import type { HeaderList } from './header-list.ts';

/** The caller's trace and span. */
export interface TraceParent {
	/** 32 lower-case hexadecimal digits, not all zero. */
	readonly traceId: string;
	/** The caller's span: 16 lower-case hexadecimal digits, not all zero. */
	readonly parentId: string;
	/** A combination of {@link SAMPLED_FLAG} and {@link RANDOM_FLAG}. */
	readonly flags: number;
}

/** Trace flag: the caller records the trace. */
export const SAMPLED_FLAG = 1;
/** Trace flag: the trace ID is random. */
const RANDOM_FLAG = 2;

const TRACEPARENT_PATTERN = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const ZERO_TRACE_ID = '0'.repeat(32);
const ZERO_SPAN_ID = '0'.repeat(16);

/** Parses `traceparent`. Returns undefined if it is invalid; a new trace must then be started (§3.2). */
export function parseTraceParent(value: string): TraceParent | undefined {
	const match = TRACEPARENT_PATTERN.exec(value);
	if (!match) return undefined;
	const [, version, traceId, parentId, flags, suffix] = match as unknown as [
		string,
		string,
		string,
		string,
		string,
		string?,
	];
	// Version ff is invalid. Later versions may append data after the flags, which must be ignored here.
	if (version === 'ff' || (version === '00' && suffix !== undefined)) return undefined;
	if (traceId === ZERO_TRACE_ID || parentId === ZERO_SPAN_ID) return undefined;
	return { traceId, parentId, flags: Number.parseInt(flags, 16) & (SAMPLED_FLAG | RANDOM_FLAG) };
}

/** Maximum number of members of a `tracestate` (§3.3.1.1). */
const MAX_STATE_MEMBERS = 32;
const STATE_KEY_PATTERN = /^[a-z0-9][a-z0-9_\-*/@]{0,255}$/;
/** Matches printable ASCII except comma and equals sign, not ending with a space. */
const STATE_VALUE_PATTERN = /^[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;

/**
 * Parses `tracestate`, whose fields have been joined by commas. Returns undefined if it is empty, or if it is invalid and must not
 * be forwarded.
 */
export function parseTraceState(value: string): string | undefined {
	const keys = new Set<string>();
	const members: string[] = [];
	for (const part of value.split(',')) {
		const member = trimBlanks(part);
		if (member === '') continue;
		const equals = member.indexOf('=');
		const key = member.slice(0, Math.max(equals, 0));
		if (!STATE_KEY_PATTERN.test(key) || !STATE_VALUE_PATTERN.test(member.slice(equals + 1)) || keys.has(key))
			return undefined;
		if (keys.add(key).size > MAX_STATE_MEMBERS) return undefined;
		members.push(member);
	}
	return members.length === 0 ? undefined : members.join(',');
}

/** Returns the trace context that a request carries; undefined if it carries none or an invalid one. */
export function readTraceContext(
	headers: HeaderList,
): { readonly parent: TraceParent; readonly state: string | undefined } | undefined {
	const parentFields = headers.getAll('traceparent');
	const parent = parentFields.length === 1 ? parseTraceParent(parentFields[0]!) : undefined;
	if (!parent) return undefined;
	const state = headers.getCombined('tracestate');
	return { parent, state: state === undefined ? undefined : parseTraceState(state) };
}

/**
 * Sets the trace context of a request, in version 00 and with lower-case names (§3.2.1). `spanId` is the span to which the request
 * belongs.
 */
export function writeTraceContext(
	headers: HeaderList,
	traceId: string,
	spanId: string,
	flags: number,
	state: string | undefined,
): void {
	headers.set('traceparent', `00-${traceId}-${spanId}-0${flags}`);
	if (state === undefined) headers.delete('tracestate');
	else headers.set('tracestate', state);
}
