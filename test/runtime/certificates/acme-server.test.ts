/** The ACME server of an internal authority certifies names that the client controls, and refuses everything else. */
import { createHash, generateKeyPairSync, type KeyObject, sign, X509Certificate } from 'node:crypto';
import { createSocket, type Socket as Datagrams } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createSecureContext, createServer as createTlsServer, type Server as TlsServer } from 'node:tls';
import { decode, encode } from 'dns-packet';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { AcmeServerSettings } from '../../../compiler/modules/directives/acme-server/acme-server-handler.ts';
import { createJws, publicJwk } from '../../../runtime/certificates/acme/acme-connection.ts';
import type { CertificateManager } from '../../../runtime/certificates/certificate-feed.ts';
import { makePrivateKey } from '../../../runtime/certificates/certificate-keys.ts';
import { certificateRequest } from '../../../runtime/certificates/certificate-request.ts';
import { createCertificateManager } from '../../../runtime/certificates/manager/certificate-manager.ts';
import { temporaryFolder } from '../../harness.ts';
import {
	eventually,
	planOfPolicies,
	policyForNames,
	serveDocument,
	type TestManager,
	testManager,
} from './test-manager.ts';

const acmeServer = suite('ACME server');

/** A site with `acme_server`, and servers that answer the validation requests for the names of a client. */
interface AcmeSite {
	readonly base: string;
	settings: AcmeServerSettings;
	readonly entries: { message: string }[];
	close(): Promise<void>;
}

let client: TestManager;
let front: AcmeSite;
let validated: Server;
let validatedTls: TlsServer;
let names: Datagrams;
let dnsValue: string | undefined;

acmeServer.before.each(async () => {
	client = testManager();
	validated = createServer((request, response) => {
		const token = request.url!.split('/').at(-1)!;
		if (request.url!.startsWith('/moved/')) return void response.end(client.sink.answers.http01[token] ?? '');
		const { port } = validated.address() as AddressInfo;
		if (request.headers.host!.startsWith('127.0.0.1')) {
			return void response.writeHead(302, { location: `http://localhost:${port}/moved/${token}` }).end();
		}
		response.end(client.sink.answers.http01[token] ?? 'nothing');
	}).listen(0);
	validatedTls = createTlsServer({
		ALPNProtocols: ['acme-tls/1'],
		SNICallback: (name, done) => {
			const { chain, key } = client.sink.answers.alpn[name] ?? { chain: '', key: '' };
			done(null, chain === '' ? undefined : createSecureContext({ cert: chain, key }));
		},
	}).listen(0);
	validatedTls.on('tlsClientError', () => {});
	names = createSocket('udp4').bind(0, '127.0.0.1');
	names.on('message', (message, from) => {
		const query = decode(message);
		const [question] = query.questions!;
		const answers =
			question!.type === 'TXT' && dnsValue !== undefined
				? [{ type: 'TXT' as const, name: question!.name, data: [dnsValue], ttl: 1 }]
				: [];
		names.send(
			encode({ type: 'response', id: query.id!, questions: query.questions!, answers }),
			from.port,
			from.address,
		);
	});
	await Promise.all([once(validated, 'listening'), once(validatedTls, 'listening'), once(names, 'listening')]);
	front = await openFront();
});

acmeServer.after.each(async () => {
	await client.manager.close();
	await front.close();
	for (const server of [validated, validatedTls]) server.close();
	validated.closeAllConnections();
	names.close();
});

