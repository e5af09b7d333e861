/**
 * `svc reverse-proxy` with all its flags: HTTPS with an internal certificate, TLS to the upstream, header changes in
 * both directions.
 */
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, type ServerProcess, startServer, temporaryFolder, waitForPort } from '../harness.ts';
import { testAuthority } from '../runtime/upstreams/transports/certificates.ts';

const test = suite('svc reverse-proxy');

let upstream: Server;
let server: ServerProcess;
let port = 0;
let behind = 0;

test.before(async () => {
	const { cert, key } = await (await testAuthority()).issue(['elsewhere.test']);
	upstream = createServer({ cert, key }, (request, response) => {
		const { host, 'x-up': up, 'x-forwarded-proto': proto } = request.headers;
		response.setHeader('X-Down', 'of the upstream');
		response.end(`host=${host} up=${up} proto=${proto}`);
	});
	await new Promise<void>(resolve => upstream.listen(0, '127.0.0.1', resolve));
	behind = (upstream.address() as AddressInfo).port;
	[port] = (await freePorts(1)) as [number];
	const flags = ['--internal-certs', '--disable-redirects', '--insecure', '-c', '--header-up', 'X-Up: 1'];
	const args = ['--from', `localhost:${port}`, '--to', `https://127.0.0.1:${behind}`, '--header-down', 'X-Down: ours'];
	server = startServer(['reverse-proxy', ...args, ...flags], { env: { SVC_TLS_STORE: temporaryFolder() } });
	await waitForPort(port);
});

test.after(async () => {
	await server?.stop();
	upstream.closeAllConnections();
	await new Promise(resolve => upstream.close(resolve));
});

test('a request passes over TLS on both sides, with the headers changed', async () => {
	const { request } = await import('node:https');
	const [text, down] = await new Promise<[string, unknown]>((resolve, reject) => {
		const options = { port, host: 'localhost', rejectUnauthorized: false };
		const asking = request(options, response => {
			let body = '';
			response.on('data', piece => {
				body += piece;
			});
			response.on('end', () => resolve([body, response.headers['x-down']]));
		});
		asking.on('error', reject).end();
	});
	assert.is(text, `host=127.0.0.1:${behind} up=1 proto=https`);
	assert.is(down, 'ours');
	assert.match(server.output(), new RegExp(`^Listening on https://:${port}$`, 'm'));
});

test.run();
