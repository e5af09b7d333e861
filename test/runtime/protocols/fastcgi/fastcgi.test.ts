/** FastCGI through a whole site, with well-behaved and misbehaving applications. */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { createFileReader } from '../../../../runtime/files/file-reader.ts';
import { proxiedSite } from '../../../compiler/modules/directives/reverse-proxy/proxied-site.ts';
import { temporaryFolder } from '../../../harness.ts';
import { send } from '../http1/wire.ts';
import {
	type CgiRequest,
	endRequestRecord,
	fastcgiRecord,
	responseRecords,
	type ScriptedApplication,
	scriptedApplication,
} from './scripted-application.ts';

const test = suite('fastcgi');

const root = temporaryFolder();
mkdirSync(path.join(root, 'sub'));
for (const name of ['index.php', 'page.php', 'x.jpg', 'plain.txt', 'sub/index.php'])
	writeFileSync(path.join(root, name), name);

const open: (() => unknown)[] = [];
test.after.each(async () => {
	for (const close of open.splice(0).reverse()) await close();
});

async function application(respond: (request: CgiRequest) => void): Promise<ScriptedApplication> {
	const made = await scriptedApplication(respond);
	open.push(() => made.close());
	return made;
}

async function site(lines: string, format: 'configfile' | 'compatfile' = 'configfile'): Promise<string> {
	const made = await proxiedSite(lines, '', createFileReader(), format);
	open.push(() => made.close());
	return `http://127.0.0.1:${made.port}`;
}

/** Starts an application that responds with the values of the given variables. */
function startVariableApplication(...names: string[]): Promise<ScriptedApplication> {
	return application(({ params, body, socket }) => {
		const lines = names.map(name => `${name}=${params[name] ?? '(none)'}`);
		socket.write(responseRecords(`Content-Type: text/plain\r\n\r\n${lines.join('\n')} ${body.length}`));
	});
}

async function get(url: string, init: RequestInit = {}): Promise<string> {
	const response = await fetch(url, { redirect: 'manual', ...init });
	return `${response.status} ${response.headers.get('location') ?? ''}${await response.text()}`;
}

test('the application receives the variables of a request', async () => {
	const names = ['SCRIPT_FILENAME', 'SCRIPT_NAME', 'PATH_INFO', 'PATH_TRANSLATED', 'REQUEST_URI', 'QUERY_STRING'];
	const more = [
		'REQUEST_METHOD',
		'CONTENT_LENGTH',
		'CONTENT_TYPE',
		'HTTP_CONTENT_TYPE',
		'HTTP_CONTENT_LENGTH',
		'HTTP_X_A',
		'HTTP_PROXY',
		'HTTP_X_B',
		'REMOTE_ADDR',
	];
	const own = ['SERVER_NAME', 'SERVER_ADDR', 'GATEWAY_INTERFACE', 'MODE', 'DOCUMENT_ROOT'];
	const app = await startVariableApplication(...names, ...more, ...own);
	const url = await site(`root ${root}\nphp_fastcgi 127.0.0.1:${app.port} {\n env MODE {method}-x\n}`);
	const headers = { 'X-A': '1', Proxy: 'evil', X_B: 'never', 'Content-Type': 'text/x' };
	const variables = await get(`${url}/page.php/more/%C3%A4?a=b%20c`, { method: 'POST', body: 'hello', headers });
	assert.equal(variables.split('\n'), [
		`200 SCRIPT_FILENAME=${root}/page.php`,
		'SCRIPT_NAME=/page.php',
		'PATH_INFO=/more/ä',
		`PATH_TRANSLATED=${root}/more/ä`,
		'REQUEST_URI=/page.php/more/%C3%A4?a=b%20c',
		'QUERY_STRING=a=b%20c',
		'REQUEST_METHOD=POST',
		'CONTENT_LENGTH=5',
		'CONTENT_TYPE=text/x',
		'HTTP_CONTENT_TYPE=text/x',
		'HTTP_CONTENT_LENGTH=5',
		'HTTP_X_A=1',
		'HTTP_PROXY=(none)',
		'HTTP_X_B=(none)',
		'REMOTE_ADDR=127.0.0.1',
		'SERVER_NAME=127.0.0.1',
		'SERVER_ADDR=127.0.0.1',
		'GATEWAY_INTERFACE=CGI/1.1',
		'MODE=POST-x',
		`DOCUMENT_ROOT=${root} 5`,
	]);
});

