/** OCSP stapling for certificates from files: on every thread, and from the first handshake for must-staple certificates. */
import { once } from 'node:events';
import { utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { connect, type SecureVersion } from 'node:tls';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Document, Site } from '../../../compiler/document/document.ts';
import { makePrivateKey, privateKeyPem } from '../../../runtime/certificates/certificate-keys.ts';
import {
	type CertificateSigner,
	certificatePem,
	issueCertificate,
} from '../../../runtime/certificates/issue-certificate.ts';
import { freePorts, temporaryFolder } from '../../harness.ts';
import { MUST_STAPLE, ocspResponder, type Responder, responderExtension } from '../certificates/ocsp-responder.ts';
import { eventually, jsonInput, type TestServer, withServer } from '../running-server.ts';

const life = { notBefore: new Date(Date.now() - 3_600_000), notAfter: new Date(Date.now() + 86_400_000) };
const key = await makePrivateKey('p256');
const root = issueCertificate({ commonName: 'Root', authority: { pathLength: 0 }, key, ...life });
const signer: CertificateSigner = { certificate: root, key };
const [port, httpPort] = (await freePorts(2)) as [number, number];

let folder: string;
let responder: Responder;

/**
 * Writes a certificate for a.test and its key to files. The certificate names the OCSP responder. Returns the paths of the files.
 */
async function writeCertificate(
	name: string,
	mustStaple = false,
	chain = [root],
): Promise<{ certificate: string; key: string }> {
	const own = await makePrivateKey('p256');
	const extensions = [responderExtension(responder.url), ...(mustStaple ? [MUST_STAPLE] : [])];
	const leaf = issueCertificate({ names: ['a.test'], key: own, signer, ...life, extensions });
	const files = { certificate: path.join(folder, `${name}.pem`), key: path.join(folder, `${name}.key`) };
	writeFileSync(files.key, privateKeyPem(own), { mode: 0o600 });
	writeFileSync(files.certificate, [leaf, ...chain].map(certificatePem).join(''));
	return files;
}

function document(files: { certificate: string; key: string }, settings: object = {}): Document {
	const site: Site = {
		addresses: [`https://a.test:${port}`],
		bind: ['127.0.0.1'],
		tls: { certificates: [files] },
		pipeline: [{ handler: 'respond', body: 'ok' }],
	};
	const storage = { store: 'file_system', root: path.join(folder, 'store') };
	const all = { http_port: httpPort, https_port: port, auto_https: ['off'], metrics: {}, storage, ...settings };
	return { settings: all, sites: [site] };
}

/** Returns the size of the stapled OCSP response in bytes; 0 if there is none. */
async function stapleBytes(version: SecureVersion = 'TLSv1.3'): Promise<number> {
	const socket = connect({
		...{ host: '127.0.0.1', port, servername: 'a.test', rejectUnauthorized: false, requestOCSP: true },
		maxVersion: version,
	});
	const response = once(socket, 'OCSPResponse');
	await once(socket, 'secureConnect');
	const [bytes] = (await response) as [Buffer | null];
	socket.destroy();
	return bytes?.length ?? 0;
}

const serving = (
	files: { certificate: string; key: string },
	test: (server: TestServer) => Promise<void>,
	settings = {},
) => withServer(document(files, settings), { threads: 1 }, test);

const staples = suite('stapled responses of certificate files');
staples.before.each(async () => {
	folder = temporaryFolder();
	responder = await ocspResponder(signer);
});
staples.after.each(() => responder.close());

staples('a must-staple certificate is stapled from the first handshake, in TLS 1.2 and 1.3', async () => {
	await serving(await writeCertificate('demanding', true), async ({ runtime }) => {
		assert.ok((await stapleBytes('TLSv1.2')) > 0);
		assert.ok((await stapleBytes('TLSv1.3')) > 0);
		assert.is(responder.requests, 1);
		assert.match(await runtime.metrics(), /^svc_tls_ocsp_responses_total\{result="good"\} 1$/m);
	});
});

staples('other certificates are served at once, and stapled once there is a response', async () => {
	let answer = (): void => {};
	responder.ready = new Promise(resolve => {
		answer = resolve;
	});
	await serving(await writeCertificate('plain'), async () => {
		await eventually('the responder is asked', () => responder.requests === 1);
		assert.is(await stapleBytes(), 0);
		answer();
		await eventually('stapled', async () => (await stapleBytes()) > 0);
	});
});

staples('the next process finds the response in the store, even if the responder is down', async () => {
	const files = await writeCertificate('stored', true);
	await serving(files, async () => assert.ok((await stapleBytes()) > 0));
	responder.status = 'error';
	await serving(files, async () => assert.ok((await stapleBytes()) > 0));
	assert.is(responder.requests, 1);
});

staples('a new certificate gets its own response; an unchanged one keeps the response it has', async () => {
	const files = await writeCertificate('changing', true);
	await serving(files, async ({ log }) => {
		assert.ok((await stapleBytes()) > 0);
		responder.status = 'error';
		utimesSync(files.certificate, new Date(), new Date());
		await eventually('reloaded', () => log.text().includes('certificate file reloaded'));
		assert.ok((await stapleBytes()) > 0);
		assert.is(responder.requests, 1);
		responder.status = 'good';
		await writeCertificate('changing', true);
		await eventually('the responder is asked for the new certificate', () => responder.requests === 2);
		await eventually('stapled', async () => (await stapleBytes()) > 0);
	});
});

for (const how of ['revoked', 'wrong-key', 'stale', 'error'] as const) {
	staples(`a response of kind ${how} is not stapled, and serving continues`, async () => {
		responder.status = how;
		await serving(await writeCertificate('bad', true), async ({ log }) => {
			await eventually('the problem is logged', () => log.entries.some(({ logger }) => logger === 'tls.ocsp'));
			assert.is(await stapleBytes(), 0);
			if (how === 'revoked') assert.match(log.text(), 'its files must be replaced');
		});
	});
}

staples('without the certificate of the issuer, no response can be fetched, which is logged', async () => {
	await serving(await writeCertificate('alone', true, []), async ({ log }) => {
		await eventually('reported', () => log.text().includes('does not contain the certificate of the issuer'));
		assert.is(await stapleBytes(), 0);
		assert.is(responder.requests, 0);
	});
});

staples('a load can switch stapling off and on', async () => {
	const files = await writeCertificate('switched', true);
	await serving(files, async ({ runtime }) => {
		assert.ok((await stapleBytes()) > 0);
		const load = async (settings: object) =>
			assert.is((await runtime.load(jsonInput(document(files, settings)))).result, 'applied');
		await load({ ocsp_stapling: false });
		assert.is(await stapleBytes(), 0);
		await load({});
		await eventually('stapled again', async () => (await stapleBytes()) > 0);
	});
	const off = await writeCertificate('off', true);
	const before = responder.requests;
	await serving(
		off,
		async () => {
			assert.is(await stapleBytes(), 0);
			assert.is(responder.requests, before);
		},
		{ ocsp_stapling: false },
	);
});

staples.run();
