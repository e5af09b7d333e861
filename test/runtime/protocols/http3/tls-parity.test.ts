/** TLS settings have the same effect over QUIC as over TCP: versions, curves, ciphers, secrets, staples, and certificates on demand. */
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import * as assert from 'uvu/assert';
import type { Document } from '../../../../compiler/document/document.ts';
import type { SiteTls } from '../../../../compiler/document/tls-settings.ts';
import { makePrivateKey, privateKeyPem } from '../../../../runtime/certificates/certificate-keys.ts';
import { certificatePem, issueCertificate } from '../../../../runtime/certificates/issue-certificate.ts';
import { TestAuthority, type TestCertificate } from '../../../certificates.ts';
import { freePorts, temporaryFolder, until } from '../../../harness.ts';
import { MUST_STAPLE, ocspResponder, responderExtension } from '../../certificates/ocsp-responder.ts';
import { withServer } from '../../running-server.ts';
import { tlsFailure, tlsGet } from '../../tls/tls-client.ts';
import { headers, openControlStream, REQUEST, response } from './frames.ts';
import { http3Suite } from './http3-suite.ts';
import { QuicClient, type QuicClientOptions } from './quic-client.ts';

const test = http3Suite('TLS settings over QUIC');
const folder = temporaryFolder();
const [port, httpPort] = (await freePorts(2)) as [number, number];
const authority = await TestAuthority.make();
const HANDSHAKE_FAILURE = 0x100 + 40;
const INTERNAL_ERROR = 0x100 + 80;

function keep(name: string, { certificate, key }: TestCertificate): { certificate: string; key: string } {
	const files = { certificate: path.join(folder, `${name}.pem`), key: path.join(folder, `${name}.key`) };
	writeFileSync(files.certificate, certificate);
	writeFileSync(files.key, key, { mode: 0o600 });
	return files;
}

const NAMES = ['plain.test', 'set.test'];
const served = keep('served', await authority.issue({ names: NAMES }));

function document(tls: { readonly [name: string]: SiteTls }, settings: object = {}): Document {
	const storage = { store: 'file_system', root: path.join(folder, 'store') };
	return {
		settings: { http_port: httpPort, https_port: port, auto_https: ['off'], metrics: {}, storage, ...settings },
		sites: Object.entries(tls).map(([name, own]) => ({
			addresses: [`https://${name}:${port}`],
			bind: ['127.0.0.1'],
			tls: { certificates: [served], ...own },
			pipeline: [{ handler: 'respond', body: `${name} {http.request.tls.cipher_suite}` }],
		})),
	};
}

const clients: QuicClient[] = [];

test.after.each(() => {
	for (const client of clients.splice(0)) client.close();
});

/** Performs a handshake. Returns the client or, if the server refuses the handshake, the error code. */
async function handshake(serverName: string, more: QuicClientOptions = {}): Promise<QuicClient | number> {
	const client = new QuicClient(port, { serverName, ...more });
	clients.push(client);
	await client.until('the handshake', () => client.connected || client.closed !== undefined);
	return client.connected ? client : client.closed!.code;
}

async function connected(serverName: string, more: QuicClientOptions = {}): Promise<QuicClient> {
	const client = await handshake(serverName, more);
	if (typeof client === 'number') throw new Error(`refused with ${client}`);
	return client;
}

async function get(client: QuicClient, host: string): Promise<string> {
	openControlStream(client);
	const fields = REQUEST.map(([name, value]) => [name, name === ':authority' ? `${host}:${port}` : value] as const);
	return (await response(client, client.open().write(headers(fields), true))).body;
}

test('curves restrict the key exchange of their site only', async () => {
	await withServer(document({ 'plain.test': {}, 'set.test': { curves: ['secp384r1'] } }), { threads: 1 }, async () => {
		assert.is(await handshake('set.test', { groups: 'X25519' }), HANDSHAKE_FAILURE);
		assert.not.ok((await tlsFailure(port, { servername: 'set.test', ecdhCurve: 'X25519' })).startsWith('answered'));
		for (const groups of ['P-384', 'X25519:P-384']) await connected('set.test', { groups });
		for (const groups of ['P-384', 'X25519']) await connected('plain.test', { groups });
	});
});

test('minimum versions and ciphers of TLS 1.2 change nothing', async () => {
	const own: SiteTls = { min_version: 'tls1.3', ciphers: ['TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384'] };
	await withServer(document({ 'plain.test': {}, 'set.test': own }), { threads: 1 }, async () => {
		for (const name of NAMES) {
			const client = await connected(name);
			assert.is(await get(client, name), `${name} TLS_AES_128_GCM_SHA256`);
		}
	});
});

test('a site that ends with TLS 1.2 refuses QUIC', async () => {
	await withServer(document({ 'plain.test': {}, 'set.test': { max_version: 'tls1.2' } }), { threads: 1 }, async () => {
		await connected('plain.test');
		assert.is(await handshake('set.test'), HANDSHAKE_FAILURE);
		assert.is((await tlsGet(port, { servername: 'set.test' })).version, 'TLSv1.2');
	});
});

