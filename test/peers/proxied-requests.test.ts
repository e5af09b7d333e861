/**
 * Compares our `reverse_proxy` with Caddy's: upstreams see the same requests, and clients get the same responses.
 * The compared release (2.6) does not yet send `Via` and `Server`, and adds content types of its own.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, rawExchange, type ServerProcess, serve, temporaryFolder, waitForPort } from '../harness.ts';

const judged = suite('proxied requests before Caddy');

/** Responses of the upstream, by path. Any other request is answered with a description of itself. */
const UPSTREAM_RESPONSES: { readonly [path: string]: string } = {
	'/several':
		'HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nX-A: 1\r\nX-A: 2\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nContent-Length: 0\r\n\r\n',
	'/chunked': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n',
};

function site(port: number, upstream: number): string {
	const to = `127.0.0.1:${upstream}`;
	return `{
	admin off
	auto_https off
	http_port ${port}
}
http://plain.test:${port} {
	reverse_proxy ${to}
}
http://edited.test:${port} {
	reverse_proxy ${to} {
		trusted_proxies 127.0.0.0/8
		header_up X-Set {host}
		header_up +X-Add one
		header_up -X-Del
		header_up X-Re "a(.)" "b$1"
		header_up Host up.test
		header_up X-Hostport {upstream_hostport}
		header_up X-Empty ""
		header_up Accept-Encoding identity
		header_down -X-A
		header_down +Set-Cookie c=3
	}
}
http://rewritten.test:${port} {
	reverse_proxy ${to} {
		method GET
		rewrite /rewritten{uri}
	}
}
http://handled.test:${port} {
	reverse_proxy ${to} {
		@err status 5xx
		handle_response @err {
			header X-Handled {rp.status_code}
			respond "handled {rp.status_code}" 599
		}
		@four status 4xx
		replace_status @four 444
	}
}
http://refused.test:${port} {
	reverse_proxy 127.0.0.1:1
	handle_errors {
		respond "{err.status_code} {err.status_text}"
	}
}
http://asked.test:${port} {
	forward_auth ${to} {
		uri /auth?x=1
		copy_headers X-Answer
	}
	reverse_proxy ${to}
}
http://resolved.test:${port} {
	handle_path /p/* {
		reverse_proxy ${to}
	}
	reverse_proxy {header.X-To} {
		header_up -X-Forwarded-For
	}
}
http://around.test:${port} {
	header X-Site yes
	header ?X-Up default
	reverse_proxy ${to}
}
`;
}

const CASES: readonly (readonly [host: string, line: string, fields?: readonly string[], body?: string])[] = [
	['plain', 'GET /'],
	['plain', 'GET /a%2Fb?x=%20&y'],
	['plain', 'GET /', ['User-Agent: x', 'Accept-Encoding: br', 'Forwarded: for=1.1.1.1', 'Range: bytes=0-1']],
	['plain', 'GET /', ['X-Forwarded-For: 1.1.1.1', 'X-Forwarded-Proto: https', 'X-Forwarded-Host: evil']],
	['plain', 'HEAD /'],
	['plain', 'POST /', ['Content-Length: 3'], 'abc'],
	['plain', 'POST /', ['Transfer-Encoding: chunked'], '3\r\nabc\r\n0\r\n\r\n'],
	['plain', 'POST /', ['Content-Length: 0']],
	['plain', 'DELETE /'],
	['plain', 'GET /several'],
	['plain', 'GET /chunked', ['TE: trailers']],
	['plain', 'GET /status/204'],
	['plain', 'GET /status/404'],
	['plain', 'GET /', ['Cookie: a=1', 'Cookie: b=2', 'X-A: 1', 'X-A: 2', 'Te: gzip', 'Keep-Alive: 3', 'Upgrade: foo']],
	['edited', 'GET /x', ['X-Forwarded-For: 1.1.1.1', 'X-Del: 1', 'X-Add: zero', 'X-Re: zaq']],
	['edited', 'GET /', ['X-Forwarded-For: 1.1.1.1, 2.2.2.2', 'X-Forwarded-Proto: https', 'X-Forwarded-Host: orig']],
	['edited', 'GET /several'],
	['rewritten', 'POST /c?d=e', ['Content-Length: 3'], 'abc'],
	['rewritten', 'GET /c'],
	['handled', 'GET /status/500'],
	['handled', 'HEAD /status/500'],
	['handled', 'GET /status/404'],
	['handled', 'GET /status/201'],
	['refused', 'GET /'],
	['asked', 'GET /x?y=z', ['X-Answer: forged', 'Cookie: s=1']],
	['asked', 'POST /x', ['Content-Length: 3'], 'abc'],
	['resolved', 'GET /p/x?y'],
	['resolved', 'GET /z', ['X-To: UPSTREAM']],
	['resolved', 'GET /z'],
	['resolved', 'GET /z', ['X-To: 127.0.0.1']],
	['around', 'GET /'],
	['around', 'GET /status/200'],
];

