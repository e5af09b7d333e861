/**
 * A reference server based on Node's own http module. The bench measures it, and uses it as the backend for everything that a
 * static file server cannot do.
 * Usage: node test/bench/reference-server.ts PORT [BACKEND]
 * Without BACKEND: `/` answers with 14 bytes, `/chunked` with 10 KB in four chunks, `/upload` reads a body, `/echo` is a
 * WebSocket that echoes messages. With BACKEND: forwards every request to that port with undici.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Pool } from 'undici';
import { WebSocketServer } from 'ws';

const [port, backend] = process.argv.slice(2).map(Number) as [number, number | undefined];
const server = createServer(backend === undefined ? answer : proxyTo(backend));
server.keepAliveTimeout = 0;
server.maxRequestsPerSocket = 0;
if (backend === undefined) {
	const sockets = new WebSocketServer({ server, path: '/echo', perMessageDeflate: false });
	sockets.on('connection', socket => {
		socket.on('message', (data, binary) => socket.send(data, { binary }));
	});
}
server.listen(port, '127.0.0.1', 4096);

function answer(incoming: IncomingMessage, response: ServerResponse): void {
	if (incoming.url === '/chunked') {
		const part = Buffer.alloc(2560, 'x');
		response.writeHead(200, { 'Content-Type': 'text/plain' });
		for (let count = 0; count < 4; count++) response.write(part);
		response.end();
		return;
	}
	incoming.resume();
	incoming.once('end', () => {
		response.writeHead(200, { 'Content-Type': 'text/plain', 'Content-Length': 14 });
		response.end('Hello, world!\n');
	});
}

function proxyTo(target: number): (incoming: IncomingMessage, response: ServerResponse) => void {
	const pool = new Pool(`http://127.0.0.1:${target}`, { connections: 128, pipelining: 1 });
	return (incoming, response) => {
		const { connection: _, ...headers } = incoming.headers;
		pool.stream(
			{
				path: incoming.url!,
				method: incoming.method as 'GET',
				headers: { ...headers, 'x-forwarded-for': incoming.socket.remoteAddress },
				body: incoming.method === 'GET' ? null : incoming,
			},
			({ statusCode, headers }) => {
				const { connection: _, 'transfer-encoding': __, ...kept } = headers;
				response.writeHead(statusCode, kept);
				return response;
			},
			error => {
				if (error) response.destroy();
			},
		);
	};
}
