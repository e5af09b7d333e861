/** HTTP/3 with independent clients: ngtcp2's client and a browser. */
import { execFile, spawn } from 'node:child_process';
import { createHash, randomBytes, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';
import * as assert from 'uvu/assert';
import { TestAuthority } from '../certificates.ts';
import { freePorts, type ServerProcess, serve, temporaryFolder, until } from '../harness.ts';
import { http3Suite } from '../runtime/protocols/http3/http3-suite.ts';

const peers = http3Suite('HTTP/3 peers');
const run = promisify(execFile);

const IMAGES = 100;
/**
 * A page that counts the images it has loaded. It reports to the server the count, and the protocols by which the page and the
 * images were loaded.
 */
const PAGE = `<!doctype html><title>images</title><body><script>
const images = Array.from({ length: ${IMAGES} }, (_, at) => new Promise(resolve => {
	const image = new Image();
	image.onload = () => resolve(1);
	image.onerror = () => resolve(0);
	image.src = '/image/' + at + '.svg';
	document.body.append(image);
}));
Promise.all(images).then(async loaded => {
	const count = loaded.reduce((sum, one) => sum + one, 0);
	const protocols = new Set([...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')].map(entry => entry.nextHopProtocol));
	await fetch('/done/' + count + '/' + [...protocols].join('+'));
});
</script></body>`;

/** A page that cancels a download, exchanges a message over a WebSocket, and reports the reply to the server. */
const ACTIONS = `<!doctype html><title>actions</title><body><script>
(async () => {
	const canceled = new AbortController();
	const { body } = await fetch('/app/endless', { signal: canceled.signal });
	await body.getReader().read();
	canceled.abort();
	const socket = new WebSocket('wss://' + location.host + '/app/socket');
	socket.onopen = () => socket.send('hello');
	const answer = await new Promise(resolve => {
		socket.onmessage = ({ data }) => resolve(data);
		socket.onerror = () => resolve('failed');
	});
	await fetch('/done/socket/' + answer);
})();
</script></body>`;

/** A page that downloads a large file and uploads it again, and reports to the server the hash of each direction. */
const TRANSFERS = `<!doctype html><title>transfers</title><body><script>
(async () => {
	const bytes = await (await fetch('/huge.bin')).arrayBuffer();
	const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
	const downloaded = [...digest].map(byte => byte.toString(16).padStart(2, '0')).join('');
	const uploaded = await (await fetch('/app/hash', { method: 'POST', body: bytes })).text();
	const protocols = new Set(performance.getEntriesByType('resource').map(entry => entry.nextHopProtocol));
	await fetch('/done/sums/' + downloaded + '/' + uploaded + '/' + [...protocols].join('+'));
})();
</script></body>`;

const CLIENTS = 10;
const STREAMS = 100;
const WEBSOCKET_GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

/**
 * What the application has observed: the numbers of canceled downloads and of concurrent requests, and the received trailer.
 */
const observations = { canceled: 0, trailer: '', together: 0 };
/** Responses that are held back until all of the expected requests have arrived. */
const waitingResponses: ServerResponse[] = [];
let onStyleRequest = (): void => {};

/** The application to which the server proxies requests. */
const application = createServer((request, answer) => {
	void handle(request, answer);
});

async function handle(request: IncomingMessage, answer: ServerResponse): Promise<void> {
	switch (request.url) {
		case '/app/endless': {
			const more = (): void => {
				while (!answer.destroyed && answer.write(Buffer.alloc(16_384, 97)));
			};
			answer.on('drain', more);
			answer.on('close', () => void observations.canceled++);
			more();
			return;
		}
		case '/app/hash': {
			const hash = createHash('sha256');
			for await (const piece of request) hash.update(piece as Buffer);
			answer.end(hash.digest('hex'));
			return;
		}
		case '/app/trailers':
			answer.writeEarlyHints({ link: '</style.css>; rel=preload; as=style' });
			answer.setHeader('Trailer', 'X-Sum');
			answer.write('body');
			answer.addTrailers({ 'X-Sum': '42' });
			answer.end();
			return;
		case '/app/hinted': {
			// Sends the page only after the browser has followed the hint.
			const asks = new Promise<void>(resolve => {
				onStyleRequest = resolve;
			});
			answer.writeEarlyHints({ link: '</app/style.css>; rel=preload; as=style' });
			await asks;
			answer.setHeader('Content-Type', 'text/html');
			answer.end('<!doctype html><link rel=stylesheet href=/app/style.css><script>fetch("/done/hinted")</script>');
			return;
		}
		case '/app/style.css':
			answer.setHeader('Content-Type', 'text/css');
			answer.end('body { color: red }');
			onStyleRequest();
			return;
		case '/app/together':
			waitingResponses.push(answer);
			observations.together = Math.max(observations.together, waitingResponses.length);
			if (waitingResponses.length === CLIENTS * STREAMS)
				for (const one of waitingResponses.splice(0)) one.end('together');
			return;
		default:
			answer.writeHead(404).end();
	}
}

/** Echoes one short text message. */
application.on('upgrade', (request, socket: Socket) => {
	const accept = createHash('sha1').update(`${request.headers['sec-websocket-key']}${WEBSOCKET_GUID}`).digest('base64');
	socket.write(
		`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
	);
	socket.on('error', () => {});
	socket.once('data', (frame: Buffer) => {
		const length = frame[1]! & 127;
		const text = Buffer.alloc(length);
		for (let at = 0; at < length; at++) text[at] = frame[6 + at]! ^ frame[2 + (at & 3)]!;
		socket.write(Buffer.concat([Buffer.of(0x81, length), text]));
	});
});

const large = randomBytes(20 << 20);
const huge = randomBytes(100_000_000);
let folder = '';
let server: ServerProcess;
let port = 0;
let admin = 0;
let spki = '';

peers.before(async () => {
	folder = temporaryFolder();
	[port, admin] = (await freePorts(2)) as [number, number];
	const authority = await TestAuthority.make();
	const { certificate, key } = await authority.issue({ names: ['localhost'] });
	writeFileSync(path.join(folder, 'c.pem'), certificate);
	writeFileSync(path.join(folder, 'k.pem'), key);
	const { publicKey } = new X509Certificate(certificate);
	spki = createHash('sha256')
		.update(publicKey.export({ type: 'spki', format: 'der' }))
		.digest('base64');
	mkdirSync(path.join(folder, 'site'));
	writeFileSync(path.join(folder, 'site/index.html'), PAGE);
	writeFileSync(path.join(folder, 'site/actions.html'), ACTIONS);
	writeFileSync(path.join(folder, 'site/transfers.html'), TRANSFERS);
	writeFileSync(path.join(folder, 'site/large.bin'), large);
	writeFileSync(path.join(folder, 'site/huge.bin'), huge);
	await new Promise<void>(resolve => application.listen(0, '127.0.0.1', resolve));
	writeFileSync(
		path.join(folder, 'Configfile'),
		`{
	admin 127.0.0.1:${admin}
	metrics
	auto_https disable_redirects
	servers {
		protocols h1 h2 h3
	}
}
https://localhost:${port} {
	bind 127.0.0.1
	tls ${folder}/c.pem ${folder}/k.pem
	log {
		output stdout
	}
	handle /image/* {
		header Content-Type image/svg+xml
		respond \`<svg xmlns="http://www.w3.org/2000/svg" width="4" height="4"><rect width="4" height="4"/></svg>\`
	}
	handle /done/* {
		respond 204
	}
	handle /echo {
		respond "{http.request.proto} {http.request.body}"
	}
	handle /app/* {
		reverse_proxy 127.0.0.1:${(application.address() as AddressInfo).port}
	}
	handle {
		root ${folder}/site
		file_server
	}
}
`,
	);
	server = await serve([], port, { cwd: folder });
});

peers.after(async () => {
	await server.stop();
	application.closeAllConnections();
	application.close();
});

/** Returns how often connections have followed their clients to other ports. */
async function portChanges(): Promise<number> {
	const text = await (await fetch(`http://127.0.0.1:${admin}/metrics`)).text();
	return Number(/^svc_http3_port_changes_total (\d+)$/m.exec(text)![1]);
}

/** Runs ngtcp2's client. Returns what it prints. */
async function runClient(paths: readonly string[], ...options: string[]): Promise<string> {
	const urls = paths.map(one => `https://localhost:${port}${one}`);
	const args = ['--exit-on-all-streams-close', '--timeout=60s', ...options, '127.0.0.1', String(port), ...urls];
	const { stdout, stderr } = await run('gtlsclient', args, { maxBuffer: 1 << 28 });
	return stdout + stderr;
}

peers('ngtcp2 downloads a page and 20 MiB of streamed data', async () => {
	const output = await runClient(['/echo']);
	assert.match(output, /\[:status: 200\]/);
	await runClient(['/large.bin'], '-q', `--download=${folder}`);
	assert.ok(readFileSync(path.join(folder, 'large.bin')).equals(large));
});

peers('ngtcp2 uploads a body', async () => {
	const file = path.join(folder, 'upload.txt');
	writeFileSync(file, 'some words '.repeat(2000));
	await runClient(['/echo'], '-q', '-m', 'POST', '-d', file, `--download=${folder}`);
	assert.is(readFileSync(path.join(folder, 'echo'), 'utf8'), `HTTP/3.0 ${'some words '.repeat(2000)}`);
});

peers('ngtcp2 sends a hundred concurrent requests', async () => {
	const output = await runClient(Array.from({ length: 100 }, (_, at) => `/image/${at}.svg`));
	assert.is(output.match(/\[:status: 200\]/g)?.length, 100);
});

peers('ngtcp2 receives everything despite packet loss', async () => {
	await runClient(['/large.bin'], '-q', '--tx-loss=0.05', '--rx-loss=0.05', `--download=${folder}`);
	assert.ok(readFileSync(path.join(folder, 'large.bin')).equals(large));
});

peers('ngtcp2 downloads and uploads 100 MB', async () => {
	await runClient(['/huge.bin'], '-q', `--download=${folder}`);
	assert.ok(readFileSync(path.join(folder, 'huge.bin')).equals(huge));
	await runClient(['/app/hash'], '-q', '-m', 'POST', '-d', path.join(folder, 'huge.bin'), `--download=${folder}`);
	assert.is(readFileSync(path.join(folder, 'hash'), 'utf8'), createHash('sha256').update(huge).digest('hex'));
});

peers('ngtcp2 uploads 100 MB while a NAT changes its port', async () => {
	const before = await portChanges();
	const rebinding = ['--change-local-addr=200ms', '--nat-rebinding'];
	const upload = ['-m', 'POST', '-d', path.join(folder, 'site/huge.bin'), `--download=${folder}`];
	await runClient(['/app/hash'], '-q', ...rebinding, ...upload);
	assert.is(readFileSync(path.join(folder, 'hash'), 'utf8'), createHash('sha256').update(huge).digest('hex'));
	assert.is(await portChanges(), before + 1);
});

peers('ngtcp2 sends a request after a NAT has changed its port', async () => {
	const before = await portChanges();
	const output = await runClient(['/echo'], '--change-local-addr=100ms', '--nat-rebinding', '--delay-stream=500ms');
	assert.match(output, /\[:status: 200\]/);
	assert.is(await portChanges(), before + 1);
});

peers('a thousand requests of ten ngtcp2 clients are open at the same time', async () => {
	const paths = Array.from({ length: STREAMS }, () => '/app/together');
	const outputs = await Promise.all(Array.from({ length: CLIENTS }, () => runClient(paths, '--no-quic-dump')));
	for (const output of outputs) assert.is(output.match(/\[:status: 200\]/g)?.length, STREAMS);
	assert.is(observations.together, CLIENTS * STREAMS);
});

peers('ngtcp2 receives early hints and trailers', async () => {
	const output = await runClient(['/app/trailers'], '--no-quic-dump');
	const statuses = [...output.matchAll(/\[:status: (\d+)\]/g)].map(([, status]) => status);
	assert.equal(statuses, ['103', '200']);
	assert.match(output, /\[link: <\/style\.css>; rel=preload; as=style\]/);
	assert.match(output, /\[x-sum: 42\]/);
});

/** Opens a page in a browser and waits until the log of requests matches `done`. Returns the match. */
async function browse(where: string, done: RegExp, limitMs = 60_000): Promise<RegExpExecArray | null> {
	const child = spawn(
		'chromium',
		[
			...['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', `--user-data-dir=${temporaryFolder()}`],
			...['--enable-quic', `--origin-to-force-quic-on=localhost:${port}`],
			...['--enable-features=EnableWebsocketsOverHttp3'],
			...[`--ignore-certificate-errors-spki-list=${spki}`, '--host-resolver-rules=MAP * 127.0.0.1'],
			...['--remote-debugging-port=0', `https://localhost:${port}${where}`],
		],
		{ stdio: 'ignore', env: { ...process.env, HOME: folder } },
	);
	const end = performance.now() + limitMs;
	while (!done.test(server.output()) && performance.now() < end) await new Promise(resolve => setTimeout(resolve, 100));
	child.kill('SIGKILL');
	await once(child, 'close');
	return done.exec(server.output());
}

peers('a browser loads a page with a hundred images over HTTP/3', async () => {
	const found = await browse('/', /"uri":"(\/done\/\d[^"]*)"/);
	assert.is(found?.[1], `/done/${IMAGES}/h3`, server.output().slice(-2000));
});

peers('a browser follows early hints over HTTP/3', async () => {
	const found = await browse('/app/hinted', /"uri":"\/done\/hinted"/);
	assert.ok(found, server.output().slice(-2000));
	assert.match(server.output(), /"proto":"HTTP\/3\.0","method":"GET","host":"[^"]*","uri":"\/app\/hinted"/);
});

peers('a browser downloads and uploads 100 MB over HTTP/3', async () => {
	const hash = createHash('sha256').update(huge).digest('hex');
	const found = await browse('/transfers.html', /"uri":"\/done\/sums\/([^"]*)"/, 180_000);
	assert.is(found?.[1], `${hash}/${hash}/h3`, server.output().slice(-2000));
});

peers('a browser cancels a download and opens a WebSocket over HTTP/3', async () => {
	const before = observations.canceled;
	const found = await browse('/actions.html', /"uri":"\/done\/socket\/([^"]*)"/);
	assert.is(found?.[1], 'hello', server.output().slice(-2000));
	await until('the end of the download', () => observations.canceled === before + 1);
	await until('the log entry of the WebSocket', () => /"uri":"\/app\/socket"/.test(server.output()));
	assert.match(server.output(), /"proto":"HTTP\/3\.0","method":"[A-Z]*","host":"[^"]*","uri":"\/app\/socket"/);
});

peers.run();
