/** Configurations of nginx and what `svc import` makes of them answer the same to the same requests. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, runCommand, type ServerProcess, serve, temporaryFolder, waitForPort } from '../harness.ts';

/** A configuration: what is in `http`, and the requests as `[METHOD ]target[ host]`. PORT and UPSTREAM stand for ports. */
interface ImportCase {
	readonly name: string;
	readonly http: string;
	readonly requests: readonly string[];
}

const inServer = (content: string): string => `server { listen 127.0.0.1:PORT; ${content} }`;
const withFiles = (content: string): string => inServer(`root site; ${content}`);

const CASES: readonly ImportCase[] = [
	{
		name: 'files with an index and missing files',
		http: withFiles('index index.html; location / { }'),
		requests: ['/', '/a.txt', '/missing', '/docs/', '/docs/guide.html'],
	},
	{
		name: 'exact, prefix and regular expression',
		http: inServer(
			'location = /x { return 200 exact; } location /x { return 201 prefix; } location ~ ^/x.*\\.png$ { return 202 regexp; } location / { return 404; }',
		),
		requests: ['/x', '/x/', '/xyz', '/x/a.png', '/x/a.PNG', '/other'],
	},
	{
		name: 'a final prefix keeps regular expressions away, a longer prefix lets them in',
		http: inServer(
			'location ^~ /s/ { return 200 final; } location /s/deep/ { return 201 deep; } location ~ \\.js$ { return 202 js; } location / { return 203; }',
		),
		requests: ['/s/a.js', '/s/a', '/s/deep/a.js', '/s/deep/a', '/a.js', '/'],
	},
	{
		name: 'regular expressions in their order, with and without case',
		http: inServer(
			'location ~* \\.(gif|png)$ { return 200 image; } location ~ \\.png$ { return 201; } location ~ ^/user/([0-9]+)$ { return 302 /u?id=$1; } location / { return 204; }',
		),
		requests: ['/a.GIF', '/a.png', '/user/42', '/user/x', '/'],
	},
	{
		name: 'the default server, and servers by name',
		http: `server { listen 127.0.0.1:PORT; server_name a.test *.a.test; return 200 a; }
server { listen 127.0.0.1:PORT default_server; server_name _; return 404; }
server { listen 127.0.0.1:PORT; server_name .b.test; return 200 b; }`,
		requests: ['/ a.test', '/ x.a.test', '/ b.test', '/ x.b.test', '/ c.test'],
	},
	{
		name: 'the first server is the default',
		http: `server { listen 127.0.0.1:PORT; server_name a.test; return 200 a; } server { listen 127.0.0.1:PORT; server_name b.test; return 200 b; }`,
		requests: ['/ a.test', '/ b.test', '/ c.test'],
	},
	{
		name: 'a redirect to another host keeps the path and the query',
		http: inServer('return 301 https://new.test$request_uri;'),
		requests: ['/', '/a/b?c=d', 'POST /form'],
	},
	{
		name: 'a single-page application',
		http: withFiles('location / { try_files $uri $uri/ /index.html; } location /api/ { return 404; }'),
		requests: ['/', '/a.txt', '/some/page', '/api/x'],
	},
	{
		name: 'try_files with a status',
		http: withFiles('location / { try_files $uri =404; }'),
		requests: ['/a.txt', '/missing', '/docs/guide.html'],
	},
	{
		name: 'try_files with a named location',
		http: withFiles('location / { try_files $uri @app; } location @app { proxy_pass http://127.0.0.1:UPSTREAM; }'),
		requests: ['/a.txt', '/missing?x=1'],
	},
	{
		name: 'a proxy for everything',
		http: inServer('location / { proxy_pass http://127.0.0.1:UPSTREAM; }'),
		requests: ['/', '/a/b?c=d', 'POST /form', 'DELETE /x'],
	},
	{
		name: 'a proxy that replaces the prefix',
		http: inServer(
			'location /api/ { proxy_pass http://127.0.0.1:UPSTREAM/; } location /old/ { proxy_pass http://127.0.0.1:UPSTREAM/new/; } location / { return 404; }',
		),
		requests: ['/api/', '/api/orders?x=1', '/old/a/b', '/'],
	},
	{
		name: 'a proxy with header fields',
		http: inServer(
			'location / { proxy_set_header Host $host; proxy_set_header X-Real $remote_addr; proxy_set_header X-Path $uri; proxy_pass http://127.0.0.1:UPSTREAM; }',
		),
		requests: ['/a b.test', '/c?d=e b.test'],
	},
	{
		name: 'an upstream block',
		http: `upstream app { least_conn; server 127.0.0.1:UPSTREAM; } ${inServer('location / { proxy_pass http://app; }')}`,
		requests: ['/', '/x'],
	},
	{
		name: 'alias',
		http: inServer('location /files/ { alias other/; } location / { return 404; }'),
		requests: ['/files/b.txt', '/files/missing', '/b.txt'],
	},
	{
		name: 'access by address',
		http: inServer(
			'location /in/ { allow 127.0.0.0/8; deny all; proxy_pass http://127.0.0.1:UPSTREAM; } location /out/ { deny 127.0.0.1; proxy_pass http://127.0.0.1:UPSTREAM; } location /no/ { deny all; } location / { return 204; }',
		),
		requests: ['/in/', '/out/', '/no/'],
	},
	{
		name: 'rewrites of a server',
		http: withFiles(
			'rewrite ^/old/(.*)$ /docs/$1 permanent; rewrite ^/temp$ /a.txt redirect; rewrite ^/g$ /docs/guide.html last; location / { }',
		),
		requests: ['/old/guide.html', '/temp', '/g', '/a.txt'],
	},
	{
		name: 'conditions on the method and the host',
		http: inServer(
			'if ($request_method = POST) { return 405; } if ($host = www.a.test) { return 301 http://a.test$request_uri; } location / { return 200 ok; }',
		),
		requests: ['/x', 'POST /x', '/x www.a.test'],
	},
	{
		name: 'an error page',
		http: withFiles('error_page 404 /a.txt; location / { }'),
		requests: ['/missing', '/a.txt'],
	},
	{
		name: 'bodies of limited size',
		http: inServer('location / { client_max_body_size 2; proxy_pass http://127.0.0.1:UPSTREAM; }'),
		requests: ['POST /', '/'],
	},
	{
		name: 'names with www lead to the name without',
		http: `server { listen 127.0.0.1:PORT; server_name www.shop.test; return 301 http://shop.test$request_uri; }
server { listen 127.0.0.1:PORT; server_name shop.test; location = /robots.txt { return 200 robots; } location / { return 200 shop; } }`,
		requests: ['/ www.shop.test', '/a?b=c www.shop.test', '/ shop.test', '/robots.txt shop.test'],
	},
	{
		name: 'an API gateway with versions and a default',
		http: inServer(
			'location /v1/ { proxy_pass http://127.0.0.1:UPSTREAM/; } location /v2/ { proxy_pass http://127.0.0.1:UPSTREAM; } location = /status { return 200 fine; } location / { return 404; }',
		),
		requests: ['/v1/users?id=1', 'POST /v1/users', '/v2/users', '/status', '/v3/users'],
	},
	{
		name: 'an application behind its static files',
		http: withFiles(
			'location /docs/ { expires 1h; add_header X-Static yes; } location / { try_files $uri @app; } location @app { proxy_set_header Host $host; proxy_set_header X-Real $request_method; proxy_pass http://127.0.0.1:UPSTREAM; }',
		),
		requests: ['/docs/guide.html', '/docs/missing', '/a.txt', '/login', 'POST /login?next=/'],
	},
	{
		name: 'websockets beside pages',
		http: inServer(
			'location /socket/ { proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection "upgrade"; proxy_set_header X-Forwarded-For $remote_addr; proxy_pass http://127.0.0.1:UPSTREAM; } location / { return 200 page; }',
		),
		requests: ['/socket/chat', '/socket', '/socket?x=1', '/'],
	},
	{
		name: 'several sites on one port',
		http: `server { listen 127.0.0.1:PORT default_server; server_name _; return 403; }
server { listen 127.0.0.1:PORT; server_name blog.test; root site; location / { try_files $uri $uri/ =404; } location ^~ /private/ { return 403; } }
server { listen 127.0.0.1:PORT; server_name api.test; location / { proxy_pass http://127.0.0.1:UPSTREAM; } }
server { listen 127.0.0.1:PORT; server_name *.cdn.test; root site; location ~ \\.txt$ { expires 1d; } location / { return 404; } }`,
		requests: [
			'/ x.test',
			'/a.txt blog.test',
			'/private/a blog.test',
			'/b?c=d api.test',
			'/a.txt one.cdn.test',
			'/b one.cdn.test',
		],
	},
];

