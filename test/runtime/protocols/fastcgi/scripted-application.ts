/** A FastCGI application whose behavior a test defines. */
import { createServer, type Socket } from 'node:net';

/** A request as received by the application. */
export interface CgiRequest {
	readonly params: { readonly [name: string]: string };
	readonly body: Buffer;
	readonly keep: boolean;
	readonly socket: Socket;
	/** Number of the request on its connection, starting at 1. */
	readonly number: number;
}

export interface ScriptedApplication {
	readonly port: number;
	/** Number of connections accepted so far. */
	readonly accepted: number;
	close(): Promise<void>;
}

/** Returns a FastCGI record, with `padding` bytes at its end. */
export function fastcgiRecord(type: number, content: Buffer | string, padding = 0): Buffer {
	const bytes = typeof content === 'string' ? Buffer.from(content, 'utf8') : content;
	const head = Buffer.from([1, type, 0, 1, bytes.length >> 8, bytes.length & 255, padding, 0]);
	return Buffer.concat([head, bytes, Buffer.alloc(padding)]);
}

/** Builds the records of a complete response. */
export function responseRecords(text: string, protocol = 0): Buffer {
	return Buffer.concat([fastcgiRecord(6, text), fastcgiRecord(6, ''), endRequestRecord(protocol)]);
}

/** Builds the record that ends a request. */
export function endRequestRecord(protocol = 0): Buffer {
	return fastcgiRecord(3, Buffer.from([0, 0, 0, 0, protocol, 0, 0, 0]));
}

/** Starts an application on a free port of 127.0.0.1. `respond` is called when the input of a request has ended. */
export async function scriptedApplication(respond: (request: CgiRequest) => void): Promise<ScriptedApplication> {
	const sockets = new Set<Socket>();
	let accepted = 0;
	const server = createServer(socket => {
		accepted++;
		sockets.add(socket);
		socket.on('error', () => {});
		socket.on('close', () => sockets.delete(socket));
		let held: Buffer = Buffer.alloc(0);
		let params: Buffer = Buffer.alloc(0);
		let body: Buffer[] = [];
		let keep = false;
		let number = 0;
		socket.on('data', bytes => {
			held = Buffer.concat([held, bytes as Buffer]);
			while (held.length >= 8) {
				const length = held.readUInt16BE(4);
				const whole = 8 + length + held[6]!;
				if (held.length < whole) return;
				const type = held[1]!;
				const content = held.subarray(8, 8 + length);
				held = held.subarray(whole);
				if (type === 1) {
					keep = (content[2]! & 1) === 1;
					params = Buffer.alloc(0);
					body = [];
				} else if (type === 4) params = Buffer.concat([params, content]);
				else if (type === 5 && length > 0) body.push(content);
				else if (type === 5) {
					const request = { params: decode(params), body: Buffer.concat(body), keep, socket, number: ++number };
					respond(request);
					if (!keep) socket.end();
				}
			}
		});
	});
	await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
	return {
		port: (server.address() as { port: number }).port,
		get accepted() {
			return accepted;
		},
		close: () =>
			new Promise(resolve => {
				for (const socket of sockets) socket.destroy();
				server.close(() => resolve());
			}),
	};
}

function decode(bytes: Buffer): { [name: string]: string } {
	const params: { [name: string]: string } = {};
	let at = 0;
	const length = (): number => {
		const first = bytes[at]!;
		at += first < 128 ? 1 : 4;
		return first < 128 ? first : bytes.readUInt32BE(at - 4) & 0x7fffffff;
	};
	while (at < bytes.length) {
		const name = length();
		const value = length();
		params[bytes.toString('latin1', at, at + name)] = bytes.toString('utf8', at + name, at + name + value);
		at += name + value;
	}
	return params;
}