async function openFront(): Promise<AcmeSite> {
	const entries: { message: string }[] = [];
	const folder = temporaryFolder();
	const port = (server: Server | TlsServer): number => (server.address() as AddressInfo).port;
	const manager: CertificateManager = createCertificateManager(
		{
			sink: { publish: () => {}, drop: () => {}, setChallenges: async () => {} },
			workingDirectory: folder,
			environment: { SVC_TLS_STORE: folder },
			log: (_level, _logger, message) => entries.push({ message }),
		},
		{ validationPorts: { http: port(validated), tls: port(validatedTls) } },
	);
	const server = createServer(async (request, response) => {
		const chunks: Buffer[] = [];
		for await (const chunk of request) chunks.push(chunk as Buffer);
		const { status, headers, body } = await manager.answerAcme!(
			{
				method: request.method!,
				resource: request.url!.replace('/acme/local/', ''),
				base: self.base,
				contentType: request.headers['content-type'] ?? '',
				body: Buffer.concat(chunks).toString('utf8'),
			},
			self.settings,
			{},
		);
		for (const [name, value] of headers) response.appendHeader(name, value);
		const type = headers.findLast(([name]) => name === 'Content-Type')![1];
		response.setHeader('content-type', type);
		response.writeHead(status).end(body);
	}).listen(0, '127.0.0.1');
	await once(server, 'listening');
	const self: AcmeSite = {
		base: `http://127.0.0.1:${(server.address() as AddressInfo).port}/acme/local`,
		settings: {},
		entries,
		async close() {
			server.closeAllConnections();
			server.close();
			await manager.close();
		},
	};
	return self;
}

/** Orders a certificate with svc's own ACME client. */
async function orderCertificate(name: string, more: object = {}): Promise<void> {
	await serveDocument(
		client,
		planOfPolicies(policyForNames([name], [{ issuer: 'acme', directory: `${front.base}/directory`, ...more }])),
	);
	await eventually(`${name} is obtained or refused`, () => {
		return client.sink.for(name) !== undefined || client.entries.some(({ level }) => level === 'error');
	});
}

acmeServer(
	'HTTP-01: a name that answers the challenge gets a certificate of the authority, also through a redirect',
	async () => {
		await orderCertificate('localhost', { disable_tlsalpn_challenge: true });
		const { chain } = client.sink.for('localhost')!;
		const [leaf, intermediate] = chain
			.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----\n/g)!
			.map(one => new X509Certificate(one));
		assert.ok(leaf!.verify(intermediate!.publicKey));
		assert.is((leaf!.validToDate.getTime() - leaf!.validFromDate.getTime()) / 3_600_000, 12);
		await orderCertificate('127.0.0.1', { disable_tlsalpn_challenge: true });
		assert.ok(client.sink.for('127.0.0.1'));
	},
);

acmeServer('TLS-ALPN-01: a name that presents the challenge certificate gets a certificate', async () => {
	front.settings = { challenges: ['tls-alpn-01'], lifetime: 3_600_000, sign_with_root: true };
	await orderCertificate('localhost', { disable_http_challenge: true });
	const certificate = new X509Certificate(client.sink.for('localhost')!.chain);
	assert.is(certificate.validToDate.getTime() - certificate.validFromDate.getTime(), 3_600_000);
	assert.match(certificate.issuer, /Root/);
});

acmeServer('names that do not answer, are not allowed or are denied get no certificate', async () => {
	front.settings = { allow: { domains: ['localhost', '*.lan.example'] }, deny: { domains: ['no.lan.example'] } };
	for (const [name, why] of [
		['not-matching.localhost', /rejectedIdentifier.*is not allowed/],
		['10.0.0.1', /rejectedIdentifier/],
		['no.lan.example', /rejectedIdentifier.*is denied/],
	] as const) {
		await orderCertificate(name);
		assert.match(JSON.stringify(client.entries), why);
		client.entries.length = 0;
	}
	client.sink.setChallenges = async () => {};
	client.sink.answers = { http01: {}, alpn: {} };
	await orderCertificate('localhost');
	assert.is(client.sink.for('localhost'), undefined);
	assert.match(JSON.stringify(client.entries), /did not answer with the key authorization/);
});

/** Members that the server's responses may have. */
interface AnswerBody {
	readonly type: string;
	readonly status: string;
	readonly authorizations: readonly string[];
	readonly finalize: string;
	readonly certificate: string;
	readonly challenges: readonly { readonly type: string; readonly url: string; readonly token: string }[];
}

