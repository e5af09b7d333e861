/**
 * TLS as openssl, curl and testssl.sh see it: names, ALPN, resumption across threads, client certificates, and weaknesses. If the
 * environment variable TESTSSL is `whole`, testssl.sh runs all its checks, which takes minutes.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, type ServerProcess, serve, temporaryFolder } from '../harness.ts';

const folder = temporaryFolder();
const [port = 0, httpPort = 0] = await freePorts(2);
let server: ServerProcess;

function openssl(...args: readonly string[]): string {
	const { status, stdout, stderr } = spawnSync('openssl', args, { cwd: folder, encoding: 'utf8', input: '' });
	if (status !== 0) throw new Error(`openssl ${args.join(' ')}: ${stderr}`);
	return stdout;
}

function authority(name: string): void {
	const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', `${name}.key`];
	openssl('req', '-x509', ...key, '-out', `${name}.pem`, '-days', '100', '-subj', `/CN=${name}`);
}

function issue(name: string, by: string, extensions: string): void {
	const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', `${name}.key`];
	openssl('req', ...key, '-out', `${name}.csr`, '-subj', `/CN=${name}`);
	writeFileSync(path.join(folder, `${name}.ext`), extensions);
	const signed = ['-CA', `${by}.pem`, '-CAkey', `${by}.key`, '-extfile', `${name}.ext`];
	openssl('x509', '-req', '-in', `${name}.csr`, ...signed, '-out', `${name}.pem`, '-days', '90');
}

/** Runs `openssl s_client` and returns what it prints. */
function runClient(...args: readonly string[]): string {
	const { stdout, stderr } = spawnSync('openssl', ['s_client', '-connect', `127.0.0.1:${port}`, ...args], {
		cwd: folder,
		encoding: 'utf8',
		input: '',
		timeout: 10_000,
	});
	return stdout + stderr;
}

const peers = suite('TLS clients');

peers.before(async () => {
	authority('ca');
	authority('clients');
	const dp =
		'crlDistributionPoints=URI:http://127.0.0.1:1/ca.crl\nkeyUsage=critical,digitalSignature\nextendedKeyUsage=serverAuth';
	issue('site', 'ca', `subjectAltName=DNS:localhost,DNS:a.example,DNS:inner.example\n${dp}\n`);
	issue('wild', 'ca', `subjectAltName=DNS:*.wild.example\n${dp}\n`);
	issue('ada', 'clients', 'extendedKeyUsage=clientAuth\n');
	issue('eve', 'ca', 'extendedKeyUsage=clientAuth\n');
	writeFileSync(
		path.join(folder, 'Configfile'),
		`{
	admin off
	http_port ${httpPort}
	https_port ${port}
	threads 2
}
localhost, a.example {
	tls site.pem site.key
	header Strict-Transport-Security "max-age=31536000"
	header X-Frame-Options DENY
	header X-Content-Type-Options nosniff
	header Content-Security-Policy "default-src 'self'"
	respond "{http.request.proto} {http.request.tls.proto} {http.request.tls.resumed}"
}
*.wild.example {
	tls wild.pem wild.key
	respond "wild"
}
inner.example {
	tls site.pem site.key {
		client_auth {
			trust_pool file clients.pem
		}
	}
	respond "{http.request.tls.client.subject}"
}
`,
	);
	server = await serve([], port, { cwd: folder });
});

peers.after(async () => {
	await server.stop();
});

peers('openssl gets certificates by name, wildcards, unknown names and ALPN', () => {
	assert.match(runClient('-servername', 'a.example', '-CAfile', 'ca.pem'), 'Verify return code: 0 (ok)');
	assert.match(runClient('-servername', 'x.wild.example'), 'subject=CN = wild');
	assert.match(runClient('-servername', 'nobody.example'), 'unrecognized name');
	assert.match(runClient('-servername', 'a.example', '-alpn', 'h2,http/1.1'), 'ALPN protocol: h2');
	assert.match(runClient('-servername', 'a.example', '-alpn', 'http/1.1'), 'ALPN protocol: http/1.1');
	assert.match(runClient('-servername', 'a.example', '-tls1_1', '-cipher', 'ALL:@SECLEVEL=0'), /alert|no protocols/);
});

