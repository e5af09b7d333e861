/** Checks that a listener's protocol responds on this thread, before the thread accepts connections from clients. */
import { createSocket } from 'node:dgram';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { ProtocolServer } from '../protocols/protocol.ts';
import { MIN_INITIAL_BYTES } from '../sockets/quic/packet-header.ts';

/** A request without a `Host` field. Every protocol answers it with 400, unencrypted, even where it expects TLS. */
const MALFORMED_REQUEST = 'GET /handover-check HTTP/1.1\r\nConnection: close\r\n\r\n';

/** Milliseconds within which a response must arrive. */
const RESPONSE_TIMEOUT_MS = 10_000;

/** Milliseconds after which a datagram that has not been answered is sent again. */
const RESEND_INTERVAL_MS = 500;

/** Makes the protocol serve a connection from this process. Rejects if no response arrives. */
export function checkProtocol(protocol: ProtocolServer, scheme: 'http' | 'https'): Promise<void> {
	return new Promise((resolve, reject) => {
		let client: Socket | undefined;
		const server = createServer({ allowHalfOpen: true }, socket => protocol.accept(socket, scheme));
		const finish = (problem?: string): void => {
			clearTimeout(timer);
			server.close();
			client?.destroy();
			if (problem === undefined) resolve();
			else reject(new Error(problem));
		};
		const timer = setTimeout(() => finish('it did not answer in time'), RESPONSE_TIMEOUT_MS);
		server.on('error', error => finish(error.message));
		server.listen({ port: 0, host: '127.0.0.1', exclusive: true }, () => {
			client = connect((server.address() as AddressInfo).port, '127.0.0.1');
			client.on('error', error => finish(error.message));
			client.on('close', () => finish('it closed the connection without an answer'));
			client.once('data', () => finish());
			client.write(MALFORMED_REQUEST);
		});
	});
}

/**
 * Makes a QUIC socket at a port of 127.0.0.1 answer a packet of an unknown version (RFC 9000 §6). Rejects if no answer arrives.
 */
export function checkQuicPort(port: number): Promise<void> {
	return new Promise((resolve, reject) => {
		const socket = createSocket('udp4');
		const finish = (problem?: string): void => {
			clearTimeout(timer);
			clearInterval(resendTimer);
			socket.close();
			if (problem === undefined) resolve();
			else reject(new Error(problem));
		};
		const packet = Buffer.alloc(MIN_INITIAL_BYTES);
		packet.set([0xc0, 0xba, 0xba, 0xba, 0xba, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 9]);
		const send = (): void => socket.send(packet, port, '127.0.0.1', error => error && finish(error.message));
		const timer = setTimeout(() => finish('HTTP/3 did not answer in time'), RESPONSE_TIMEOUT_MS);
		const resendTimer = setInterval(send, RESEND_INTERVAL_MS);
		socket.on('error', error => finish(error.message));
		socket.once('message', () => finish());
		send();
	});
}
