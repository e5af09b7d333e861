/**
 * Converts requests to bytes and responses to a form that can be compared. Also starts upstreams that describe the requests they
 * receive.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { RandomRequest } from './random-configuration.ts';

/** Response fields that differ between any two responses, or that `explain` does not predict. */
export const UNCOMPARED = new Set(['date', 'connection']);

/** Fields of upstream requests that are compared. */
export const UPSTREAM_FIELDS = [
	'host',
	'x-a',
	'x-b',
	'x-up',
	'accept',
	'cookie',
	'x-forwarded-for',
	'x-forwarded-host',
	'x-forwarded-proto',
	'via',
];

/** The parts of a response that are compared. */
export interface Answer {
	readonly status: number;
	/** The response fields, as `name: value` lines. */
	readonly fields: readonly string[];
	readonly body: string;
}

export function wireRequest({ method, target, authority, headers, body }: RandomRequest): string {
	const fields = [['Host', authority], ...headers];
	if (body !== undefined) fields.push(['Content-Length', String(Buffer.byteLength(body))]);
	return `${method} ${target} HTTP/1.1\r\n${fields.map(field => `${field.join(': ')}\r\n`).join('')}\r\n${body ?? ''}`;
}

export function parseAnswer(text: string): Answer | 'dropped' {
	if (text === '') return 'dropped';
	const end = text.indexOf('\r\n\r\n');
	const [statusLine, ...lines] = text.slice(0, end).split('\r\n') as [string, ...string[]];
	const fields = lines.map((line): [string, string] => {
		const colon = line.indexOf(':');
		return [line.slice(0, colon), line.slice(colon + 1).trim()];
	});
	const chunked = fields.some(([name, value]) => /^transfer-encoding$/i.test(name) && /^chunked$/i.test(value));
	const body = chunked ? unchunked(text.slice(end + 4)) : text.slice(end + 4);
	return { status: Number(statusLine.split(' ')[1]), fields: comparedFields(fields), body };
}

/** Returns the content of a chunked body (RFC 9112 §7.1). Invalid chunks are kept, so that they show up as a difference. */
export function unchunked(body: string): string {
	let content = '';
	for (let at = 0; ; ) {
		const size = /^([0-9a-f]+)\r\n/i.exec(body.slice(at, at + 20));
		if (!size) return body;
		const start = at + size[0].length;
		const end = start + Number.parseInt(size[1]!, 16);
		if (end === start) return content;
		content += body.slice(start, end);
		at = end + 2;
	}
}

export function comparedFields(fields: readonly (readonly [string, string])[]): string[] {
	return fields.filter(([name]) => !UNCOMPARED.has(name.toLowerCase())).map(([name, value]) => `${name}: ${value}`);
}

export function withoutLength(fields: readonly string[]): string[] {
	return fields.filter(field => !/^(?:content-length|transfer-encoding):/i.test(field));
}

/** What an upstream does instead of answering 200. */
export interface FailureMode {
	readonly status?: number;
	/** Additional response fields. */
	readonly headers?: readonly (readonly [name: string, value: string])[] | undefined;
	/** True to close the connection without an answer. */
	readonly disconnects?: boolean;
	/**
	 * The number of further requests that are treated in this way, counted over all upstreams that share this object; undefined for
	 * no limit.
	 */
	readonly remaining?: { requests: number };
}

/** An upstream that can be told to fail. */
export interface DescribingUpstream {
	readonly server: Server;
	mode: FailureMode;
	/** Descriptions of the requests that were received so far. */
	readonly received: string[];
}

/**
 * Returns the current behavior of an upstream. Once as many requests have failed as should fail, only the additional response
 * fields remain.
 */
function currentMode({ mode }: { readonly mode: FailureMode }): FailureMode {
	return mode.remaining?.requests === 0 ? { headers: mode.headers } : mode;
}

/** Starts an upstream that answers every request with a description of the request. */
export async function describingUpstream(): Promise<DescribingUpstream> {
	const upstream = { mode: {} as FailureMode, received: [] as string[] };
	const server = createServer((request, response) => {
		request.resume();
		request.on('end', () => {
			const { status = 200, headers = [], disconnects, remaining } = currentMode(upstream);
			if (remaining) remaining.requests--;
			const seen: { [name: string]: string } = {};
			for (const name of UPSTREAM_FIELDS) {
				const value = request.headers[name];
				if (value !== undefined) seen[name] = Array.isArray(value) ? value.join(', ') : value;
			}
			const { port } = server.address() as AddressInfo;
			const text = description(port, request.method!, request.url!, seen);
			upstream.received.push(text);
			if (disconnects) {
				request.socket.destroy();
				return;
			}
			response.sendDate = false;
			for (const [name, value] of headers) response.appendHeader(name, value);
			response.writeHead(status, { 'Content-Length': Buffer.byteLength(text) });
			response.end(text);
		});
	});
	await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
	return Object.assign(upstream, { server });
}

export function description(
	port: number,
	method: string,
	target: string,
	fields: { readonly [name: string]: string },
): string {
	return JSON.stringify({ port, method, target, fields });
}
