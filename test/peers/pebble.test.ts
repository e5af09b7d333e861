/**
 * pebble, an ACME server for tests, with its DNS server. A first start obtains certificates by every type of challenge, and the
 * certificates are renewed under load.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { request as httpsRequest } from 'node:https';
import path from 'node:path';
import { connect } from 'node:tls';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { makePrivateKey, privateKeyPem } from '../../runtime/certificates/certificate-keys.ts';
import { certificatePem, issueCertificate } from '../../runtime/certificates/issue-certificate.ts';
import { freePorts, type ServerProcess, serve, temporaryFolder, waitForPort } from '../harness.ts';

const pebble = suite('pebble');
const folder = temporaryFolder();
const rootFile = path.join(folder, 'root.pem');
let ports: { acme: number; management: number; http: number; https: number; dns: number; dnsApi: number };
let children: ChildProcess[] = [];
let server: ServerProcess | undefined;

async function makeTlsFiles(): Promise<void> {
	const key = await makePrivateKey('p256');
	const life = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 86_400_000) };
	const root = issueCertificate({ commonName: 'Test Root', authority: { pathLength: 0 }, key, ...life });
	const own = await makePrivateKey('p256');
	const leaf = issueCertificate({ names: ['127.0.0.1'], key: own, signer: { certificate: root, key }, ...life });
	writeFileSync(rootFile, certificatePem(root));
	writeFileSync(path.join(folder, 'cert.pem'), certificatePem(leaf));
	writeFileSync(path.join(folder, 'key.pem'), privateKeyPem(own));
}

/** Starts pebble with the given environment variables and settings. */
async function startPebble(env: { [name: string]: string } = {}, more: object = {}): Promise<void> {
	const [acme, management, http, https, dns, dnsApi] = (await freePorts(6)) as [
		number,
		number,
		number,
		number,
		number,
		number,
	];
	ports = { acme, management, http, https, dns, dnsApi };
	await makeTlsFiles();
	const config = {
		pebble: {
			listenAddress: `127.0.0.1:${acme}`,
			managementListenAddress: `127.0.0.1:${management}`,
			certificate: path.join(folder, 'cert.pem'),
			privateKey: path.join(folder, 'key.pem'),
			httpPort: http,
			tlsPort: https,
			ocspResponderURL: '',
			externalAccountBindingRequired: false,
			...more,
		},
	};
	writeFileSync(path.join(folder, 'pebble.json'), JSON.stringify(config));
	const quiet = { stdio: 'ignore' as const };
	children = [
		spawn(
			'pebble-challtestsrv',
			[
				...['-http01', '', '-https01', '', '-tlsalpn01', '', '-defaultIPv6', ''],
				...['-dns01', `127.0.0.1:${dns}`, '-management', `127.0.0.1:${dnsApi}`],
			],
			quiet,
		),
		spawn('pebble', ['-config', path.join(folder, 'pebble.json'), '-dnsserver', `127.0.0.1:${dns}`], {
			...quiet,
			env: { ...process.env, PEBBLE_VA_NOSLEEP: '1', PEBBLE_WFE_NONCEREJECT: '0', ...env },
		}),
	];
	await Promise.all([waitForPort(acme), waitForPort(dnsApi)]);
}

pebble.after.each(async () => {
	await server?.stop();
	server = undefined;
	for (const child of children) {
		child.kill('SIGKILL');
		if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
	}
});

/** Starts the server with an issuer, sites, and additional global options. */
async function start(issuer: string, sites: string, options = '', store = temporaryFolder()): Promise<string> {
	const file = path.join(store, 'Configfile');
	writeFileSync(
		file,
		`{
	http_port ${ports.http}
	https_port ${ports.https}
	storage file_system store
	threads 2
	${options}
	cert_issuer acme {
		dir https://127.0.0.1:${ports.acme}/dir
		trusted_roots ${rootFile}
		${issuer}
	}
}
${sites}
`,
	);
	server = await serve([file], ports.https);
	return store;
}

/** Returns the certificate that the server presents for a name; undefined if there is none yet. */
function servedCertificate(name: string): Promise<X509Certificate | undefined> {
	return new Promise(resolve => {
		const socket = connect({ host: '127.0.0.1', port: ports.https, servername: name, rejectUnauthorized: false });
		socket.once('secureConnect', () => {
			resolve(socket.getPeerX509Certificate());
			socket.destroy();
		});
		socket.once('error', () => resolve(undefined));
		socket.setTimeout(5000, () => {
			socket.destroy();
			resolve(undefined);
		});
	});
}

/** Waits until a name has a certificate issued by pebble. Throws the server's log after `limit` milliseconds. */
async function waitForCertificate(name: string, limit = 30_000): Promise<X509Certificate> {
	const end = performance.now() + limit;
	for (;;) {
		const certificate = await servedCertificate(name);
		if (certificate?.issuer.includes('Pebble')) return certificate;
		if (performance.now() > end) throw new Error(`no certificate for ${name}:\n${server!.output()}`);
		await new Promise(resolve => setTimeout(resolve, 100));
	}
}

const sites = (...names: string[]): string => names.map(name => `${name} {\n\trespond "ok"\n}`).join('\n');

