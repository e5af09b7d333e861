/**
 * Measures idle WebSockets through one proxy: the memory of each, compared with nginx, and whether they still work afterwards.
 *
 * Usage: node test/bench/idle-websockets.ts [--count 10000] [--seconds 5]
 *
 * Each connection takes two descriptors of the server, so a low limit (`ulimit -n`) reduces the count.
 */
import { type ChildProcess, execFileSync, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { freePorts, SVC, temporaryFolder, waitForPort } from '../harness.ts';
import { BenchServer, isInstalled } from './servers.ts';

/** Measurements of one proxy with its idle connections. */
export interface IdleResult {
	readonly server: string;
	readonly count: number;
	/** Number of resident bytes before the connections are opened. */
	readonly before: number;
	/** Number of resident bytes while all connections are idle. */
	readonly after: number;
	/** Number of tested connections that echoed a message at the end. */
	readonly answered: number;
	readonly asked: number;
	/** Number of processor seconds used while the connections were idle. */
	readonly idleSeconds: number;
}

const HANDSHAKE = [
	'GET /ws HTTP/1.1',
	'Host: localhost',
	'Connection: Upgrade',
	'Upgrade: websocket',
	'Sec-WebSocket-Version: 13',
	'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
	'\r\n',
].join('\r\n');
const SWITCHED =
	'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n';
/** Number of handshakes in progress at the same time. */
const MAX_HANDSHAKES = 200;

/** Returns the number of connections that a process can hold if each takes two descriptors. */
export function maxConnections(): number {
	const limit = Number(execFileSync('sh', ['-c', 'ulimit -n'], { encoding: 'utf8' }).trim());
	return Number.isNaN(limit) ? Number.POSITIVE_INFINITY : Math.floor((limit - 200) / 2);
}

/** Opens the connections through a server, leaves them idle, and then tests some of them. */
export async function idleWebSockets(name: 'svc' | 'nginx', count: number, seconds: number): Promise<IdleResult> {
	const [port] = (await freePorts(1)) as [number];
	const upstream = fork(import.meta.filename, ['upstream'], { stdio: 'inherit' });
	const [upstreamPort] = (await once(upstream, 'message')) as [number];
	const server = new BenchServer(name, port, start(name, port, upstreamPort));
	const sockets: Socket[] = [];
	try {
		await waitForPort(port);
		// Waits for the server to release memory left over from startup, which must not be attributed to the connections.
		await new Promise(resolve => setTimeout(resolve, 2000));
		const before = server.residentBytes();
		while (sockets.length < count) {
			const more = Math.min(MAX_HANDSHAKES, count - sockets.length);
			sockets.push(...(await Promise.all(Array.from({ length: more }, () => openWebSocket(port)))));
		}
		await new Promise(resolve => setTimeout(resolve, 1000));
		const cpuSecondsBefore = server.cpuSeconds();
		await new Promise(resolve => setTimeout(resolve, seconds * 1000));
		const idleSeconds = server.cpuSeconds() - cpuSecondsBefore;
		const after = server.residentBytes();
		const some = sockets.filter((_, i) => i % Math.ceil(count / 100) === 0);
		const echoes = await Promise.all(some.map(isEchoed));
		return {
			server: name,
			count,
			before,
			after,
			idleSeconds,
			asked: some.length,
			answered: echoes.filter(Boolean).length,
		};
	} finally {
		for (const socket of sockets) socket.destroy();
		await server.stop();
		upstream.kill();
	}
}

function start(name: 'svc' | 'nginx', port: number, upstream: number): ChildProcess {
	const folder = temporaryFolder();
	if (name === 'svc') {
		writeFileSync(
			path.join(folder, 'Configfile'),
			`{\n\tadmin off\n\tthreads 1\n}\nhttp://:${port} {\n\treverse_proxy 127.0.0.1:${upstream}\n}\n`,
		);
		return spawn(SVC, ['run'], { cwd: folder, stdio: 'ignore' });
	}
	writeFileSync(
		path.join(folder, 'nginx.conf'),
		`daemon off; master_process off; worker_processes 1; pid ${folder}/pid; error_log ${folder}/error.log;
events { worker_connections 65535; }
http {
	access_log off; client_body_temp_path ${folder}; proxy_temp_path ${folder}; fastcgi_temp_path ${folder};
	uwsgi_temp_path ${folder}; scgi_temp_path ${folder};
	server {
		listen 127.0.0.1:${port} backlog=4096;
		location / {
			proxy_pass http://127.0.0.1:${upstream};
			proxy_http_version 1.1;
			proxy_set_header Upgrade $http_upgrade;
			proxy_set_header Connection Upgrade;
			proxy_read_timeout 1h;
		}
	}
}
`,
	);
	return spawn('nginx', ['-p', folder, '-c', path.join(folder, 'nginx.conf')], { stdio: 'ignore' });
}

/** Opens a connection and completes the upgrade. */
function openWebSocket(port: number): Promise<Socket> {
	return new Promise((resolve, reject) => {
		const socket = connect(port, '127.0.0.1', () => socket.write(HANDSHAKE));
		let text = '';
		socket.on('data', function read(bytes) {
			text += bytes.toString('latin1');
			if (!text.includes('\r\n\r\n')) return;
			socket.off('data', read).off('error', reject);
			socket.on('error', () => {});
			if (text.startsWith('HTTP/1.1 101 ')) resolve(socket);
			else reject(new Error(text));
		});
		socket.once('error', reject);
	});
}

/** Reports whether a message is echoed within five seconds. */
function isEchoed(socket: Socket): Promise<boolean> {
	return new Promise(resolve => {
		const timer = setTimeout(() => resolve(false), 5000);
		socket.once('data', bytes => {
			clearTimeout(timer);
			resolve(bytes.toString('latin1') === 'ping');
		});
		socket.write('ping');
	});
}

/** Runs the upstream process, which upgrades connections and echoes messages. */
function serveUpstream(): void {
	const server = createServer(socket => {
		socket.on('error', () => {});
		socket.once('data', () => {
			socket.write(SWITCHED);
			socket.pipe(socket);
		});
	});
	server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => {
		process.send!((server.address() as { port: number }).port);
	});
	process.on('disconnect', () => process.exit());
}

if (process.argv[2] === 'upstream') serveUpstream();
else if (process.argv[1] === import.meta.filename) {
	const { values } = parseArgs({
		options: { count: { type: 'string', default: '10000' }, seconds: { type: 'string', default: '5' } },
	});
	const count = Math.min(Number(values.count), maxConnections());
	const megabytes = (bytes: number): string => `${(bytes / 1_048_576).toFixed(0)} MiB`;
	for (const name of ['svc', 'nginx'] as const) {
		if (name === 'nginx' && !isInstalled('nginx')) continue;
		const { before, after, answered, asked, idleSeconds } = await idleWebSockets(name, count, Number(values.seconds));
		const each = ((after - before) / count / 1024).toFixed(1);
		console.log(
			`${name.padEnd(6)} ${count} idle WebSockets: ${megabytes(before)} before, ${megabytes(after)} with them, ${each} KiB each; ${idleSeconds.toFixed(2)} s of processor in ${values.seconds} s; ${answered} of ${asked} tested still work`,
		);
	}
}
