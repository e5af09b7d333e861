/** A collector on loopback that accepts spans over OTLP/HTTP, in JSON and in protobuf. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';

export interface ReceivedSpan {
	readonly traceId: string;
	readonly spanId: string;
	readonly parentSpanId: string;
	readonly traceState: string;
	readonly name: string;
	/** The span kind: 1 internal, 2 server, 3 client. */
	readonly kind: number;
	readonly start: bigint;
	readonly end: bigint;
	/** The span status: 0 unset, 2 error. */
	readonly status: number;
	readonly flags: number;
	readonly attributes: { readonly [name: string]: unknown };
	readonly resource: { readonly [name: string]: unknown };
}

/** A running collector. */
export interface OtlpReceiver {
	readonly url: string;
	readonly spans: ReceivedSpan[];
	readonly requests: { readonly url: string; readonly headers: IncomingHttpHeaders }[];
	/** Status code of the responses that follow. A test may change it. */
	status: number;
	close(): void;
}

/** Starts a collector on a free port. */
export async function otlpReceiver(): Promise<OtlpReceiver> {
	const spans: ReceivedSpan[] = [];
	const requests: { url: string; headers: IncomingHttpHeaders }[] = [];
	const server = createServer((request, response) => {
		const pieces: Buffer[] = [];
		request.on('data', piece => pieces.push(piece));
		request.on('end', () => {
			const sent = Buffer.concat(pieces);
			const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(sent) : sent;
			requests.push({ url: request.url!, headers: request.headers });
			const isJson = request.headers['content-type'] === 'application/json';
			if (receiver.status === 200) spans.push(...(isJson ? spansOfJson(body) : spansOfProtobuf(body)));
			response.writeHead(receiver.status).end();
		});
	});
	server.listen(0, '127.0.0.1');
	await once(server, 'listening');
	const receiver: OtlpReceiver = {
		url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
		spans,
		requests,
		status: 200,
		close: () => {
			server.closeAllConnections();
			server.close();
		},
	};
	return receiver;
}

// biome-ignore lint/suspicious/noExplicitAny: the tests inspect received JSON of any shape
type Json = any;

function spansOfJson(body: Buffer): ReceivedSpan[] {
	const attributes = (list: Json[]): { [name: string]: unknown } =>
		Object.fromEntries(list.map(({ key, value }) => [key, Object.values(value)[0]]));
	return JSON.parse(body.toString()).resourceSpans.flatMap(({ resource, scopeSpans }: Json) =>
		scopeSpans.flatMap(({ spans }: Json) =>
			spans.map((span: Json) => ({
				traceId: span.traceId,
				spanId: span.spanId,
				parentSpanId: span.parentSpanId ?? '',
				traceState: span.traceState ?? '',
				name: span.name,
				kind: span.kind,
				start: BigInt(span.startTimeUnixNano),
				end: BigInt(span.endTimeUnixNano),
				status: span.status.code ?? 0,
				flags: span.flags,
				attributes: attributes(span.attributes),
				resource: attributes(resource.attributes),
			})),
		),
	);
}

/** Decodes spans from protobuf. The field numbers are those of opentelemetry/proto/trace/v1/trace.proto. */
function spansOfProtobuf(body: Buffer): ReceivedSpan[] {
	return messages(fields(body), 1).flatMap(resourceSpans => {
		const resource = attributesOf(messages(messages(resourceSpans, 1)[0]!, 1));
		return messages(resourceSpans, 2)
			.flatMap(scopeSpans => messages(scopeSpans, 2))
			.map(span => ({
				traceId: bytes(span, 1).toString('hex'),
				spanId: bytes(span, 2).toString('hex'),
				traceState: bytes(span, 3).toString(),
				parentSpanId: bytes(span, 4).toString('hex'),
				name: bytes(span, 5).toString(),
				kind: Number(number(span, 6)),
				start: number(span, 7),
				end: number(span, 8),
				attributes: attributesOf(messages(span, 9)),
				status: Number(number(messages(span, 15)[0] ?? [], 3)),
				flags: Number(number(span, 16)),
				resource,
			}));
	});
}

type Field = readonly [number: number, value: bigint | Buffer];

function fields(body: Buffer): Field[] {
	const found: Field[] = [];
	let at = 0;
	const varint = (): bigint => {
		let value = 0n;
		for (let shift = 0n; ; shift += 7n) {
			const byte = body[at++]!;
			value |= BigInt(byte & 0x7f) << shift;
			if (byte < 0x80) return value;
		}
	};
	while (at < body.length) {
		const tag = Number(varint());
		const field = tag >> 3;
		switch (tag & 7) {
			case 0:
				found.push([field, varint()]);
				break;
			case 1:
				found.push([field, body.readBigUInt64LE(at)]);
				at += 8;
				break;
			case 2: {
				const length = Number(varint());
				found.push([field, body.subarray(at, at + length)]);
				at += length;
				break;
			}
			case 5:
				found.push([field, BigInt(body.readUInt32LE(at))]);
				at += 4;
				break;
			default:
				throw new Error(`no such wire type: ${tag & 7}`);
		}
	}
	return found;
}

function messages(of: readonly Field[], number: number): Field[][] {
	return of.filter(([found]) => found === number).map(([, value]) => fields(value as Buffer));
}

function bytes(of: readonly Field[], number: number): Buffer {
	return (of.find(([found]) => found === number)?.[1] as Buffer | undefined) ?? Buffer.alloc(0);
}

function number(of: readonly Field[], number: number): bigint {
	return (of.find(([found]) => found === number)?.[1] as bigint | undefined) ?? 0n;
}

function attributesOf(list: readonly Field[][]): { [name: string]: unknown } {
	return Object.fromEntries(
		list.map(attribute => {
			const [kind, value] = messages(attribute, 2)[0]![0]!;
			if (kind === 1) return [bytes(attribute, 1).toString(), value.toString()];
			if (kind === 4) {
				const double = Buffer.alloc(8);
				double.writeBigUInt64LE(value as bigint);
				return [bytes(attribute, 1).toString(), double.readDoubleLE()];
			}
			return [bytes(attribute, 1).toString(), kind === 2 ? value === 1n : Number(value)];
		}),
	);
}
