/** HTTP/2 with independent clients and proxies: curl, h2load, nginx (gRPC), haproxy, a browser. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { createHash, randomBytes, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { TestAuthority } from '../certificates.ts';
import { freePorts, type ServerProcess, serve, temporaryFolder, until, waitForPort } from '../harness.ts';

const peers = suite('HTTP/2 peers');
const run = promisify(execFile);

const IMAGES = 100;
/** A GIF image of one pixel. */
const PIXEL = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64');

let folder = '';
let server: ServerProcess;
let plain = 0;
let secure = 0;
let nginxPort = 0;
let nginxTlsPort = 0;
let haproxyPort = 0;
/** An upstream that answers with the number of bytes received or, for `/upload/hash`, with their hash. */
const receiver = createServer((request, response) => {
	const hash = request.url === '/upload/hash' ? createHash('sha256') : undefined;
	if (request.url === '/upload/early') {
		request.resume();
		response.write('early ');
		setImmediate(() => response.end('answer'));
		return;
	}
	let count = 0;
	request.on('data', (bytes: Buffer) => {
		count += bytes.length;
		hash?.update(bytes);
	});
	request.on('end', () => response.end(hash ? hash.digest('hex') : String(count)));
});
const proxies: ChildProcess[] = [];
const large = randomBytes(8 << 20);

peers.before(async () => {
	folder = temporaryFolder();
	[plain, secure, nginxPort, nginxTlsPort, haproxyPort] = (await freePorts(5)) as [
		number,
		number,
		number,
		number,
		number,
	];
	const site = path.join(folder, 'site');
	mkdirSync(path.join(site, 'images'), { recursive: true });
	writeFileSync(path.join(site, 'large.bin'), large);
	const tags = Array.from({ length: IMAGES }, (_, i) => {
		writeFileSync(path.join(site, `images/${i}.gif`), PIXEL);
		return `<img src="/images/${i}.gif" onload="seen++" onerror="failed++">`;
	});
	const script = 'var seen = 0, failed = 0; onload = () => document.title = seen + " loaded, " + failed + " failed"';
	writeFileSync(
		path.join(site, 'index.html'),
		`<!doctype html><title>not yet</title><script>${script}</script>${tags.join('')}`,
	);
	writeFileSync(path.join(folder, 'small.bin'), large.subarray(0, 200_000));
	receiver.listen(0, '127.0.0.1');
	await once(receiver, 'listening');
	const uploads = (receiver.address() as AddressInfo).port;
	const common = `	root site
	handle /echo {
		respond "{http.request.proto} {http.request.body}"
	}
	handle /early/* {
		respond "early" {path.1}
	}
	handle /upload/* {
		reverse_proxy 127.0.0.1:${uploads}
	}
	handle /grpc* {
		header Content-Type application/grpc
		respond "{http.request.proto} {http.request.body}"
	}
	file_server
`;
	writeFileSync(
		path.join(folder, 'Configfile'),
		`{
	admin off
	https_port ${secure}
	auto_https disable_redirects
	storage file_system ${folder}/store
	servers {
		protocols h1 h2 h2c
	}
}
http://127.0.0.1:${plain} {
${common}}
https://localhost:${secure} {
	log {
		output file access.log
	}
	tls internal
${common}}
`,
	);
	server = await serve(['Configfile'], plain, { cwd: folder, env: { HOME: folder } });
	await waitForPort(secure);
	mkdirSync(path.join(folder, 'nginx'));
	const { certificate, key } = await (await TestAuthority.make()).issue({ names: ['localhost'] });
	writeFileSync(path.join(folder, 'certificate.pem'), certificate);
	writeFileSync(path.join(folder, 'key.pem'), key);
	writeFileSync(
		path.join(folder, 'nginx.conf'),
		`daemon off; worker_processes 1; pid nginx.pid;
events { }
http {
	access_log off;
	client_body_temp_path nginx/body; proxy_temp_path nginx/proxy; fastcgi_temp_path nginx/f; uwsgi_temp_path nginx/u; scgi_temp_path nginx/s;
	server { listen 127.0.0.1:${nginxPort} http2; location / { grpc_pass grpc://127.0.0.1:${plain}; } }
	server {
		listen 127.0.0.1:${nginxTlsPort} ssl http2;
		ssl_certificate certificate.pem;
		ssl_certificate_key key.pem;
		client_max_body_size 1g;
		location / { proxy_request_buffering off; proxy_http_version 1.1; proxy_pass http://127.0.0.1:${uploads}; }
	}
}
`,
	);
	proxies.push(spawn('nginx', ['-p', folder, '-e', 'error.log', '-c', 'nginx.conf'], { cwd: folder, stdio: 'ignore' }));
	writeFileSync(
		path.join(folder, 'haproxy.cfg'),
		`defaults
	mode http
	timeout client 10s
	timeout server 10s
	timeout connect 5s
frontend f
	bind 127.0.0.1:${haproxyPort}
	default_backend b
backend b
	server s 127.0.0.1:${plain} proto h2
`,
	);
	proxies.push(spawn('haproxy', ['-f', 'haproxy.cfg', '-db', '-q'], { cwd: folder, stdio: 'ignore' }));
	await waitForPort(nginxPort);
	await waitForPort(haproxyPort);
});