peers('openssl resumes sessions, whichever thread responds', () => {
	const file = path.join(folder, 'session');
	for (const version of ['-tls1_2', '-tls1_3']) {
		const request = 'GET / HTTP/1.0\r\nHost: a.example\r\n\r\n';
		const run = (...more: readonly string[]) =>
			spawnSync(
				'openssl',
				['s_client', '-connect', `127.0.0.1:${port}`, '-servername', 'a.example', '-ign_eof', version, ...more],
				{
					cwd: folder,
					encoding: 'utf8',
					input: request,
					timeout: 10_000,
				},
			).stdout;
		run('-sess_out', file);
		let reused = 0;
		for (let tries = 0; tries < 40; tries++) if (/^Reused, /m.test(run('-sess_in', file))) reused++;
		assert.ok(reused >= 38, `${version}: ${reused} of 40 resumed`);
	}
});

peers('curl: client certificates are accepted and refused, HTTP redirects, HTTP/2 and 1.1', () => {
	const curl = (...args: readonly string[]) => {
		const resolve = ['a.example', 'inner.example'].flatMap(name => [
			...['--resolve', `${name}:${port}:127.0.0.1`],
			...['--resolve', `${name}:${httpPort}:127.0.0.1`],
		]);
		return spawnSync('curl', ['-s', '--cacert', 'ca.pem', ...resolve, ...args], { cwd: folder, encoding: 'utf8' });
	};
	assert.is(curl(`https://a.example:${port}/`).stdout, 'HTTP/2.0 h2 false');
	assert.is(curl('--http1.1', `https://a.example:${port}/`).stdout, 'HTTP/1.1 http/1.1 false');
	const inner = `https://inner.example:${port}/`;
	assert.is(curl('--cert', 'ada.pem', '--key', 'ada.key', inner).stdout, 'CN=ada');
	assert.is.not(curl('--cert', 'eve.pem', '--key', 'eve.key', inner).status, 0);
	assert.is.not(curl(inner).status, 0);
	const redirect = curl('-i', `http://a.example:${httpPort}/x?y=1`).stdout;
	assert.match(redirect, /^HTTP\/1\.1 308 /);
	assert.match(redirect, 'Location: https://a.example/x?y=1');
});

/** testssl.sh options: protocols, cipher order, server defaults, forward secrecy, vulnerabilities. */
const TESTSSL_OPTIONS = process.env.TESTSSL === 'whole' ? [] : ['-p', '-P', '-S', '-f', '-U'];

peers('testssl.sh finds nothing above LOW', async () => {
	const report = path.join(folder, 'report.json');
	const args = ['--warnings', 'off', '--color', '0', '--add-ca', path.join(folder, 'ca.pem'), '--ip', '127.0.0.1'];
	const child = spawn('testssl', [...args, ...TESTSSL_OPTIONS, '--jsonfile', report, `https://localhost:${port}`], {
		stdio: 'ignore',
	});
	const timer = setTimeout(() => child.kill('SIGKILL'), 300_000);
	await once(child, 'exit');
	clearTimeout(timer);
	const findings = JSON.parse(readFileSync(report, 'utf8')) as { id: string; severity: string; finding: string }[];
	const grade = findings.find(({ id }) => id === 'overall_grade')?.finding;
	console.log(`testssl.sh: ${findings.length} findings, grade ${grade ?? 'not given by this version of it'}`);
	const bad = findings.filter(({ severity }) => ['MEDIUM', 'HIGH', 'CRITICAL'].includes(severity));
	assert.equal(bad, []);
	assert.ok(findings.length > 60, `${findings.length} findings`);
});

peers.run();
