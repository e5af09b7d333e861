/**
 * The attacker of slow-attack.test.ts: connections that send a head or a body one byte at a time, and an upstream that waits for
 * these bodies.
 *
 * Usage: node test/long/timed/slow-attack.ts <port> <upstream port> <connections of each kind> <connections a second>
 */
import { connect, createServer, type Socket } from 'node:net';

const [port, upstreamPort, count, rate] = process.argv.slice(2).map(Number) as [number, number, number, number];
const sockets: Socket[] = [];
let closedCount = 0;

createServer(socket => {
	socket.on('error', () => {});
	socket.resume();
}).listen(upstreamPort, '127.0.0.1', 8192);

function begin(text: string): void {
	const socket = connect(port, '127.0.0.1');
	socket.on('error', () => {});
	socket.on('close', () => closedCount++);
	socket.resume();
	socket.write(text);
	sockets.push(socket);
}

const HEAD = 'GET /slow HTTP/1.1\r\nHost: victim.example\r\n';
const BODY = 'POST /up HTTP/1.1\r\nHost: victim.example\r\nContent-Length: 1000000\r\n\r\na';
let begun = 0;
const opening = setInterval(() => {
	for (let i = 0; i < rate / 20 && begun < count; i++, begun++) {
		begin(HEAD);
		begin(BODY);
	}
	if (begun < count) return;
	clearInterval(opening);
	process.send?.('open');
}, 50);

// Each second, a tenth of the connections send one more byte of their head or body, neither of which ever ends.
let turn = 0;
setInterval(() => {
	for (let i = 0; i < sockets.length / 100; i++) {
		const socket = sockets[turn++ % sockets.length];
		if (socket?.writable) socket.write('a');
	}
}, 100);

process.on('message', () => {
	process.send?.({ open: sockets.length - closedCount, closed: closedCount });
});
process.on('disconnect', () => process.exit());