peers.after(async () => {
	for (const proxy of proxies) {
		const whenEnded = once(proxy, 'exit');
		// On SIGTERM, nginx ends its workers too.
		proxy.kill('SIGTERM');
		await whenEnded;
	}
	await server.stop();
	receiver.close();
});

const fingerprint = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

async function curl(...words: string[]): Promise<Buffer> {
	const { stdout } = await run('curl', ['-sS', '--max-time', '20', ...words], {
		encoding: 'buffer',
		maxBuffer: 64 << 20,
	});
	return stdout;
}

peers('curl reads and uploads, by prior knowledge and by ALPN', async () => {
	const root = path.join(folder, 'store/pki/authorities/local/root.crt');
	for (const [url, words] of [
		[`http://127.0.0.1:${plain}`, ['--http2-prior-knowledge']],
		[`https://localhost:${secure}`, ['--http2', '--cacert', root]],
	] as const) {
		assert.is((await curl(...words, '-w', '%{http_version}', '-o', '/dev/null', `${url}/`)).toString(), '2');
		assert.is(fingerprint(await curl(...words, `${url}/large.bin`)), fingerprint(large));
		const echoed = await curl(...words, '--data-binary', `@${path.join(folder, 'site/index.html')}`, `${url}/echo`);
		assert.is(echoed.toString(), `HTTP/2.0 ${readFileSync(path.join(folder, 'site/index.html'), 'utf8')}`);
		// The response comes before the upload has ended, which is not an error.
		const upload = [...words, '-o', '/dev/null', '-w', '%{http_code}', '-T', path.join(folder, 'small.bin')];
		assert.is((await curl(...upload, `${url}/nothing`)).toString(), '404');
	}
});

peers('curl gets responses that are sent before the end of its uploads', async () => {
	const root = path.join(folder, 'store/pki/authorities/local/root.crt');
	const bodies = [path.join(folder, 'small.bin'), path.join(folder, 'site/large.bin')];
	for (const [url, words] of [
		[`http://127.0.0.1:${plain}`, ['--http2-prior-knowledge']],
		[`https://localhost:${secure}`, ['--http2', '--cacert', root]],
		[`https://localhost:${secure}`, ['--http1.1', '--cacert', root]],
	] as const) {
		for (const status of ['200', '413']) {
			// Repeats the upload, because the failure with curl 7.88 that this test prevents occurred in most attempts, but not in all.
			for (let i = 0; i < 10; i++) {
				const upload = ['-w', ' %{http_code}', '-T', bodies[i % 2]!, `${url}/early/${status}`];
				assert.is((await curl(...words, ...upload)).toString(), `early ${status}`);
			}
		}
		// For this upload, an upstream streams its response before it has read the whole body.
		const upload = ['-w', ' %{http_code}', '-T', bodies[1]!, `${url}/upload/early`];
		for (let i = 0; i < 10; i++) assert.is((await curl(...words, ...upload)).toString(), 'early answer 200');
	}
});

peers('an upload of 200 MB takes at most half as long again as with nginx', async () => {
	const file = path.join(folder, 'upload.bin');
	writeFileSync(file, Buffer.concat(Array.from({ length: 25 }, () => large)));
	const upload = async (port: number, version: string, name: string): Promise<string> => {
		const words = [`--${version}`, '-k', '-H', 'Expect:', '-w', ' %{time_total}', '-T', file];
		return (await curl(...words, `https://localhost:${port}/upload/${name}`)).toString();
	};
	const hash = fingerprint(readFileSync(file));
	assert.is((await upload(secure, 'http2', 'hash')).split(' ')[0], hash);
	// Compares the fastest of several runs, because the others include time taken by other processes. curl itself needs three times
	// as much CPU time for HTTP/2 as for HTTP/1.1.
	const fastest = { ours: Infinity, nginx: Infinity, 'ours, HTTP/1.1': Infinity };
	for (let round = 0; round < 5; round++) {
		for (const [name, port, version] of [
			['ours', secure, 'http2'],
			['nginx', nginxTlsPort, 'http2'],
			['ours, HTTP/1.1', secure, 'http1.1'],
		] as const) {
			const [count, seconds] = (await upload(port, version, 'count')).split(' ');
			assert.is(count, String(25 * large.length));
			fastest[name] = Math.min(fastest[name], Number(seconds));
		}
	}
	assert.ok(fastest.ours <= 1.5 * fastest.nginx, JSON.stringify(fastest));
	assert.ok(fastest.ours <= 4 * fastest['ours, HTTP/1.1'], JSON.stringify(fastest));
});

