/**
 * `forward_auth`: what the auth server receives, which fields of its response are copied to the request, and what a client cannot
 * forge.
 */
import { createServer, get, type IncomingHttpHeaders, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { compile } from '../../../../compiler/compiler.ts';
import { NO_FILES, proxiedSite } from './reverse-proxy/proxied-site.ts';

const test = suite('forward_auth');

const cleanups: (() => unknown)[] = [];
test.after.each(async () => {
	for (const close of cleanups.splice(0).reverse()) await close();
});

async function listen(server: Server): Promise<number> {
	await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
	cleanups.push(() => {
		server.closeAllConnections();
		return new Promise(resolve => server.close(resolve));
	});
	return (server.address() as AddressInfo).port;
}

interface Asked {
	readonly method: string;
	readonly url: string;
	readonly headers: IncomingHttpHeaders;
	readonly body: string;
}

/** Starts an auth server that admits `Authorization: good`, and a backend. Both record their requests. */
async function startPair(answer: { readonly [field: string]: string }, lines: string) {
	const auth: Asked[] = [];
	const backend: Asked[] = [];
	const asking = (kept: Asked[], respond: (asked: Asked) => [number, object]) =>
		createServer((request, response) => {
			let body = '';
			request.on('data', piece => {
				body += piece;
			});
			request.on('end', () => {
				const asked = { method: request.method!, url: request.url!, headers: request.headers, body };
				kept.push(asked);
				const [status, headers] = respond(asked);
				response.writeHead(status, headers as never).end(`from ${kept === auth ? 'auth' : 'backend'}`);
			});
		});
	const authPort = await listen(
		asking(auth, ({ headers }) => (headers.authorization === 'good' ? [200, answer] : [401, { 'X-Login': '/login' }])),
	);
	const backendPort = await listen(asking(backend, () => [200, {}]));
	const site = await proxiedSite(
		`forward_auth 127.0.0.1:${authPort} {\n${lines}\n}\nreverse_proxy 127.0.0.1:${backendPort}`,
	);
	cleanups.push(() => site.close());
	return { url: `http://127.0.0.1:${site.port}`, auth, backend };
}

test('the auth server gets a GET without the body, and the backend gets the whole request', async () => {
	const { url, auth, backend } = await startPair({}, 'uri /verify?x=1');
	const headers = { Authorization: 'good', 'X-Forwarded-Method': 'FORGED', 'X-Forwarded-Uri': '/forged' };
	const response = await fetch(`${url}/path?q=1`, { method: 'POST', body: 'payload', headers });
	assert.is(await response.text(), 'from backend');
	const [asked] = auth;
	assert.equal([asked!.method, asked!.url, asked!.body], ['GET', '/verify?x=1', '']);
	assert.is(asked!.headers['x-forwarded-method'], 'POST');
	assert.is(asked!.headers['x-forwarded-uri'], '/path?q=1');
	assert.is(asked!.headers['x-forwarded-for'], '127.0.0.1');
	assert.equal([backend[0]!.method, backend[0]!.url, backend[0]!.body], ['POST', '/path?q=1', 'payload']);
});

test('a response that does not admit the request is sent to the client', async () => {
	const { url, backend } = await startPair({}, 'uri /verify');
	const response = await fetch(url);
	assert.equal([response.status, response.headers.get('x-login'), await response.text()], [401, '/login', 'from auth']);
	assert.is(backend.length, 0);
});

test("configured fields are copied, and the client's own fields of those names never reach the backend", async () => {
	const lines =
		'uri /v\ncopy_headers Remote-User Remote-Groups>X-Groups {\n Remote-Email\n Remote-Name>X-Name X-Other\n}';
	const { url, backend } = await startPair({ 'Remote-User': 'ann', 'Remote-Groups': 'a,b', 'Remote-Name': '' }, lines);
	const forged = {
		...{
			Authorization: 'good',
			'remote-user': 'root',
			'X-Groups': 'admin',
			'Remote-Email': 'root@x',
			'X-Name': 'root',
		},
		...{ Remote_User: 'root', 'Remote.User': 'root', 'X-Other': 'root', 'Remote-Groups': 'kept' },
	};
	assert.is((await fetch(url, { headers: forged })).status, 200);
	const { headers } = backend[0]!;
	assert.is(headers['remote-user'], 'ann');
	assert.is(headers['x-groups'], 'a,b');
	assert.is(headers['remote-groups'], 'kept');
	for (const name of ['remote-email', 'x-name', 'x-other', 'remote_user', 'remote.user']) {
		assert.is(headers[name], undefined, name);
	}
});

test('a client cannot keep a copied field from the backend by naming it in Connection', async () => {
	const { url, backend } = await startPair({ 'Remote-User': 'ann' }, 'uri /v\ncopy_headers Remote-User');
	const response = await new Promise<IncomingMessage>((resolve, reject) => {
		const headers = { Authorization: 'good', Connection: 'close, Remote-User' };
		get(url, { headers }, resolve).on('error', reject);
	});
	response.resume();
	assert.is(response.statusCode, 200);
	assert.is(backend[0]!.headers['remote-user'], 'ann');
});

test('a WebSocket upgrade is authorized like a plain request', async () => {
	const { url, auth } = await startPair({}, 'uri /v');
	const { request } = await import('node:http');
	await new Promise<void>(resolve => {
		const asking = request(url, { headers: { Connection: 'Upgrade', Upgrade: 'websocket', Authorization: 'good' } });
		asking.on('response', response => {
			response.resume();
			response.on('end', resolve);
		});
		asking.end();
	});
	assert.is(auth[0]!.headers.upgrade, undefined);
});

test('an unreachable auth server admits no request', async () => {
	const site = await proxiedSite('forward_auth 127.0.0.1:1 {\n uri /v\n}\nrespond "secret"');
	cleanups.push(() => site.close());
	assert.is((await fetch(`http://127.0.0.1:${site.port}`)).status, 502);
});

test('mistakes in the configuration are reported', () => {
	const text =
		':80 {\n forward_auth localhost:1 {\n copy_headers a:b\n }\n forward_auth localhost:1 {\n uri /a\n uri /b\n }\n}\n';
	const { diagnostics } = compile({ format: 'compatfile', text, name: 'Compatfile' }, NO_FILES);
	assert.equal(
		diagnostics.map(({ message }) => message),
		[
			"parsing compatfile tokens for 'forward_auth': the 'uri' subdirective is required, at Compatfile:2",
			'`a:b` is not a valid header field.',
			"parsing compatfile tokens for 'forward_auth': cannot re-declare uri: /b, at Compatfile:7",
		],
	);
});

test.run();