interface Answer {
	readonly status: number;
	readonly location: string | undefined;
	readonly body: string;
}

/** Sends a request. The bodies of errors are not compared, because the pages of the two servers differ. */
async function answerOf(port: number, line: string): Promise<Answer> {
	const [, method = 'GET', target, host = 'localhost'] = /^(?:([A-Z]+) )?(\S+)(?: (\S+))?$/.exec(line)!;
	const sent = request({
		...{ port, host: '127.0.0.1', method, path: target, agent: false },
		headers: { Host: host },
	});
	sent.end(method === 'POST' ? 'body' : undefined);
	const [response] = await once(sent, 'response');
	let body = '';
	for await (const chunk of response) body += chunk;
	const status: number = response.statusCode;
	const moved = response.headers.location;
	return {
		status,
		// nginx writes the scheme, host and port of its own address before a path.
		location: moved === undefined ? undefined : String(moved).replace(/^http:\/\/(localhost|www\.a\.test):\d+\//, '/'),
		body: status < 300 ? body : '',
	};
}

const folder = temporaryFolder();
for (const below of ['site/docs', 'other', 'logs']) mkdirSync(path.join(folder, below), { recursive: true });
writeFileSync(path.join(folder, 'site/index.html'), 'index');
writeFileSync(path.join(folder, 'site/a.txt'), 'a');
writeFileSync(path.join(folder, 'site/docs/index.html'), 'docs');
writeFileSync(path.join(folder, 'site/docs/guide.html'), 'guide');
writeFileSync(path.join(folder, 'other/b.txt'), 'b');
const upstream = createServer((got, response) => {
	const fields = ['host', 'x-real', 'x-path'].map(field => got.headers[field] ?? '').join(' ');
	got.resume().on('end', () => response.end(`${got.method} ${got.url} ${fields}`));
});
upstream.listen(0, '127.0.0.1');
await once(upstream, 'listening');
const upstreamPort = String((upstream.address() as AddressInfo).port);
// All cases are one configuration, each with a port of its own. Both servers start once.
const ports = await freePorts(2 * CASES.length);
const ourPorts = ports.slice(0, CASES.length);
const theirPorts = ports.slice(CASES.length);
const everything = (of: readonly number[]): string => {
	const all = CASES.map(({ http }, index) => http.replaceAll('PORT', String(of[index]))).join('\n');
	return all
		.replaceAll('UPSTREAM', upstreamPort)
		.replaceAll('alias other', `alias ${folder}/other`)
		.replaceAll('root site', `root ${folder}/site`);
};
writeFileSync(
	path.join(folder, 'nginx.conf'),
	`daemon off; worker_processes 1; pid nginx.pid; user root; events { }
http {
	access_log off;
	client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
	${everything(theirPorts)}
}
`,
);
writeFileSync(path.join(folder, 'imported.conf'), `http {\n${everything(ourPorts)}\n}\n`);
const imported = await runCommand(['import', 'imported.conf', '--output', 'Configfile'], { cwd: folder });

const peers = suite('configurations imported from nginx');
let nginx: ChildProcess;
let nginxEnded: Promise<unknown>;
let svc: ServerProcess;

peers.before(async () => {
	nginx = spawn('nginx', ['-p', folder, '-e', 'error.log', '-c', 'nginx.conf'], { stdio: 'ignore' });
	nginxEnded = once(nginx, 'close');
	await waitForPort(theirPorts[0]!);
	assert.is(imported.status, 0, imported.stderr);
	svc = await serve(['Configfile'], ourPorts[0]!, { cwd: folder });
});

peers.after(async () => {
	nginx?.kill('SIGTERM');
	await Promise.all([nginxEnded, svc?.stop()]);
	upstream.close();
});

peers('everything is translated, and the result passes every check', () => {
	assert.is(imported.status, 0, imported.stderr);
	assert.match(imported.stderr, /^\d+ directives translated, 0 kept as comments\.\n$/, imported.stderr);
});

for (const [index, { name, requests }] of CASES.entries()) {
	peers(name, async () => {
		for (const line of requests) {
			assert.equal(await answerOf(ourPorts[index]!, line), await answerOf(theirPorts[index]!, line), line);
		}
	});
}

peers.run();
