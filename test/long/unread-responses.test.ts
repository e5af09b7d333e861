/**
 * HTTP/2 clients request much and read nothing. For every source of bodies, the memory that this costs the server is limited, and
 * is released afterwards. Memory must also be released after a dry run of a long configuration.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { CLIENT_PREFACE, FRAME_TYPE } from '../../runtime/protocols/http2/frame-codes.ts';
import { freePorts, type ServerProcess, serve, temporaryFolder } from '../harness.ts';
import { encodeUint32s, frame, request, settings } from '../runtime/protocols/http2/frames.ts';

const test = suite('unread responses');

const CONNECTIONS = 20;
const STREAMS = 100;
/**
 * Limits on memory growth, in megabytes. The first is for all connections together: 4 MB each and some overhead. The second is
 * for rendered pages, for which it is higher because every rendering leaves garbage. The third is for the growth that may remain
 * afterwards.
 */
const MAX_COST_MB = 120;
const MAX_COST_OF_PAGES_MB = 300;
const MAX_REMAINING_MB = 60;
/** Milliseconds within which memory use must fall below the limit again. */
const RECOVERY_LIMIT_MS = 90_000;

const folder = temporaryFolder();
let server: ServerProcess;
let upstream: ServerProcess;
let port = 0;
let admin = 0;

/** Returns the resident memory of the server in megabytes. */
const residentMegabytes = (): number =>
	Math.round(Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${server.child.pid}/status`, 'utf8'))![1]) / 1024);

test.before(async () => {
	[port, admin] = (await freePorts(3)) as [number, number];
	const [, , behind] = (await freePorts(3)) as [number, number, number];
	const lines = Array.from({ length: 150_000 }, (_, i) => `${i} of the lines of a file, ${Math.sin(i)}\n`).join('');
	writeFileSync(path.join(folder, 'large.txt'), lines);
	writeFileSync(path.join(folder, 'page.html'), '{{.Req.Method}} is rendered again and again<br>\n'.repeat(2000));
	writeFileSync(
		path.join(folder, 'Upstream'),
		`{\n\tadmin off\n\tthreads 1\n\tservers {\n\t\tprotocols h1 h2c\n\t}\n}\nhttp://127.0.0.1:${behind} {\n\troot ${folder}\n\tfile_server\n}\n`,
	);
	const handlers = {
		'/proxy': `reverse_proxy 127.0.0.1:${behind}`,
		'/proxy-h2': `reverse_proxy h2c://127.0.0.1:${behind}`,
		'/encoded': `encode gzip\n\t\treverse_proxy 127.0.0.1:${behind}`,
		'/file': 'file_server',
		'/page': 'templates\n\t\tfile_server',
	};
	const routes = Object.entries(handlers).map(
		([prefix, text]) => `\thandle ${prefix}/* {\n\t\turi strip_prefix ${prefix}\n\t\t${text}\n\t}\n`,
	);
	const text = `\thandle /text {\n\t\trespond "${'a constant text '.repeat(6000)}"\n\t}\n`;
	writeFileSync(
		path.join(folder, 'Configfile'),
		`{\n\tadmin 127.0.0.1:${admin}\n\tthreads 1\n\tservers {\n\t\tprotocols h1 h2c\n\t}\n}\nhttp://127.0.0.1:${port} {\n\troot ${folder}\n${routes.join('')}${text}}\n`,
	);
	upstream = await serve(['Upstream', '--adapter', 'configfile'], behind, { cwd: folder });
	server = await serve(['Configfile'], port, { cwd: folder });
});
test.after(async () => {
	await server?.stop();
	await upstream?.stop();
});

/** Sends requests on many connections. Resolves once every response that the flow-control windows permit has started. */
async function requestWithoutReading(target: string, window: number): Promise<Socket[]> {
	const sockets: Socket[] = [];
	const begun = Array.from({ length: CONNECTIONS }, async () => {
		const socket = connect(port, '127.0.0.1');
		sockets.push(socket);
		const fields = [
			[':method', 'GET'],
			[':scheme', 'http'],
			[':path', target],
			[':authority', '127.0.0.1'],
			['accept-encoding', 'gzip'],
		] as const;
		const requests = Array.from({ length: STREAMS }, (_, i) => request(1 + 2 * i, fields));
		socket.write(Buffer.concat([Buffer.from(CLIENT_PREFACE), settings(4, window), ...requests]));
		// The server answers the PING once it has done everything that it can do immediately. The tests wait for the remaining work
		// with `settledMemory`.
		socket.write(frame(FRAME_TYPE.ping, 0, 0, encodeUint32s(1, 1)));
		const pong = frame(FRAME_TYPE.ping, 1, 0, encodeUint32s(1, 1));
		let receivedData = Buffer.alloc(0);
		await new Promise<void>((resolve, reject) => {
			socket.on('error', reject);
			socket.on('data', bytes => {
				receivedData = Buffer.concat([receivedData.subarray(-100), bytes as Buffer]);
				if (receivedData.includes(pong)) resolve();
			});
		});
	});
	await Promise.all(begun);
	return sockets;
}

/** Waits until memory use has not risen for a second. Resolves to the highest memory use, in megabytes. */
async function settledMemory(): Promise<number> {
	let most = 0;
	let since = performance.now();
	while (performance.now() - since < 1000) {
		const now = residentMegabytes();
		if (now > most + 2) since = performance.now();
		most = Math.max(most, now);
		await new Promise(resolve => setTimeout(resolve, 20));
	}
	return most;
}

async function memoryReleased(before: number): Promise<void> {
	const end = performance.now() + RECOVERY_LIMIT_MS;
	while (residentMegabytes() > before + MAX_REMAINING_MB) {
		assert.ok(performance.now() < end, `${before} MB before, ${residentMegabytes()} MB after`);
		await new Promise(resolve => setTimeout(resolve, 100));
	}
}

for (const [target, window] of [
	['/proxy/large.txt', 0],
	['/proxy/large.txt', 1],
	['/proxy-h2/large.txt', 0],
	['/encoded/large.txt', 0],
	['/file/large.txt', 0],
	['/text', 0],
	['/page/page.html', 0],
] as const) {
	test(`unread ${target} with windows of ${window} on ${CONNECTIONS} × ${STREAMS} streams costs limited memory`, async () => {
		const before = await settledMemory();
		const sockets = await requestWithoutReading(target, window);
		const most = await settledMemory();
		for (const socket of sockets) socket.destroy();
		console.log(`  ${target}: ${before} MB before, ${most} MB peak`);
		const cost = target.startsWith('/page') ? MAX_COST_OF_PAGES_MB : MAX_COST_MB;
		assert.ok(most - before <= cost, `${before} MB before, ${most} MB peak`);
		await memoryReleased(before);
	});
}

test('memory is released after a dry run of a long configuration', async () => {
	const site = (i: number) =>
		`http://h${i}.example.com:${port} {\n\trespond "${'one of very many sites '.repeat(20)}${i}"\n}\n`;
	const text = Array.from({ length: 50_000 }, (_, i) => site(i)).join('');
	const before = await settledMemory();
	const response = await fetch(`http://127.0.0.1:${admin}/load?dry_run`, {
		method: 'POST',
		headers: { 'content-type': 'text/configfile' },
		body: text,
	});
	assert.is(response.status, 200);
	assert.match((await response.text()).slice(0, 100), /"result":"restart_required"/);
	const most = residentMegabytes();
	console.log(`  a dry run of ${Math.round(text.length / 1e6)} MB: ${before} MB before, ${most} MB after`);
	await memoryReleased(before);
	console.log(`  and then ${residentMegabytes()} MB`);
});

test.run();