/** Creates a low-level client that can send arbitrary requests. */
async function rawClient(key: KeyObject): Promise<{
	post: (
		resource: string,
		payload: unknown,
		header?: object,
	) => Promise<{ status: number; body: AnswerBody; text: string; location: string }>;
	account: string;
}> {
	const nonce = async (): Promise<string> =>
		(await fetch(`${front.base}/new-nonce`, { method: 'HEAD' })).headers.get('replay-nonce')!;
	const state = { account: '' };
	const post = async (resource: string, payload: unknown, header: object = {}) => {
		const url = resource.startsWith('http') ? resource : `${front.base}/${resource}`;
		const who = state.account === '' ? { jwk: publicJwk(key) } : { kid: state.account };
		const body = createJws({ alg: 'ES256', url, nonce: await nonce(), ...who, ...header }, payload, data =>
			sign('sha256', data, { key, dsaEncoding: 'ieee-p1363' }),
		);
		const answer = await fetch(url, { method: 'POST', body, headers: { 'content-type': 'application/jose+json' } });
		const text = await answer.text();
		return {
			status: answer.status,
			body: (text.startsWith('{') ? JSON.parse(text) : {}) as AnswerBody,
			text,
			location: answer.headers.get('location') ?? '',
		};
	};
	state.account = (await post('new-account', { termsOfServiceAgreed: true })).location;
	return { post, account: state.account };
}

const problem = ({ body }: { body: AnswerBody }): string => body.type.replace('urn:ietf:params:acme:error:', '');

acmeServer('DNS-01 validates a wildcard where wildcards are allowed', async () => {
	const me = await rawClient(await makePrivateKey('p256'));
	const identifiers = [{ type: 'dns', value: '*.example.test' }];
	assert.is(problem(await me.post('new-order', { identifiers })), 'rejectedIdentifier');
	front.settings = {
		allow_wildcard_names: true,
		resolvers: [`127.0.0.1:${(names.address() as AddressInfo).port}`],
	};
	const key = await makePrivateKey('p256');
	const dns = await rawClient(key);
	const made = await dns.post('new-order', { identifiers });
	const authorization = await dns.post(made.body.authorizations[0]!, undefined);
	assert.equal(
		authorization.body.challenges.map(({ type }) => type),
		['dns-01'],
	);
	const thumbprint = createHash('sha256')
		.update(JSON.stringify(publicJwk(key)))
		.digest('base64url');
	const { url, token } = authorization.body.challenges[0]!;
	dnsValue = createHash('sha256').update(`${token}.${thumbprint}`).digest('base64url');
	await dns.post(url, {});
	await eventually('ready', async () => (await dns.post(made.location, undefined)).body.status === 'ready');
	const csr = certificateRequest(['*.example.test'], await makePrivateKey('rsa2048')).toString('base64url');
	const done = await dns.post(made.body.finalize, { csr });
	assert.is(done.body.status, 'valid');
	const chain = (await dns.post(done.body.certificate, undefined)).text;
	assert.is(new X509Certificate(chain).subjectAltName, 'DNS:*.example.test');
});