peers('curl negotiates the version that the listener prefers', async () => {
	const words = ['-k', '-o', '/dev/null', '-w', '%{http_version}'];
	assert.is((await curl(...words, `https://localhost:${secure}/`)).toString(), '2');
	assert.is((await curl(...words, '--http1.1', `https://localhost:${secure}/`)).toString(), '1.1');
});

peers('h2load gets every response, whatever the number of streams', async () => {
	const one = async (url: string, ...words: string[]): Promise<void> => {
		const { stdout } = await run('h2load', ['-n2000', ...words, url]);
		assert.match(stdout, /2000 succeeded, 0 failed, 0 errored, 0 timeout/);
		assert.match(stdout, /status codes: 2000 2xx/);
	};
	await one(`http://127.0.0.1:${plain}/`, '-c1', '-m100');
	await one(`http://127.0.0.1:${plain}/images/1.gif`, '-c20', '-m1');
	await one(`https://localhost:${secure}/`, '-c10', '-m10');
	await one(`http://127.0.0.1:${plain}/echo`, '-c5', '-m20', '-d', path.join(folder, 'site/index.html'));
	// The client's flow-control windows are small: 1,023 bytes for a stream, 65,535 for the connection.
	await one(`http://127.0.0.1:${plain}/`, '-c2', '-m50', '-w10', '-W16');
});

peers('nginx forwards gRPC to us, and haproxy HTTP/1.1 requests', async () => {
	const url = `http://127.0.0.1:${nginxPort}/grpc/S/M`;
	const words = [
		'--http2-prior-knowledge',
		'-H',
		'Content-Type: application/grpc',
		'-H',
		'TE: trailers',
		'--data-binary',
		'x',
	];
	// Reads the request body before answering, because nginx 1.22 sometimes treats a response before the end of the request as
	// broken.
	assert.is((await curl(...words, url)).toString(), 'HTTP/2.0 x');
	assert.is((await curl('-d', 'body', `http://127.0.0.1:${haproxyPort}/echo`)).toString(), 'HTTP/2.0 body');
	assert.is(fingerprint(await curl(`http://127.0.0.1:${haproxyPort}/large.bin`)), fingerprint(large));
	const { stdout } = await run('wrk', ['-t1', '-c20', '-d1', `http://127.0.0.1:${haproxyPort}/images/2.gif`]);
	assert.match(stdout, /[1-9][0-9]* requests in/);
	assert.not.match(stdout, /Non-2xx|Socket errors/);
});

peers(`a browser loads a page with ${IMAGES} images over one connection`, async () => {
	// The browser trusts the server if this pin matches the key of a certificate that the server sends. The server does not send
	// the root, so the pin is that of the intermediate certificate.
	const signer = new X509Certificate(readFileSync(path.join(folder, 'store/pki/authorities/local/intermediate.crt')));
	const pin = createHash('sha256')
		.update(signer.publicKey.export({ type: 'spki', format: 'der' }))
		.digest('base64');
	const { stdout } = await run(
		'chromium',
		[
			...['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--virtual-time-budget=10000'],
			...[`--user-data-dir=${path.join(folder, 'browser')}`, `--ignore-certificate-errors-spki-list=${pin}`],
			...['--dump-dom', `https://localhost:${secure}/`],
		],
		{ timeout: 60_000, maxBuffer: 8 << 20 },
	);
	assert.match(stdout, new RegExp(`<title>${IMAGES} loaded, 0 failed</title>`), stdout.slice(0, 500));
	const imageEntries = () =>
		readFileSync(path.join(folder, 'access.log'), 'utf8')
			.split('\n')
			.slice(0, -1)
			.map(line => JSON.parse(line))
			.filter(({ request }) => JSON.stringify(request.headers).includes('Chrom') && request.uri.startsWith('/images/'));
	await until('the log entries', () => imageEntries().length >= IMAGES);
	const entries = imageEntries();
	assert.is(entries.length, IMAGES);
	assert.equal([...new Set(entries.map(({ request }) => request.proto))], ['HTTP/2.0']);
	assert.is(new Set(entries.map(({ request }) => request.remote_port)).size, 1);
});

peers.run();
