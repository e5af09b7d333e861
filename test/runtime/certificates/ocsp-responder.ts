/** An OCSP responder whose behavior a test determines, and the certificate extensions that refer to it. */
import { createHash, sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
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
import { makePrivateKey } from '../../../runtime/certificates/certificate-keys.ts';
import type { CertificateRequest, CertificateSigner } from '../../../runtime/certificates/issue-certificate.ts';

const HOUR = 3_600_000;

/** A running responder and its behavior. */
export interface Responder {
	readonly url: string;
	requests: number;
	status: 'good' | 'revoked' | 'wrong-key' | 'other' | 'stale' | 'garbage' | 'error';
	/** Requests are answered only after this promise resolves. */
	ready: Promise<void>;
	close(): void;
}

/** Starts a responder for the certificates that `signer` has signed. */
export async function ocspResponder(signer: CertificateSigner): Promise<Responder> {
	const server = createServer(async (request, response) => {
		const chunks: Buffer[] = [];
		for await (const chunk of request) chunks.push(chunk as Buffer);
		state.requests++;
		await state.ready;
		if (state.status === 'error') return void response.writeHead(503).end();
		if (state.status === 'garbage') return void response.end('not a response');
		response.end(await answer(Buffer.concat(chunks), signer, state.status));
	});
	server.listen(0, '127.0.0.1');
	await once(server, 'listening');
	const { port } = server.address() as AddressInfo;
	const state: Responder = {
		url: `http://127.0.0.1:${port}/`,
		requests: 0,
		status: 'good',
		ready: Promise.resolve(),
		close() {
			server.closeAllConnections();
			server.close();
		},
	};
	return state;
}

async function answer(request: Buffer, signer: CertificateSigner, how: Responder['status']): Promise<Buffer> {
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

type CertificateExtension = NonNullable<CertificateRequest['extensions']>[number];

/** Returns the extension that names a responder (RFC 5280 §4.2.2.1). */
export function responderExtension(url: string): CertificateExtension {
	const wrap = (tag: number, content: Buffer): Buffer => Buffer.concat([Buffer.of(tag, content.length), content]);
	const method = Buffer.from('06082b06010505073001', 'hex');
	const description = wrap(0x30, Buffer.concat([method, wrap(0x86, Buffer.from(url))]));
	return { oid: '1.3.6.1.5.5.7.1.1', critical: false, value: wrap(0x30, description) };
}

/** The extension that demands a stapled response (RFC 7633). */
export const MUST_STAPLE: CertificateExtension = {
	oid: '1.3.6.1.5.5.7.1.24',
	critical: false,
	value: Buffer.from('3003020105', 'hex'),
};
