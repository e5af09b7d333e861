/**
 * WebSocket clients that each send a message, wait for its echo, and send the next. Prints the counts.
 *
 * Usage: node test/bench/websocket-load.ts --url URL [--connections N] [--bytes N] [--seconds N]
 */
import { connect } from 'node:net';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
	options: {
		url: { type: 'string' },
		connections: { type: 'string', default: '64' },
		bytes: { type: 'string', default: '100' },
		seconds: { type: 'string', default: '2' },
	},
});
if (!values.url) throw new Error('--url is missing');
const url = new URL(values.url);
const bytes = Number(values.bytes);
if (bytes > 125) throw new Error('a message has at most 125 bytes');

const handshake = `GET ${url.pathname} HTTP/1.1\r\nHost: ${url.host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`;
// A masked text frame with a mask of zero leaves the payload unchanged.
const message = Buffer.concat([Buffer.from([0x81, 0x80 | bytes, 0, 0, 0, 0]), Buffer.alloc(bytes, 'x')]);
const echoBytes = bytes + 2;
const latenciesMs: number[] = [];
let failures = 0;

const startedAt = performance.now();
const end = startedAt + Number(values.seconds) * 1000;
await Promise.all(Array.from({ length: Number(values.connections) }, client));
latenciesMs.sort((a, b) => a - b);
const at = (share: number): number => Math.round((latenciesMs[Math.floor(latenciesMs.length * share)] ?? 0) * 1000);
const microseconds = Math.round((performance.now() - startedAt) * 1000);
console.log(`COUNTED ${latenciesMs.length} ${microseconds} ${failures} ${at(0.5)} ${at(0.99)} ${at(0.999)}`);

function client(): Promise<void> {
	return new Promise(resolve => {
		const socket = connect(Number(url.port), url.hostname);
		socket.setNoDelay(true);
		let head: string | undefined = '';
		let received = 0;
		let sentAt = 0;
		const send = (): void => {
			if (performance.now() >= end) {
				socket.destroy();
				resolve();
				return;
			}
			received = 0;
			sentAt = performance.now();
			socket.write(message);
		};
		const fail = (): void => {
			failures++;
			socket.destroy();
			resolve();
		};
		socket.once('connect', () => socket.write(handshake));
		socket.once('error', fail);
		socket.once('end', fail);
		socket.on('data', chunk => {
			if (head !== undefined) {
				head += chunk.toString('latin1');
				if (!head.includes('\r\n\r\n')) return;
				if (!head.startsWith('HTTP/1.1 101 ')) return fail();
				head = undefined;
				return send();
			}
			received += chunk.length;
			if (received < echoBytes) return;
			latenciesMs.push(performance.now() - sentAt);
			send();
		});
	});
}