acmeServer("forged and replayed requests, and requests for other accounts' resources, are refused", async () => {
	const key = await makePrivateKey('p256');
	const me = await rawClient(key);
	const other = await rawClient(await makePrivateKey('p256'));
	const identifiers = [{ type: 'dns', value: 'localhost' }];
	const made = await me.post('new-order', { identifiers });
	assert.is(made.status, 201);
	assert.is((await other.post(made.location, undefined)).status, 404);
	assert.is((await other.post(made.body.authorizations[0]!, undefined)).status, 404);
	assert.is((await other.post(me.account, undefined)).status, 403);
	assert.is(problem(await other.post(made.location, undefined, { kid: me.account })), 'malformed');
	assert.is(problem(await me.post('new-order', { identifiers }, { nonce: 'never-given' })), 'badNonce');
	assert.is(problem(await me.post('new-order', { identifiers }, { url: `${front.base}/new-account` })), 'unauthorized');
	assert.is(problem(await me.post('new-order', { identifiers }, { alg: 'HS256' })), 'badSignatureAlgorithm');
	assert.is(problem(await me.post('new-order', { identifiers }, { alg: 'none' })), 'badSignatureAlgorithm');
	assert.is(problem(await me.post('new-order', { identifiers: [] })), 'malformed');
	assert.is(
		problem(await me.post('new-order', { identifiers: [{ type: 'dns', value: '../x' }] })),
		'rejectedIdentifier',
	);
	assert.is(problem(await me.post('new-order', { identifiers: [{ type: 'ip', value: 'localhost' }] })), 'malformed');
	assert.is(problem(await me.post(made.body.finalize, { csr: '' })), 'orderNotReady');
	for (const body of [
		'',
		'{}',
		'x',
		'[]',
		'{"protected":1}',
		`{"protected":"${'A'.repeat(100)}","payload":"","signature":""}`,
	]) {
		const answer = await fetch(`${front.base}/new-order`, {
			method: 'POST',
			body,
			headers: { 'content-type': 'application/jose+json' },
		});
		assert.is(answer.status, 400, body);
	}
	assert.is((await fetch(`${front.base}/new-order`)).status, 405);
	assert.is((await fetch(`${front.base}/elsewhere`)).status, 404);
});

acmeServer(
	'an order fails if validation does, and forged, truncated or weak certificate requests are refused',
	async () => {
		const me = await rawClient(await makePrivateKey('p256'));
		front.settings = { challenges: ['http-01'] };
		const made = await me.post('new-order', { identifiers: [{ type: 'dns', value: 'localhost' }] });
		const authorization = await me.post(made.body.authorizations[0]!, undefined);
		const { url, token } = authorization.body.challenges[0]!;
		client.sink.answers = { http01: { [token]: 'wrong' }, alpn: {} };
		await me.post(url, {});
		await eventually('invalid', async () => (await me.post(made.location, undefined)).body.status === 'invalid');
		const { readRequest } = await import('../../../runtime/certificates/acme-server/request-contents.ts');
		const key = await makePrivateKey('p256');
		const good = certificateRequest(['b.test', 'a.test', '10.0.0.1'], key);
		assert.equal(readRequest(good).names, ['10.0.0.1', 'a.test', 'b.test']);
		const forged = Buffer.from(good);
		forged[forged.indexOf('a.test')]! ^= 1;
		assert.throws(() => readRequest(forged), /not signed with its key/);
		for (let cut = 0; cut < good.length; cut += 7) assert.throws(() => readRequest(good.subarray(0, cut)));
		const weak = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey;
		assert.throws(() => readRequest(certificateRequest(['a.test'], weak)), /too weak/);
	},
);

acmeServer('an account stays the same when its key changes; a deactivated one can do nothing', async () => {
	const key = await makePrivateKey('p256');
	const me = await rawClient(key);
	const next = await makePrivateKey('p256');
	const url = `${front.base}/key-change`;
	const inner = JSON.parse(
		createJws({ alg: 'ES256', jwk: publicJwk(next), url }, { account: me.account, oldKey: publicJwk(key) }, data =>
			sign('sha256', data, { key: next, dsaEncoding: 'ieee-p1363' }),
		),
	);
	assert.is((await me.post('key-change', inner)).status, 200);
	assert.is((await me.post(me.account, undefined)).status, 400);
	const again = await rawClient(next);
	assert.is(again.account, me.account);
	// With the old key, a client gets a new account and cannot access the existing one.
	const clientWithOldKey = await rawClient(key);
	assert.is.not(clientWithOldKey.account, again.account);
	assert.is((await clientWithOldKey.post(again.account, undefined)).status, 403);
	assert.is((await again.post(again.account, undefined)).status, 200);
	assert.is((await rawClient(key)).account, clientWithOldKey.account);
	assert.is((await again.post(again.account, { status: 'deactivated' })).body.status, 'deactivated');
	assert.is(problem(await again.post('new-order', { identifiers: [] })), 'unauthorized');
});

acmeServer.run();