let upstream: Server;
let ours: ServerProcess | undefined;
const sockets = new Set<Socket>();
const ports = { upstream: 0, ours: 0, judge: 0 };
let stopJudge: () => Promise<void> = async () => {};

judged.before(async () => {
	upstream = createServer(answerAll).listen(0, '127.0.0.1');
	await once(upstream, 'listening');
	ports.upstream = (upstream.address() as AddressInfo).port;
	[ports.ours, ports.judge] = (await freePorts(2)) as [number, number];
	const folder = temporaryFolder();
	for (const name of ['ours', 'judge']) mkdirSync(path.join(folder, name));
	writeFileSync(path.join(folder, 'ours', 'Compatfile'), site(ports.ours, ports.upstream));
	writeFileSync(path.join(folder, 'judge', 'Judgefile'), site(ports.judge, ports.upstream));
	const judge = spawn('caddy', ['run', '--config', 'Judgefile', '--adapter', 'caddyfile'], {
		cwd: path.join(folder, 'judge'),
		stdio: 'ignore',
		env: { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
	});
	const whenEnded = once(judge, 'close');
	stopJudge = async () => {
		judge.kill('SIGKILL');
		await whenEnded;
	};
	ours = await serve(['Compatfile'], ports.ours, { cwd: path.join(folder, 'ours') });
	await waitForPort(ports.judge);
});

judged.after(async () => {
	await stopJudge();
	await ours?.stop();
	for (const socket of sockets) socket.destroy();
	upstream.close();
});

judged('svc and Caddy forward the same requests and responses', async () => {
	const differences: string[] = [];
	for (const [host, line, fields = [], body = ''] of CASES) {
		const head = [`${line} HTTP/1.1`, `Host: ${host}.test`, ...fields, 'Connection: close', '', ''].join('\r\n');
		const request = `${head.replaceAll('UPSTREAM', `127.0.0.1:${ports.upstream}`)}${body}`;
		const [mine, theirs] = await Promise.all(
			[ports.ours, ports.judge].map(async port => comparedParts(await rawExchange(port, request))),
		);
		if (mine !== theirs) differences.push(`${host} ${line} ${fields.join(', ')}\n  ours:  ${mine}\n  judge: ${theirs}`);
	}
	assert.is(differences.join('\n'), '');
});

judged.run();

/**
 * Answers each request on a connection: with the response for its path or, if there is none, with the request's own head, sorted,
 * and its body.
 */
function answerAll(socket: Socket): void {
	sockets.add(socket);
	socket.on('close', () => sockets.delete(socket)).on('error', () => {});
	let text = '';
	socket.on('data', bytes => {
		text += bytes.toString('latin1');
		for (let end = text.indexOf('\r\n\r\n'); end !== -1; end = text.indexOf('\r\n\r\n')) {
			const head = text.slice(0, end);
			const after = text.slice(end + 4);
			const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
			const chunked = /\r\ntransfer-encoding: chunked/i.test(head);
			const stop = chunked ? after.indexOf('0\r\n\r\n') + 5 : Number(length ?? 0);
			if (chunked ? stop < 5 : after.length < stop) return;
			text = after.slice(stop);
			answer(socket, head, after.slice(0, stop));
		}
	});
}

function answer(socket: Socket, head: string, body: string): void {
	const target = head.split(' ')[1]!;
	const status = /^\/status\/(\d+)$/.exec(target)?.[1];
	if (status !== undefined) {
		socket.write(`HTTP/1.1 ${status} Some\r\nX-Up: 1\r\nContent-Type: a/b\r\nContent-Length: 4\r\n\r\n`);
		if (status !== '304' && status !== '204' && !head.startsWith('HEAD ')) socket.write('body');
		return;
	}
	const [line, ...fields] = head.split('\r\n');
	const seen = [line, ...fields.filter(field => !/^via:/i.test(field)).sort(), body].join('\n');
	const own = UPSTREAM_RESPONSES[target];
	const fieldsOf = `Content-Type: a/b\r\nX-Answer: ${target.length}\r\nContent-Length: ${Buffer.byteLength(seen)}`;
	socket.write(own ?? `HTTP/1.1 200 OK\r\n${fieldsOf}\r\n\r\n${head.startsWith('HEAD ') ? '' : seen}`);
}

/** Returns the status, the fields that the upstream or the configuration sets, and the body without its framing. */
function comparedParts(response: string): string {
	const split = response.indexOf('\r\n\r\n');
	const lines = response.slice(0, split).split('\r\n');
	const fields = lines.slice(1).map(field => field.toLowerCase());
	const kept = fields.filter(field => !/^(date|connection|content-length|server|via|transfer-encoding):/.test(field));
	let content = response.slice(split + 4);
	if (fields.includes('transfer-encoding: chunked')) content = content.replace(/(^|\r\n)[0-9a-f]+\r\n/g, '');
	return [lines[0]!.slice(9, 12), ...kept.sort(), JSON.stringify(content.trim())].join(' | ');
}