/** Creates a program for `dns exec` that sets records of pebble's DNS server. Returns the command. */
function dnsProgram(): string {
	const program = path.join(folder, 'set-record.mjs');
	writeFileSync(
		program,
		`const [action, host, value] = process.argv.slice(2);
const path = action === 'present' ? 'set-txt' : 'clear-txt';
const answer = await fetch('http://127.0.0.1:${ports.dnsApi}/' + path, { method: 'POST', body: JSON.stringify({ host, value }) });
process.exit(answer.ok ? 0 : 1);
`,
	);
	chmodSync(program, 0o700);
	return `${process.execPath} ${program}`;
}

pebble('HTTP-01: a first run obtains certificates with no manual step; nothing secret is logged', async () => {
	await startPebble();
	const store = await start('disable_tlsalpn_challenge', sites('a.example.test', 'b.example.test'));
	for (const name of ['a.example.test', 'b.example.test']) {
		const certificate = await waitForCertificate(name);
		assert.is(certificate.checkHost(name), name);
	}
	const [leaf, key] = ['crt', 'key'].map(extension => {
		const issuer = `127.0.0.1-${ports.acme}-dir`;
		return readFileSync(
			path.join(store, `store/certificates/${issuer}/a.example.test/a.example.test.${extension}`),
			'utf8',
		);
	});
	assert.is(new X509Certificate(leaf!).fingerprint256, (await servedCertificate('a.example.test'))!.fingerprint256);
	const secret = key!.split('\n')[1]!;
	assert.not.ok(server!.output().includes(secret));
	assert.not.match(server!.output(), /PRIVATE KEY/);
});

pebble('TLS-ALPN-01: a first run obtains a certificate', async () => {
	await startPebble();
	await start('disable_http_challenge', sites('alpn.example.test'));
	await waitForCertificate('alpn.example.test');
});

pebble('DNS-01 by a program: wildcards too', async () => {
	await startPebble();
	await start(
		`dns exec ${dnsProgram()}\n\t\tresolvers 127.0.0.1:${ports.dns}`,
		sites('*.dns.example.test', 'dns.example.test'),
	);
	const certificate = await waitForCertificate('any.dns.example.test');
	assert.is(certificate.subjectAltName, 'DNS:*.dns.example.test');
	await waitForCertificate('dns.example.test');
});

pebble(
	'with randomly rejected nonces and reused authorizations, all certificates are eventually obtained',
	async () => {
		await startPebble({ PEBBLE_WFE_NONCEREJECT: '50', PEBBLE_AUTHZREUSE: '50' });
		const names = Array.from({ length: 8 }, (_, at) => `n${at}.example.test`);
		await start('', sites(...names));
		for (const name of names) await waitForCertificate(name, 60_000);
	},
);

pebble('one of the chains offered by pebble is chosen', async () => {
	await startPebble({ PEBBLE_ALTERNATE_ROOTS: '2', PEBBLE_CHAIN_LENGTH: '2' });
	const roots = await Promise.all(
		[0, 1, 2].map(async at => new X509Certificate(await fetchFromPebble(ports.management, `/roots/${at}`))),
	);
	const wanted = /CN=(.*)/.exec(roots[2]!.subject)![1]!;
	const store = await start(`preferred_chains {\n\t\t\troot_common_name "${wanted}"\n\t\t}`, sites('c.example.test'));
	await waitForCertificate('c.example.test');
	const file = path.join(store, `store/certificates/127.0.0.1-${ports.acme}-dir/c.example.test/c.example.test.crt`);
	const last = readFileSync(file, 'utf8')
		.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----/g)!
		.at(-1)!;
	assert.ok(new X509Certificate(last).issuer.includes(wanted));
});

pebble('a renewal replaces a certificate under load without a failed handshake', async () => {
	await startPebble({}, { certificateValidityPeriod: 6 });
	await start('', sites('r.example.test'), 'renew_interval 200ms');
	const first = await waitForCertificate('r.example.test');
	const seen = new Set<string>([first.fingerprint256]);
	let handshakes = 0;
	let failures = 0;
	const end = performance.now() + 12_000;
	await Promise.all(
		Array.from({ length: 4 }, async () => {
			while (performance.now() < end && seen.size < 3) {
				const certificate = await servedCertificate('r.example.test');
				handshakes++;
				if (certificate) seen.add(certificate.fingerprint256);
				else failures++;
			}
		}),
	);
	assert.ok(seen.size >= 2, `${seen.size} certificates in ${handshakes} handshakes`);
	assert.is(failures, 0, `${failures} of ${handshakes} handshakes failed`);
});

/** Fetches a body from pebble's management address. Does not verify its certificate, which is made for the test. */
function fetchFromPebble(port: number, file: string): Promise<string> {
	return new Promise((resolve, reject) => {
		httpsRequest({ host: '127.0.0.1', port, path: file, rejectUnauthorized: false }, response => {
			let text = '';
			response.setEncoding('utf8').on('data', chunk => {
				text += chunk;
			});
			response.on('end', () => resolve(text));
		})
			.on('error', reject)
			.end();
	});
}

pebble.run();
