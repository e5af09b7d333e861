/** Bodies that are sent directly from the receive buffer are correct, even if a client reads them slowly. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { proxiedSite } from './proxied-site.ts';

const lentBodies = suite('whole bodies through the proxy');

/** Returns 10 KB of text that is different for each number. */
function bodyOfNumber(number: string): string {
	return `${number},`.repeat(Math.ceil(10_240 / (number.length + 1))).slice(0, 10_240);
}

const upstream = createServer(socket => {
	socket.on('error', () => {});
	let text = '';
	socket.on('data', bytes => {
		text += bytes.toString('latin1');
		for (let end = text.indexOf('\r\n\r\n'); end !== -1; end = text.indexOf('\r\n\r\n')) {
			const [, kind, number] = /^GET \/(\w+)\/(\d+) /.exec(text) as unknown as [string, string, string];
			text = text.slice(end + 4);
			const body = bodyOfNumber(number);
			const head = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n';
			if (kind === 'chunked') {
				const parts = [body.slice(0, 7), body.slice(7, 5000), body.slice(5000)];
				const chunks = parts.map(part => `${part.length.toString(16)}\r\n${part}\r\n`).join('');
				socket.write(`${head}Transfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`);
			} else socket.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`);
		}
	});
});
upstream.listen(0, '127.0.0.1');
await once(upstream, 'listening');
const address = `127.0.0.1:${(upstream.address() as AddressInfo).port}`;
const site = await proxiedSite(`
	handle /buffered/* {
		reverse_proxy ${address} {
			response_buffers 64KiB
		}
	}
	handle /edited/* {
		header >X-Later yes
		reverse_proxy ${address}
	}
	handle {
		reverse_proxy ${address}
	}`);

/** Sends all requests at once, starts reading after a pause, and returns the bodies. */
async function fetchBodies(paths: readonly string[], wait: number): Promise<string[]> {
	const socket = connect(site.port, '127.0.0.1');
	await once(socket, 'connect');
	socket.pause();
	for (const path of paths) socket.write(`GET ${path} HTTP/1.1\r\nHost: a.example\r\n\r\n`);
	await new Promise(resolve => setTimeout(resolve, wait));
	let got: Buffer = Buffer.alloc(0);
	const bodies: string[] = [];
	for await (const bytes of socket.iterator({ destroyOnReturn: false })) {
		got = Buffer.concat([got, bytes]);
		for (let end = got.indexOf('\r\n\r\n'); end !== -1; end = got.indexOf('\r\n\r\n')) {
			const head = got.subarray(0, end).toString('latin1');
			let body: Buffer;
			const length = /content-length: (\d+)/i.exec(head);
			if (length) {
				const size = Number(length[1]);
				if (got.length < end + 4 + size) break;
				body = got.subarray(end + 4, end + 4 + size);
				got = got.subarray(end + 4 + size);
			} else {
				const last = got.indexOf('\r\n0\r\n\r\n', end);
				if (last === -1) break;
				body = got.subarray(got.indexOf('\r\n', end + 4) + 2, last);
				got = got.subarray(last + 7);
			}
			bodies.push(body.toString('latin1'));
		}
		if (bodies.length === paths.length) break;
	}
	socket.destroy();
	return bodies;
}

for (const kind of ['length', 'chunked', 'buffered', 'edited']) {
	lentBodies(`each request gets its own body: ${kind}`, async () => {
		const asked = Array.from({ length: 4 }, (_, client) =>
			Array.from({ length: 60 }, (_, index) => `/${kind}/${client * 1000 + index}`),
		);
		const bodies = await Promise.all(asked.map((paths, client) => fetchBodies(paths, client * 20)));
		for (const [client, paths] of asked.entries()) {
			for (const [index, path] of paths.entries()) {
				assert.is(bodies[client]![index], bodyOfNumber(path.split('/')[2]!), path);
			}
		}
	});
}

lentBodies('a client that reads nothing for a long time eventually gets everything', async () => {
	// Together, the responses are larger than the socket buffers of both sides, so the server must wait for the client.
	const paths = Array.from({ length: 1200 }, (_, index) => `/length/${index}`);
	const bodies = await fetchBodies(paths, 300);
	assert.is(bodies.length, paths.length);
	for (const [index, body] of bodies.entries()) assert.is(body, bodyOfNumber(String(index)), String(index));
});

lentBodies.after(async () => {
	await site.close();
	upstream.close();
});

lentBodies.run();
