/** OCSP responses: fetched for certificates that name a responder, believed only when they are true, kept in the store. */
import { createHash, sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
	BasicOCSPResponse,
	CertStatus,
	id_pkix_ocsp_basic,
	OCSPRequest,
	OCSPResponse,
	OCSPResponseStatus,
	ResponderID,
	ResponseBytes,
	ResponseData,
	RevokedInfo,
	SingleResponse,
} from '@peculiar/asn1-ocsp';
import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import { AlgorithmIdentifier, Certificate } from '@peculiar/asn1-x509';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { makePrivateKey } from '../../../runtime/certificates/certificate-keys.ts';
import { temporaryFolder } from '../../harness.ts';
import { eventually, plan, policy, serveDocument, testManager } from './kept-certificates.ts';
import { type ScriptedAcmeServer, scriptedAcmeServer } from './scripted-acme-server.ts';

const HOUR = 3_600_000;
const statuses = suite('stapled statuses');

/** How the responder behaves. */
interface Responder {
	readonly server: Server;
	readonly url: string;
	requests: number;
	status: 'good' | 'revoked' | 'wrong-key' | 'other' | 'stale' | 'garbage' | 'error';
}

async function responder(acme: ScriptedAcmeServer): Promise<Responder> {
	const server = createServer(async (request, response) => {
		const chunks: Buffer[] = [];
		for await (const chunk of request) chunks.push(chunk as Buffer);
		state.requests++;
		if (state.status === 'error') return void response.writeHead(503).end();
		if (state.status === 'garbage') return void response.end('not a response');
		response.end(await answer(Buffer.concat(chunks), acme, state.status));
	});
	server.listen(0, '127.0.0.1');
	await once(server, 'listening');
	const { port } = server.address() as AddressInfo;
	const state: Responder = { server, url: `http://127.0.0.1:${port}/`, requests: 0, status: 'good' };
	return state;
}

async function answer(request: Buffer, { signer }: ScriptedAcmeServer, how: Responder['status']): Promise<Buffer> {
	const { reqCert } = AsnConvert.parse(request, OCSPRequest).tbsRequest.requestList[0]!;
	if (how === 'other') reqCert.serialNumber = Uint8Array.of(1).buffer;
	const now = Date.now() - (how === 'stale' ? 100 * HOUR : HOUR);
	const spki = AsnConvert.parse(signer.certificate, Certificate).tbsCertificate.subjectPublicKeyInfo.subjectPublicKey;
	const byKey = new OctetString(createHash('sha1').update(Buffer.from(spki)).digest());
	const tbsResponseData = new ResponseData({
		responderID: new ResponderID({ byKey }),
		producedAt: new Date(now),
		responses: [
			new SingleResponse({
				certID: reqCert,
				certStatus:
					how === 'revoked'
						? new CertStatus({ revoked: new RevokedInfo({ revocationTime: new Date(now) }) })
						: new CertStatus({ good: null }),
				thisUpdate: new Date(now),
				nextUpdate: new Date(now + 48 * HOUR),
			}),
		],
	});
	const raw = AsnConvert.serialize(tbsResponseData);
	const key = how === 'wrong-key' ? await makePrivateKey('p256') : signer.key;
	const basic = new BasicOCSPResponse({
		tbsResponseData,
		tbsResponseDataRaw: raw,
		signatureAlgorithm: new AlgorithmIdentifier({ algorithm: '1.2.840.10045.4.3.2' }),
		signature: Uint8Array.from(sign('sha256', Buffer.from(raw), key)).buffer,
	});
	const response = new OctetString(AsnConvert.serialize(basic));
	return Buffer.from(
		AsnConvert.serialize(
			new OCSPResponse({
				responseStatus: OCSPResponseStatus.successful,
				responseBytes: new ResponseBytes({ responseType: id_pkix_ocsp_basic, response }),
			}),
		),
	);
}

const folder = temporaryFolder();
let acme: ScriptedAcmeServer;
let ocsp: Responder;
statuses.before.each(async () => {
	acme = await scriptedAcmeServer(folder);
	ocsp = await responder(acme);
	acme.faults.ocsp = ocsp.url;
});
statuses.after.each(async () => {
	await acme.close();
	ocsp.server.closeAllConnections();
	ocsp.server.close();
});

function wanted(): ReturnType<typeof plan> {
	return plan(
		policy(['a.example.com'], [{ issuer: 'acme', directory: acme.directory, trusted_roots: [acme.rootFile] }]),
	);
}

statuses('a response is stapled, and found in the store by the next process', async () => {
	const test = testManager();
	await serveDocument(test, wanted());
	await eventually('stapled', () => test.sink.for('a.example.com')?.ocsp !== undefined);
	assert.is(ocsp.requests, 1);
	await test.manager.close();
	const next = testManager({ folder: test.folder });
	await serveDocument(next, wanted());
	await eventually('stapled', () => next.sink.for('a.example.com')?.ocsp !== undefined);
	assert.equal(next.sink.for('a.example.com')!.ocsp, test.sink.for('a.example.com')!.ocsp);
	assert.is(ocsp.requests, 1);
	await next.manager.close();
});

for (const how of ['wrong-key', 'other', 'stale', 'garbage', 'error'] as const) {
	statuses(`a response that is ${how} is not stapled, and serving goes on`, async () => {
		ocsp.status = how;
		const test = testManager();
		await serveDocument(test, wanted());
		await eventually('told', () => test.entries.some(({ logger }) => logger === 'tls.ocsp'));
		assert.is(test.sink.for('a.example.com')!.ocsp, undefined);
		assert.ok(test.sink.for('a.example.com')!.chain);
		await test.manager.close();
	});
}

statuses('a certificate that was revoked is replaced', async () => {
	const test = testManager();
	ocsp.status = 'revoked';
	await serveDocument(test, wanted(), { renew_interval: 20 });
	await eventually('asked', () => ocsp.requests > 0);
	const { chain } = test.sink.for('a.example.com')!;
	ocsp.status = 'good';
	await eventually('replaced', () => test.sink.for('a.example.com')!.chain !== chain);
	await test.manager.close();
});

statuses('a response is refreshed in the middle of its life; stapling can be switched off', async () => {
	let now = Date.now();
	const test = testManager({ now: () => now });
	await serveDocument(test, wanted(), { renew_interval: 20, ocsp_interval: 20 });
	await eventually('stapled', () => test.sink.for('a.example.com')?.ocsp !== undefined);
	now += 30 * HOUR;
	await eventually('asked again', () => ocsp.requests > 1);
	await test.manager.close();
	const off = testManager();
	await serveDocument(off, wanted(), { ocsp_stapling: false });
	await eventually('obtained', () => off.sink.for('a.example.com') !== undefined);
	const before = ocsp.requests;
	await new Promise(resolve => setTimeout(resolve, 100));
	assert.is(ocsp.requests, before);
	await off.manager.close();
});

statuses.run();
