/** HTTP/3 with independent clients: ngtcp2's client and a browser. */
import { execFile, spawn } from 'node:child_process';
import { createHash, randomBytes, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import * as assert from 'uvu/assert';
import { TestAuthority } from '../certificates.ts';
import { freePorts, type ServerProcess, serve, temporaryFolder } from '../harness.ts';
import { http3Suite } from '../runtime/protocols/http3/http3-suite.ts';

const peers = http3Suite('HTTP/3 peers');
const run = promisify(execFile);

const IMAGES = 100;
/** A page that counts the images it has loaded, and reports the count and the protocols of page and images to the server. */
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

const large = randomBytes(20 << 20);
let folder = '';
let server: ServerProcess;
let port = 0;
let spki = '';

peers.before(async () => {
	folder = temporaryFolder();
	[port] = (await freePorts(1)) as [number];
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
	writeFileSync(path.join(folder, 'site/large.bin'), large);
	writeFileSync(
		path.join(folder, 'Configfile'),
		`{
	admin off
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
});

/** Runs ngtcp2's client. */
async function client(paths: readonly string[], ...options: string[]): Promise<string> {
	const urls = paths.map(one => `https://localhost:${port}${one}`);
	const args = ['--exit-on-all-streams-close', '--timeout=60s', ...options, '127.0.0.1', String(port), ...urls];
	const { stdout, stderr } = await run('gtlsclient', args, { maxBuffer: 1 << 28 });
	return stdout + stderr;
}

peers('ngtcp2 downloads a page and 20 MiB of streamed data', async () => {
	const output = await client(['/echo']);
	assert.match(output, /\[:status: 200\]/);
	await client(['/large.bin'], '-q', `--download=${folder}`);
	assert.ok(readFileSync(path.join(folder, 'large.bin')).equals(large));
});

peers('ngtcp2 uploads a body', async () => {
	const file = path.join(folder, 'upload.txt');
	writeFileSync(file, 'some words '.repeat(2000));
	await client(['/echo'], '-q', '-m', 'POST', '-d', file, `--download=${folder}`);
	assert.is(readFileSync(path.join(folder, 'echo'), 'utf8'), `HTTP/3.0 ${'some words '.repeat(2000)}`);
});

peers('ngtcp2 sends a hundred concurrent requests', async () => {
	const output = await client(Array.from({ length: 100 }, (_, at) => `/image/${at}.svg`));
	assert.is(output.match(/\[:status: 200\]/g)?.length, 100);
});

peers('ngtcp2 receives everything despite packet loss', async () => {
	await client(['/large.bin'], '-q', '--tx-loss=0.05', '--rx-loss=0.05', `--download=${folder}`);
	assert.ok(readFileSync(path.join(folder, 'large.bin')).equals(large));
});

peers('a browser loads a page with a hundred images over HTTP/3', async () => {
	const child = spawn(
		'chromium',
		[
			...['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', `--user-data-dir=${temporaryFolder()}`],
			...['--enable-quic', `--origin-to-force-quic-on=localhost:${port}`],
			...[`--ignore-certificate-errors-spki-list=${spki}`, '--host-resolver-rules=MAP * 127.0.0.1'],
			...['--remote-debugging-port=0', `https://localhost:${port}/`],
		],
		{ stdio: 'ignore', env: { ...process.env, HOME: folder } },
	);
	const done = /"uri":"(\/done\/[^"]*)"/;
	const end = performance.now() + 60_000;
	while (!done.test(server.output()) && performance.now() < end) await new Promise(resolve => setTimeout(resolve, 100));
	child.kill('SIGKILL');
	await once(child, 'close');
	assert.is(done.exec(server.output())?.[1], `/done/${IMAGES}/h3`, server.output().slice(-2000));
});

peers.run();