test('the Host is passed as sent, and variables for absent parts of a request are omitted', async () => {
	const app = await startVariableApplication(
		'SERVER_NAME',
		'SERVER_PORT',
		'HTTP_HOST',
		'CONTENT_TYPE',
		'HTTP_CONTENT_TYPE',
		'HTTP_USER_AGENT',
	);
	const url = await site(`root ${root}\nphp_fastcgi 127.0.0.1:${app.port}`);
	const ask = async (method: string, host: string) =>
		(
			await send(
				Number(new URL(url).port),
				`${method} /page.php HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
			)
		)
			.replace(/^.*\r\n\r\n/s, '')
			.split('\n');
	assert.equal(await ask('GET', 'ExAmple.COM:81'), [
		'SERVER_NAME=ExAmple.COM',
		'SERVER_PORT=81',
		'HTTP_HOST=ExAmple.COM:81',
		'CONTENT_TYPE=',
		'HTTP_CONTENT_TYPE=(none)',
		'HTTP_USER_AGENT= 0',
	]);
	assert.equal((await ask('POST', '[::1]:82')).slice(0, 5), [
		'SERVER_NAME=::1',
		'SERVER_PORT=82',
		'HTTP_HOST=[::1]:82',
		'CONTENT_TYPE=application/x-www-form-urlencoded',
		'HTTP_CONTENT_TYPE=(none)',
	]);
});

test("in a Compatfile, the root of php_fastcgi applies to the application, and files are looked up below the site's root", async () => {
	const app = await startVariableApplication('SCRIPT_FILENAME', 'DOCUMENT_ROOT', 'PATH_INFO', 'PATH_TRANSLATED');
	const lines = `route {\nroot ${root}\nphp_fastcgi 127.0.0.1:${app.port} {\n root /srv/app\n}\nrespond "behind {path}"\n}`;
	const url = await site(lines, 'compatfile');
	const variablesOf = (script: string, info = '', translated = '(none)') =>
		`200 SCRIPT_FILENAME=/srv/app${script}\nDOCUMENT_ROOT=/srv/app\nPATH_INFO=${info}\nPATH_TRANSLATED=${translated} 0`;
	assert.is(await get(`${url}/`), variablesOf('/index.php'));
	assert.is(await get(`${url}/pretty/url`), variablesOf('/index.php'));
	assert.is(await get(`${url}/page.php/a`), variablesOf('/page.php', '/a', '/srv/app/a'));
	assert.is(await get(`${url}/sub?q`), '308 /sub/?q');
	assert.is(await get(`${url}/sub/`), variablesOf('/sub/index.php'));
	assert.is(await get(`${url}/plain.txt`), '200 behind /plain.txt');
	// In a Configfile, `root` also sets where files are looked up, and that folder does not exist here.
	const native = await site(lines);
	assert.is(await get(`${native}/plain.txt`), variablesOf('/index.php'));
});

test('in a Compatfile, a missing front controller is not used', async () => {
	const app = await startVariableApplication('SCRIPT_NAME');
	const lines = `route {\nroot ${root}\nphp_fastcgi 127.0.0.1:${app.port} {\n index none.php\n}\nrespond "behind {path}"\n}`;
	const url = await site(lines, 'compatfile');
	assert.is(await get(`${url}/pretty/url`), '200 behind /pretty/url');
	assert.is(await get(`${url}/page.php`), '200 SCRIPT_NAME=/page.php 0');
	assert.is(await get(`${url}/missing.php`), '200 SCRIPT_NAME=/missing.php 0');
	// If an uploaded file could be executed by appending the name of a script to its path, an attacker could run code. This must
	// fail wherever the application sees the site's files.
	const elsewhere = await site(lines.replace('index none.php', 'index none.php\n root /srv/app'), 'compatfile');
	for (const at of [url, elsewhere]) assert.match(await get(`${at}/x.jpg/y.php`), /^404 /);
	const native = await site(lines);
	assert.is(await get(`${native}/pretty/url`), '200 SCRIPT_NAME=/none.php 0');
});

test('unknown paths go to the front controller, folders to their own index, and other files to the next handler', async () => {
	const app = await startVariableApplication('SCRIPT_NAME', 'PATH_INFO');
	const url = await site(`root ${root}\nphp_fastcgi 127.0.0.1:${app.port}\nrespond "behind {path}"`);
	assert.is(await get(`${url}/`), '200 SCRIPT_NAME=/index.php\nPATH_INFO= 0');
	assert.is(await get(`${url}/pretty/url`), '200 SCRIPT_NAME=/index.php\nPATH_INFO= 0');
	assert.is(await get(`${url}/sub?q`), '308 /sub/?q');
	assert.is(await get(`${url}/sub/`), '200 SCRIPT_NAME=/sub/index.php\nPATH_INFO= 0');
	assert.is(await get(`${url}/plain.txt`), '200 behind /plain.txt');
});

test('an uploaded file cannot be executed through a path below it, however that is written', async () => {
	const app = await startVariableApplication('SCRIPT_NAME', 'PATH_INFO');
	const php = await site(`root ${root}\nphp_fastcgi 127.0.0.1:${app.port}`);
	const bare = await site(
		`root ${root}\nreverse_proxy 127.0.0.1:${app.port} {\n transport fastcgi {\n split .php\n }\n}`,
	);
	for (const name of ['/x.jpg/y.php', '/x.jpg%2Fy.php', '/x.jpg/a/b.php', '/x.jpg/.php', '/sub/../x.jpg/y.php']) {
		assert.is(await get(`${php}${name}`), '200 SCRIPT_NAME=/index.php\nPATH_INFO= 0', name);
		assert.match(await get(`${bare}${name}`), /^404 /, name);
	}
	assert.match(await get(`${bare}/a.phpx/b.php`), /SCRIPT_NAME=\/a\.phpx\/b\.php/);
});

test('responses with a status, redirects, empty bodies, streams and small pieces are forwarded', async () => {
	const app = await application(({ params, socket }) => {
		switch (params.SCRIPT_NAME) {
			case '/status.php':
				socket.write(responseRecords('Status: 404 Gone Fishing\nX-A: b\n\nnothing here'));
				return;
			case '/location.php':
				socket.write(responseRecords('Location: /there\r\n\r\n'));
				return;
			case '/empty.php':
				socket.write(responseRecords(''));
				return;
			case '/bytes.php':
				for (const byte of responseRecords('A: b\r\n\r\nwhole')) socket.write(Buffer.from([byte]));
				return;
			case '/bad.php':
				socket.write(responseRecords('no head at all\r\n\r\nx'));
				return;
			case '/overloaded.php':
				socket.write(Buffer.concat([endRequestRecord(2)]));
				return;
			case '/garbage.php':
				socket.write('HTTP/1.1 200 OK\r\n\r\n');
				return;
			case '/short.php':
				socket.write(responseRecords('Content-Length: 10\r\n\r\nabc'));
				return;
			case '/stream.php':
				socket.write(fastcgiRecord(6, 'A: b\r\n\r\n', 3));
				socket.write(fastcgiRecord(6, 'one '));
				setTimeout(
					() =>
						socket.write(Buffer.concat([fastcgiRecord(7, 'complaint\n'), fastcgiRecord(6, 'two'), endRequestRecord()])),
					20,
				);
		}
	});
	const url = await site(
		`reverse_proxy 127.0.0.1:${app.port} {\n transport fastcgi {\n split .php\n keepalive 10s\n }\n}`,
	);
	assert.is(await get(`${url}/status.php`), '404 nothing here');
	assert.is(await get(`${url}/location.php`), '302 /there');
	assert.match(await get(`${url}/empty.php`), /^502 /);
	assert.is(await get(`${url}/bytes.php`), '200 whole');
	assert.match(await get(`${url}/bad.php`), /^502 /);
	assert.match(await get(`${url}/overloaded.php`), /^502 /);
	assert.match(await get(`${url}/garbage.php`), /^502 /);
	assert.match(await get(`${url}/short.php`), /^502 /);
	assert.is(await get(`${url}/stream.php`), '200 one two');
});

test('a truncated body does not look complete, and a client that disconnects closes the application connection', async () => {
	let left: (() => void) | undefined;
	const whenGone = new Promise<void>(resolve => {
		left = resolve;
	});
	let arrive: (() => void) | undefined;
	const whenArrived = new Promise<void>(resolve => {
		arrive = resolve;
	});
	/** Breaks the connection of the response that was begun last. */
	let breakOff: () => void = () => {};
	const app = await application(({ params, socket }) => {
		if (params.SCRIPT_NAME === '/broken.php') {
			socket.write(Buffer.concat([fastcgiRecord(6, 'A: b\r\n\r\n'), fastcgiRecord(6, 'half')]));
			breakOff = () => socket.destroy();
		} else {
			socket.on('close', left!);
			arrive!();
		}
	});
	const url = await site(
		`reverse_proxy 127.0.0.1:${app.port} {\n max_fails 2\n fail_duration 1m\n transport fastcgi {\n split .php\n keepalive 10s\n }\n}`,
	);
	const getBroken = async (): Promise<boolean> => {
		const response = await fetch(`${url}/broken.php`);
		breakOff();
		return response.text().then(
			() => false,
			() => true,
		);
	};
	assert.ok(await getBroken());
	const controller = new AbortController();
	const request = fetch(`${url}/silent.php`, { signal: controller.signal }).catch(() => {});
	await whenArrived;
	controller.abort();
	await whenGone;
	await request;
	// The client's disconnect was not counted as a failure, but a second truncated body exceeds the limit.
	assert.ok(await getBroken());
	assert.is((await fetch(`${url}/broken.php`)).status, 503);
});

test('connections are reused only if configured; request bodies are streamed, or buffered without a length', async () => {
	const app = await application(({ body, keep, number, socket }) => {
		socket.write(responseRecords(`\r\n${body.length} ${keep} ${number}`));
	});
	const plain = await site(`reverse_proxy 127.0.0.1:${app.port} {\n transport fastcgi\n}`);
	assert.is(await get(plain), '200 0 false 1');
	assert.is(await get(plain), '200 0 false 1');
	const kept = await site(`reverse_proxy 127.0.0.1:${app.port} {\n transport fastcgi {\n keepalive 1m\n }\n}`);
	assert.is(await get(kept), '200 0 true 1');
	const large = new Uint8Array(2_000_000).fill(7);
	assert.is(await get(kept, { method: 'PUT', body: large }), '200 2000000 true 2');
	const unknown = new ReadableStream({
		start(controller) {
			controller.enqueue(large.subarray(0, 100_000));
			controller.close();
		},
	});
	assert.is(await get(kept, { method: 'PUT', body: unknown, duplex: 'half' } as RequestInit), '200 100000 true 3');
	assert.is(app.accepted, 3);
});

test('a request whose buffered body has been read is not sent again, because its body would be missing', async () => {
	const bodies: number[] = [];
	const app = await application(({ params, body, number, socket }) => {
		bodies.push(body.length);
		// The application closes a connection that is kept alive while a further request is on its way.
		if (params.REQUEST_METHOD === 'PUT' && number === 2) socket.destroy();
		else socket.write(responseRecords(`\r\n${body.length}`));
	});
	const url = await site(`reverse_proxy 127.0.0.1:${app.port} {\n transport fastcgi {\n keepalive 1m\n }\n}`);
	assert.is(await get(url), '200 0');
	const body = new Blob(['hello']).stream();
	assert.match(await get(url, { method: 'PUT', body, duplex: 'half' } as RequestInit), /^502 /);
	assert.equal(bodies, [0, 5]);
});

test('after random bytes from an application, the server answers and keeps working', async () => {
	let seed = 1;
	const chance = (below: number): number => {
		seed = (seed * 1_103_515_245 + 12_345) & 0x7fffffff;
		return seed % below;
	};
	const app = await application(({ socket }) => {
		const good = Buffer.concat([
			fastcgiRecord(6, 'A: b\r\n\r\nsome text', chance(9)),
			fastcgiRecord(7, 'oh', 1),
			endRequestRecord(),
		]);
		for (let i = 0; i < 1 + chance(4); i++) good[chance(good.length)] = chance(256);
		socket.write(good.subarray(0, chance(good.length)));
		socket.end(good.subarray(chance(good.length)));
	});
	const url = await site(`reverse_proxy 127.0.0.1:${app.port} {\n transport fastcgi {\n keepalive 1m\n }\n}`);
	const outcomes = new Set<number>();
	for (let i = 0; i < 300; i += 20) {
		const statuses = await Promise.all(
			Array.from({ length: 20 }, () =>
				fetch(url)
					.then(async response => {
						await response.arrayBuffer();
						return response.status;
					})
					.catch(() => 0),
			),
		);
		for (const status of statuses) outcomes.add(status);
	}
	assert.ok(outcomes.has(502));
	assert.ok([...outcomes].every(status => status === 0 || (status >= 200 && status < 600)));
});

test.run();
