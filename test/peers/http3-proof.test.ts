/** Independent HTTP/3 clients: their addresses are validated by a Retry packet, and they authenticate with client certificates. */
import { execFile, spawn } from 'node:child_process';
import { createHash, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import * as assert from 'uvu/assert';
import { TestAuthority, type TestCertificate } from '../certificates.ts';
import { freePorts, type ServerProcess, serve, temporaryFolder, until } from '../harness.ts';
import { http3Suite } from '../runtime/protocols/http3/http3-suite.ts';

const proof = http3Suite('HTTP/3 peers that prove something');
const run = promisify(execFile);
const folder = temporaryFolder();
let server: ServerProcess;
let port = 0;
let known = 0;
let admin = 0;
let spki = '';

function keep(name: string, { certificate, key }: TestCertificate): void {
	writeFileSync(path.join(folder, `${name}.pem`), certificate);
	writeFileSync(path.join(folder, `${name}.key`), key, { mode: 0o600 });
}

proof.before(async () => {
	[port, known, admin] = (await freePorts(3)) as [number, number, number];
	const authority = await TestAuthority.make();
	const served = await authority.issue({ names: ['localhost'] });
	keep('served', served);
	keep('ada', await authority.issue({ subject: 'CN=Ada' }));
	keep('eve', await (await TestAuthority.make('CN=Other')).issue({ subject: 'CN=Eve' }));
	writeFileSync(path.join(folder, 'ca.pem'), authority.pem);
	const { publicKey } = new X509Certificate(served.certificate);
	spki = createHash('sha256')
		.update(publicKey.export({ type: 'spki', format: 'der' }))
		.digest('base64');
	writeFileSync(
		path.join(folder, 'Configfile'),
		`{
	admin 127.0.0.1:${admin}
	metrics
	auto_https disable_redirects
	servers {
		quic {
			retry_above 0
		}
	}
}
https://localhost:${port} {
	bind 127.0.0.1
	tls ${folder}/served.pem ${folder}/served.key
	log {
		output stdout
	}
	respond "served"
}
https://localhost:${known} {
	bind 127.0.0.1
	tls ${folder}/served.pem ${folder}/served.key {
		client_auth {
			mode require_and_verify
			trust_pool file ${folder}/ca.pem
		}
	}
	respond "hello {http.request.tls.client.subject}"
}
`,
	);
	server = await serve([], port, { cwd: folder });
});

proof.after(async () => {
	await server.stop();
});

/** Runs ngtcp2's client. Returns what it prints. */
async function runClient(to: number, ...options: string[]): Promise<string> {
	const args = ['--exit-on-all-streams-close', '--timeout=20s', ...options, '127.0.0.1', String(to)];
	const { stdout, stderr } = await run('gtlsclient', [...args, `https://localhost:${to}/`], { maxBuffer: 1 << 26 });
	return stdout + stderr;
}

async function retries(): Promise<number> {
	const text = await (await fetch(`http://127.0.0.1:${admin}/metrics`)).text();
	return Number(/^svc_http3_refused_total\{reason="retry"\} (\d+)$/m.exec(text)![1]);
}

proof('ngtcp2 proves its address', async () => {
	const before = await retries();
	assert.match(await runClient(port), /\[:status: 200\]/);
	assert.ok((await retries()) > before);
	// The client pads its Initial packets to the largest size that the path allows. Some packets are lost.
	for (let i = 0; i < 3; i++) assert.match(await runClient(port, '--rx-loss=0.1', '--tx-loss=0.1'), /\[:status: 200\]/);
});

proof('ngtcp2 comes back with the token of a former connection', async () => {
	const files = ['token', 'session', 'parameters'].map(name => path.join(folder, name));
	const options = [
		`--token-file=${files[0]}`,
		`--session-file=${files[1]}`,
		`--tp-file=${files[2]}`,
		'--disable-early-data',
	];
	for (let i = 0; i < 3; i++) assert.match(await runClient(port, ...options), /\[:status: 200\]/);
	assert.ok(existsSync(files[1]!));
});

proof('ngtcp2 is known by its certificate', async () => {
	const pair = (name: string): string[] => [`--key=${folder}/${name}.key`, `--cert=${folder}/${name}.pem`];
	assert.match(await runClient(known, ...pair('ada')), /\[:status: 200\]/);
	for (const refused of [pair('eve'), []]) {
		const said = await runClient(known, ...refused).catch((error: { stdout: string; stderr: string }) => {
			return error.stdout + error.stderr;
		});
		assert.not.match(said, /\[:status: 200\]/);
	}
});

proof('a browser proves its address', async () => {
	const child = spawn(
		'chromium',
		[
			...['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', `--user-data-dir=${temporaryFolder()}`],
			...['--enable-quic', `--origin-to-force-quic-on=localhost:${port}`],
			...[`--ignore-certificate-errors-spki-list=${spki}`, '--host-resolver-rules=MAP * 127.0.0.1'],
			...['--remote-debugging-port=0', `https://localhost:${port}/browser`],
		],
		{ stdio: 'ignore', env: { ...process.env, HOME: folder } },
	);
	const whenClosed = once(child, 'close');
	try {
		await until('the request', () => /"proto":"HTTP\/3.0"[^\n]*"uri":"\/browser"/.test(server.output()));
	} finally {
		child.kill('SIGKILL');
		await whenClosed;
	}
});

proof.run();
