/** `Max-Forwards`: limits how many servers may forward a TRACE or OPTIONS request (RFC 9110 §7.6.2). */
import type { Exchange } from '../../../exchange/exchange.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';

/** Maximum value of `Max-Forwards` that is sent to upstreams, even if the client sent a larger one. */
const MAX_SENT_FORWARDS: number = 2 ** 31 - 1;

/** Value of `Allow` in the response to OPTIONS: the methods that a proxy forwards. */
const FORWARDED_METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, TRACE';

/**
 * Fields shown in the response to TRACE. All other fields are omitted because they may contain secrets of the client, of proxies in
 * front of this server, or of directives that added fields (RFC 9110 §9.3.8).
 */
const TRACED_FIELDS: ReadonlySet<string> = new Set(['via', 'max-forwards', 'user-agent', 'accept', 'accept-encoding']);

/** Reports whether `Max-Forwards` applies to a method. */
export function usesMaxForwards(method: string): boolean {
	return method === 'OPTIONS' || method === 'TRACE';
}

/**
 * Answers a request whose `Max-Forwards` is 0, and returns true; returns false for any other request. Must be called only for
 * methods for which {@link usesMaxForwards} is true.
 */
export function answerLastForward({ request, received, response }: Exchange): boolean {
	if (parseMaxForwards(request.headers) !== 0) return false;
	response.status = 200;
	if (request.method === 'OPTIONS') {
		response.headers.set('Allow', FORWARDED_METHODS);
		return true;
	}
	const target = received.query === undefined ? received.path : `${received.path}?${received.query}`;
	let messageHead = `TRACE ${target} HTTP/1.1\r\nHost: ${received.authority}\r\n`;
	for (const [name, value] of request.headers) {
		if (TRACED_FIELDS.has(name.toLowerCase())) messageHead += `${name}: ${value}\r\n`;
	}
	response.headers.set('Content-Type', 'message/http');
	response.headers.set('X-Content-Type-Options', 'nosniff');
	response.body = Buffer.from(`${messageHead}\r\n`, 'latin1');
	return true;
}

/** Decrements `Max-Forwards` in the header fields of a forwarded request. */
export function decrementMaxForwards(headers: HeaderList): void {
	const remainingForwards = parseMaxForwards(headers);
	if (remainingForwards !== undefined && remainingForwards > 0)
		headers.set('Max-Forwards', String(Math.min(remainingForwards - 1, MAX_SENT_FORWARDS)));
}

/** Returns the value of `Max-Forwards`; undefined if the field is absent, or is not a number and therefore ignored. */
function parseMaxForwards(headers: HeaderList): number | undefined {
	const value = headers.getCombined('max-forwards');
	return value !== undefined && /^\d+$/.test(value) ? Number(value) : undefined;
}
