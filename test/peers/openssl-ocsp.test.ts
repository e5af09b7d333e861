/**
 * OpenSSL's OCSP responder as a peer: it understands our requests, and svc understands its responses, whether the issuer or a
 * delegate has signed them.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { id_kp_OCSPSigning } from '@peculiar/asn1-x509';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { makePrivateKey, privateKeyPem } from '../../runtime/certificates/certificate-keys.ts';
import { certificatePem, issueCertificate } from '../../runtime/certificates/issue-certificate.ts';
import { encodeStatusRequest, parseStatus } from '../../runtime/certificates/ocsp-message.ts';
import { freePorts, serve, temporaryFolder } from '../harness.ts';
import { MUST_STAPLE, responderExtension } from '../runtime/certificates/ocsp-responder.ts';

const ocsp = suite('OpenSSL OCSP');
const life = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 86_400_000) };

for (const signedBy of ['issuer', 'delegate', 'stranger'] as const) {
	ocsp(`a status signed by the ${signedBy}`, async () => {
		const folder = temporaryFolder();
		const file = (name: string, text: string): string => {
			writeFileSync(path.join(folder, name), text);
			return path.join(folder, name);
		};
		const key = await makePrivateKey('p256');
		const issuer = issueCertificate({ commonName: 'Issuer', authority: { pathLength: 0 }, key, ...life });
		const signer = { certificate: issuer, key };
		const leaves = await Promise.all(
			['good', 'revoked', 'unknown'].map(async name => {
				const leaf = issueCertificate({ names: [`${name}.test`], key: await makePrivateKey('p256'), signer, ...life });
				return new X509Certificate(leaf);
			}),
		);
		const delegateKey = await makePrivateKey('p256');
		const delegate = issueCertificate({
			commonName: 'Responder',
			key: delegateKey,
			...life,
			...(signedBy === 'delegate' ? { signer } : {}),
			purposes: [id_kp_OCSPSigning],
		});
		const lines = leaves
			.slice(0, 2)
			.map(({ serialNumber }, at) =>
				[at === 0 ? 'V' : 'R', '301231235959Z', at === 0 ? '' : '250101000000Z', serialNumber, 'unknown', '/CN=x'].join(
					'\t',
				),
			);
		const [port] = (await freePorts(1)) as [number];
		const own = signedBy === 'issuer';
		const responder: ChildProcess = spawn(
			'openssl',
			[
				...['ocsp', '-port', String(port), '-ignore_err', '-ndays', '1'],
				...['-index', file('index.txt', `${lines.join('\n')}\n`), '-CA', file('ca.pem', certificatePem(issuer))],
				...['-rsigner', file('signer.pem', certificatePem(own ? issuer : delegate))],
				...['-rkey', file('key.pem', privateKeyPem(own ? key : delegateKey))],
			],
			{ stdio: ['ignore', 'ignore', 'pipe'] },
		);
		try {
			// Waits for the responder's output instead of probing its port, because the responder handles one connection at a
			// time, and a probe would block it.
			for await (const text of responder.stderr!) if (String(text).includes('waiting')) break;
			const parent = new X509Certificate(issuer);
			const ask = async (leaf: X509Certificate): Promise<string> => {
				const response = await fetch(`http://127.0.0.1:${port}/`, {
					method: 'POST',
					headers: { 'content-type': 'application/ocsp-request', connection: 'close' },
					body: new Uint8Array(encodeStatusRequest(leaf, parent)),
				});
				return parseStatus(new Uint8Array(await response.arrayBuffer()), leaf, parent, Date.now()).status;
			};
			const results: string[] = [];
			for (const leaf of leaves) results.push(await ask(leaf).catch(error => error.message));
			assert.equal(
				results,
				signedBy === 'stranger'
					? Array(3).fill('The response is not signed by the issuer of the certificate.')
					: ['good', 'revoked', 'unknown'],
			);
		} finally {
			responder.kill('SIGKILL');
		}
	});
}

ocsp('a must-staple certificate from files is stapled in the first handshake', async () => {
	const folder = temporaryFolder();
	const file = (name: string, text: string): string => {
		writeFileSync(path.join(folder, name), text);
		return path.join(folder, name);
	};
	const [ocspPort, port] = (await freePorts(2)) as [number, number];
	const key = await makePrivateKey('p256');
	const root = issueCertificate({ commonName: 'Issuer', authority: { pathLength: 0 }, key, ...life });
	const leafKey = await makePrivateKey('p256');
	const extensions = [responderExtension(`http://127.0.0.1:${ocspPort}/`), MUST_STAPLE];
	const leaf = issueCertificate({
		...{ names: ['localhost'], key: leafKey, signer: { certificate: root, key }, ...life },
		extensions,
	});
	const { serialNumber } = new X509Certificate(leaf);
	const ca = file('ca.pem', certificatePem(root));
	const responder = spawn(
		'openssl',
		[
			...['ocsp', '-port', String(ocspPort), '-ignore_err', '-ndays', '1', '-CA', ca, '-rsigner', ca],
			...['-index', file('index.txt', `V\t301231235959Z\t\t${serialNumber}\tunknown\t/CN=x\n`)],
			...['-rkey', file('ca.key', privateKeyPem(key))],
		],
		{ stdio: ['ignore', 'ignore', 'pipe'] },
	);
	for await (const text of responder.stderr!) if (String(text).includes('waiting')) break;
	file('leaf.pem', certificatePem(leaf) + certificatePem(root));
	file('leaf.key', privateKeyPem(leafKey));
	const sites = `https://localhost:${port} {\n\tbind 127.0.0.1\n\ttls leaf.pem leaf.key\n\trespond ok\n}\n`;
	file('Compatfile', `{\n\tadmin off\n\tauto_https off\n\tstorage file_system ${folder}/store\n}\n${sites}`);
	const server = await serve(['Compatfile'], port, { cwd: folder });
	try {
		for (const version of ['-tls1_2', '-tls1_3']) {
			const { stdout } = spawnSync(
				'openssl',
				['s_client', '-connect', `127.0.0.1:${port}`, '-servername', 'localhost', '-status', '-CAfile', ca, version],
				{ input: '', encoding: 'utf8' },
			);
			assert.match(stdout, /OCSP Response Status: successful/, version);
			assert.match(stdout, /Cert Status: good/, version);
			assert.match(stdout, /Verify return code: 0 \(ok\)/, version);
		}
	} finally {
		responder.kill('SIGKILL');
		await server.stop();
	}
});

ocsp.run();
