/** Compares `replace` with nginx's `sub_filter`, which must replace the same texts in response bodies. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, rawExchange, serve, temporaryFolder } from '../harness.ts';
import { startNginx } from './nginx-process.ts';

const peers = suite('texts in bodies, beside nginx');

const LONG = 'x'.repeat(70_000);
/** Responses of the upstream: the path, the content type, and the body in the pieces in which it is sent. */
const RESPONSES: readonly (readonly [path: string, type: string, pieces: readonly string[]])[] = [
	[
		'/page',
		'text/html; charset=utf-8',
		['<a href="http://app.', 'internal/">é', ' ONE one</a>', '😀http:', '//app.internal'],
	],
	['/aaa', 'text/html', ['aa', 'aab', 'aaaaab', 'a', 'a', 'b']],
	['/long', 'text/html', [`${LONG}http://app.in`, `ternal${LONG}`, 'aab', LONG]],
	['/end', 'text/html', ['http://app.interna']],
	['/empty', 'text/html', []],
	['/data', 'application/json', ['{"at":"http://app.internal"}']],
	['/latin1', 'text/html; charset=iso-8859-1', ['caf\u00e9 http://app.internal']],
];

peers('the same texts are replaced', async () => {
	const [port, nginxPort, upstreamPort] = (await freePorts(3)) as [number, number, number];
	const folder = temporaryFolder();
	writeFileSync(
		path.join(folder, 'Configfile'),
		`http://a.example:${port} {
	bind 127.0.0.1
	replace {
		text "http://app.internal" "https://{host}" ignore_case
		text one two ignore_case
		text aab [aab] ignore_case
	}
	reverse_proxy 127.0.0.1:${upstreamPort}
}
`,
	);
	const asked: (string | undefined)[] = [];
	const upstream = createServer(async (request, response) => {
		asked.push(request.headers['accept-encoding'] as string | undefined);
		if (request.url === '/gzip') {
			response.writeHead(200, { 'Content-Type': 'text/html', 'Content-Encoding': 'gzip', Etag: '"e"' });
			response.end(gzipSync('http://app.internal'));
			return;
		}
		const [, type, pieces] = RESPONSES.find(([at]) => at === request.url)!;
		const coding = type.endsWith('iso-8859-1') ? 'latin1' : 'utf8';
		const size = pieces.reduce((sum, piece) => sum + Buffer.byteLength(piece, coding), 0);
		response.writeHead(200, { 'Content-Type': type, 'Content-Length': size, Etag: '"e"' });
		for (const piece of pieces) {
			response.write(piece, coding);
			await setImmediate();
		}
		response.end();
	});
	upstream.listen(upstreamPort, '127.0.0.1');
	await once(upstream, 'listening');
	const nginx = await startNginx(
		folder,
		nginxPort,
		`access_log off;
	server {
		listen 127.0.0.1:${nginxPort};
		sub_filter 'http://app.internal' 'https://$host';
		sub_filter 'one' 'two';
		sub_filter 'aab' '[aab]';
		sub_filter_once off;
		location / {
			proxy_set_header Accept-Encoding "";
			proxy_pass http://127.0.0.1:${upstreamPort};
		}
	}`,
	);
	const server = await serve(['-c', 'Configfile'], port, { cwd: folder });
	try {
		const ask = async (at: number, target: string, method = 'GET'): Promise<Answer> => {
			const request = `${method} ${target} HTTP/1.1\r\nHost: a.example:${port}\r\nConnection: close\r\n\r\n`;
			return readAnswer(await rawExchange(at, request));
		};
		for (const [target] of RESPONSES) {
			const ours = await ask(port, target);
			const theirs = await ask(nginxPort, target);
			assert.is(ours.body, theirs.body, target);
			assert.is(ours.etag, theirs.etag, `entity tag of ${target}`);
			assert.is((await ask(port, target, 'HEAD')).etag, ours.etag, `HEAD ${target}`);
		}
		assert.match((await ask(port, '/page')).body, /href="https:\/\/a\.example\/">.* two two/);
		assert.ok(
			asked.every(coding => coding === undefined || coding === 'identity'),
			String(asked),
		);
		// svc does not change a compressed response. nginx searches the compressed bytes, and removes the entity tag.
		const compressed = await ask(port, '/gzip');
		assert.is(compressed.etag, '"e"');
		assert.is(compressed.body, (await ask(nginxPort, '/gzip')).body);
	} finally {
		await server.stop();
		upstream.close();
		await nginx.stop();
	}
});

interface Answer {
	readonly etag: string | undefined;
	readonly body: string;
}

/** Reads a response in which each character is a byte. */
function readAnswer(response: string): Answer {
	const end = response.indexOf('\r\n\r\n');
	const head = response.slice(0, end);
	let rest = response.slice(end + 4);
	const etag = /^etag: (.*)$/im.exec(head)?.[1];
	if (!/^transfer-encoding: chunked/im.test(head)) return { etag, body: rest };
	let body = '';
	for (;;) {
		const line = rest.indexOf('\r\n');
		const size = Number.parseInt(rest.slice(0, line), 16);
		if (!(size > 0)) return { etag, body };
		body += rest.slice(line + 2, line + 2 + size);
		rest = rest.slice(line + 2 + size + 2);
	}
}

peers.run();