test('the secrets log has the secrets of both, and of no other site', async () => {
	const file = path.join(folder, 'secrets.log');
	const sites = document({ 'plain.test': {}, 'set.test': { insecure_secrets_log: file } });
	await withServer(sites, { threads: 1 }, async () => {
		assert.match(await get(await connected('plain.test'), 'plain.test'), /^plain/);
		await tlsGet(port, { servername: 'plain.test' });
		assert.not.ok(existsSync(file));
		const labels = [
			...['CLIENT_HANDSHAKE_TRAFFIC_SECRET', 'SERVER_HANDSHAKE_TRAFFIC_SECRET'],
			...['CLIENT_TRAFFIC_SECRET_0', 'SERVER_TRAFFIC_SECRET_0', 'EXPORTER_SECRET'],
		];
		const logged = (): string[][] => {
			const lines = existsSync(file) ? readFileSync(file, 'latin1').trimEnd().split('\n') : [];
			return lines.map(line => line.split(' '));
		};
		/** Asserts that these lines contain the secrets of a single handshake. */
		const checkSecrets = (lines: string[][]): void => {
			assert.equal(lines.map(([label]) => label).sort(), labels.toSorted());
			assert.is(new Set(lines.map(([, random]) => random)).size, 1);
			for (const [, random, secret] of lines) {
				assert.match(random!, /^[0-9a-f]{64}$/);
				assert.match(secret!, /^([0-9a-f]{64}|[0-9a-f]{96})$/);
			}
		};
		assert.match(await get(await connected('set.test'), 'set.test'), /^set/);
		await until('the secrets over QUIC', () => logged().length >= labels.length);
		checkSecrets(logged());
		assert.is(statSync(file).mode & 0o777, 0o600);
		await tlsGet(port, { servername: 'set.test' });
		await until('the secrets over TCP', () => logged().length >= 2 * labels.length);
		checkSecrets(logged().slice(labels.length));
		await get(await connected('plain.test'), 'plain.test');
		await get(await connected('set.test'), 'set.test');
		await until('the secrets of the next connection', () => logged().length >= 3 * labels.length);
		checkSecrets(logged().slice(2 * labels.length));
	});
});

test('OCSP responses are stapled for clients that ask', async () => {
	const life = { notBefore: new Date(Date.now() - 3_600_000), notAfter: new Date(Date.now() + 86_400_000) };
	const key = await makePrivateKey('p256');
	const root = issueCertificate({ commonName: 'Root', authority: { pathLength: 0 }, key, ...life });
	const signer = { certificate: root, key };
	const responder = await ocspResponder(signer);
	try {
		const own = await makePrivateKey('p256');
		const extensions = [responderExtension(responder.url), MUST_STAPLE];
		const leaf = issueCertificate({ names: ['set.test'], key: own, signer, ...life, extensions });
		const chain = [leaf, root].map(certificatePem).join('');
		const files = keep('stapled', { certificate: chain, key: privateKeyPem(own) } as TestCertificate);
		await withServer(
			document({ 'plain.test': {}, 'set.test': { certificates: [files] } }),
			{ threads: 1 },
			async () => {
				assert.ok(((await connected('set.test', { ocsp: true })).stapled?.length ?? 0) > 100);
				assert.is((await connected('set.test')).stapled, undefined);
				assert.is((await connected('plain.test', { ocsp: true })).stapled, undefined);
				assert.is(responder.requests, 1);
			},
		);
	} finally {
		await responder.close();
	}
});

test('certificates are issued on demand, once for all handshakes that wait for one', async () => {
	const site = {
		addresses: [`https://:${port}`],
		bind: ['127.0.0.1'],
		tls: { issuers: [{ issuer: 'internal' }], on_demand: true },
		pipeline: [{ handler: 'respond', body: 'for {http.request.tls.server_name}' }],
	};
	const { settings } = document({}, { auto_https: ['disable_redirects'] });
	await withServer({ settings: settings!, sites: [site] }, { threads: 2 }, async () => {
		const first = await Promise.all(Array.from({ length: 6 }, () => connected('new.test')));
		for (const client of first) assert.is(await get(client, 'new.test'), 'for new.test');
		// Clients over TCP get the same certificate as those over QUIC.
		assert.is((await tlsGet(port, { servername: 'new.test' })).names, 'DNS:new.test');
		const again = await connected('new.test');
		assert.is(await get(again, 'new.test'), 'for new.test');
		// No certificate can be issued for a name such as `a..b`.
		assert.is(typeof (await handshake('a..b')), 'number');
	});
});

test('without the trusted certificates of its clients, a site fails its handshakes', async () => {
	const { QuicCertificates } = await import('../../../../runtime/tls/quic-certificates.ts');
	const { HandshakeSelector } = await import('../../../../runtime/tls/handshake-selector.ts');
	const { ThreadTls } = await import('../../../../runtime/tls/thread-tls.ts');
	const tls = new ThreadTls(() => {});
	const { certificate: chain, key } = await authority.issue({ names: ['set.test'] });
	tls.applyUpdate({ kind: 'certificates', set: [{ id: 'a', names: ['set.test'], chain, key }], dropped: [] });
	const policies = [{ client_auth: { mode: 'require' } as const }];
	const settings = { policies, names: {}, other: 0, strict_sni_host: true };
	const selector = new HandshakeSelector(settings, undefined as never);
	const failures: string[] = [];
	const failed = (reason: string): void => void failures.push(reason);
	const certificates = new QuicCertificates({
		tls,
		selector: () => selector,
		obtain: async () => false,
		countFailure: failed,
	});
	const addresses = { remoteAddress: '127.0.0.1', localAddress: '127.0.0.1' };
	const hello = { serverName: 'set.test', cipherSuites: ['1301'], signatureSchemes: ['0403'], ...addresses };
	assert.equal(
		certificates.choose(hello, () => {}),
		{ alert: INTERNAL_ERROR - 0x100 },
	);
	assert.equal(failures, ['no_certificate']);
});

test.run();
