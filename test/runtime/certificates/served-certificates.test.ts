/**
 * The whole server with a scripted ACME server: challenges over the network, on-demand certificates, and keys that are not
 * revealed.
 */
import { sign, type X509Certificate } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { request as secureRequest } from 'node:https';
import path from 'node:path';
import { connect } from 'node:tls';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { createJws, publicJwk } from '../../../runtime/certificates/acme/acme-connection.ts';
import { makePrivateKey } from '../../../runtime/certificates/certificate-keys.ts';
import { freePorts, type ServerProcess, serve, temporaryFolder } from '../../harness.ts';
import { type FakeApi, fakeApi } from './dns/fake-api.ts';
import { type ChallengeValidation, type ScriptedAcmeServer, scriptedAcmeServer } from './scripted-acme-server.ts';
import { eventually, planOfPolicies, policyForNames, serveDocument, testManager } from './test-manager.ts';

const served = suite('served certificates');

/** Sends an HTTP request for a host and resolves to the response. */
function get(port: number, host: string, file: string): Promise<{ status: number; body: string }> {
	return new Promise((resolve, reject) => {
		request({ host: '127.0.0.1', port, path: file, headers: { host, connection: 'close' } }, response => {
			let body = '';
			response.setEncoding('utf8').on('data', chunk => {
				body += chunk;
			});
			response.on('end', () => resolve({ status: response.statusCode!, body }));
		})
			.on('error', reject)
			.end();
	});
}

/** Resolves to the certificate that is served for a name; undefined if the handshake fails. */
function certificateOf(port: number, name: string, alpn?: string): Promise<X509Certificate | undefined> {
	return new Promise(resolve => {
		const socket = connect({
			host: '127.0.0.1',
			port,
			servername: name,
			rejectUnauthorized: false,
			...(alpn === undefined ? {} : { ALPNProtocols: [alpn] }),
		});
		socket.once('secureConnect', () => {
			const right = alpn === undefined || socket.alpnProtocol === alpn;
			resolve(right ? socket.getPeerX509Certificate() : undefined);
			socket.destroy();
		});
		socket.once('error', () => resolve(undefined));
	});
}

/** Validates a challenge over the network several times, because every thread must be able to answer. */
async function isValidated({ type, name, token, keyAuthorization }: ChallengeValidation, http: number, https: number) {
	for (let turn = 0; turn < 6; turn++) {
		if (type === 'http-01') {
			const { status, body } = await get(http, name, `/.well-known/acme-challenge/${token}`);
			if (status !== 200 || body !== keyAuthorization) return false;
		} else {
			const certificate = await certificateOf(https, name, 'acme-tls/1');
			if (certificate?.subjectAltName !== `DNS:${name}`) return false;
		}
	}
	return true;
}

let acme: ScriptedAcmeServer;
let permission: FakeApi;
let server: ServerProcess;
let http = 0;
let https = 0;
let admin = 0;
const folder = temporaryFolder();

served.before(async () => {
	acme = await scriptedAcmeServer(folder);
	permission = await fakeApi(({ path: url }) => ({ status: url.endsWith('domain=yes.example.com') ? 200 : 404 }));
	[http, https, admin] = (await freePorts(3)) as [number, number, number];
	acme.faults.validate = validation => isValidated(validation, http, https);
	const file = path.join(folder, 'Configfile');
	writeFileSync(
		file,
		`{
	http_port ${http}
	https_port ${https}
	admin 127.0.0.1:${admin}
	threads 2
	metrics
	storage file_system store
	on_demand_tls {
		ask ${permission.url}/ask
	}
	cert_issuer acme ${acme.directory} {
		trusted_roots ${acme.rootFile}
		eab id very-secret-mac
	}
}
http.example.com {
	respond "over HTTP"
}
alpn.example.com {
	tls {
		issuer acme ${acme.directory} {
			trusted_roots ${acme.rootFile}
			disable_http_challenge
		}
	}
	respond "over TLS"
}
acme.localhost {
	tls internal
	acme_server
	respond "not ACME"
}
https:// {
	tls {
		on_demand
	}
	respond "on demand"
}
`,
	);
	server = await serve([file], https);
});

served.after(async () => {
	await server.stop();
	await Promise.all([acme.close(), permission.close()]);
});

served('every thread answers challenges, sites get their certificates, and keys appear nowhere', async () => {
	for (const name of ['http.example.com', 'alpn.example.com']) {
		await eventually(`${name} has its certificate`, async () => {
			const certificate = await certificateOf(https, name);
			return certificate?.issuer === 'CN=Scripted Root' && certificate.checkHost(name) === name;
		});
	}
	assert.is(acme.orders.length, 2);
	assert.is((await get(http, 'http.example.com', '/x')).status, 308);
	assert.is((await get(http, 'http.example.com', '/.well-known/acme-challenge/none')).status, 308);
	const host = `${new URL(acme.directory).host.replace(':', '-')}-directory`;
	const file = path.join(folder, 'store/certificates', host, 'http.example.com');
	const config = (await get(admin, `127.0.0.1:${admin}`, '/config/')).body;
	const metrics = (await get(admin, `127.0.0.1:${admin}`, '/metrics')).body;
	const key = readFileSync(path.join(file, 'http.example.com.key'), 'utf8').split('\n')[1]!;
	for (const shown of [config, metrics, server.output()]) {
		assert.not.ok(shown.includes(key) || shown.includes('PRIVATE KEY') || shown.includes('very-secret-mac'));
	}
	assert.match(config, /"mac_key":"\[redacted\]"/);
	assert.match(metrics, /svc_tls_certificate\w*\{[^}]*subject="http\.example\.com"/);
	assert.match(metrics, /svc_tls_\w*attempts\w*\{[^}]*result="obtained"[^}]*\} [23]\n/);
});

served("an on-demand site gets its certificate during its first client's handshake, only with permission", async () => {
	const before = acme.orders.length;
	const certificates = await Promise.all([1, 2, 3].map(() => certificateOf(https, 'yes.example.com')));
	for (const certificate of certificates) assert.is(certificate?.checkHost('yes.example.com'), 'yes.example.com');
	assert.is(acme.orders.length, before + 1);
	assert.is((await certificateOf(https, 'no.example.com'))?.checkHost('no.example.com'), undefined);
	assert.is(acme.orders.length, before + 1);
});

served('a process answers the challenges of another process that shares its store', async () => {
	const other = testManager({ folder: path.join(folder, 'store') });
	const issuer = { issuer: 'acme', directory: acme.directory, trusted_roots: [acme.rootFile] };
	const wanted = planOfPolicies(
		policyForNames(['one.example.com'], [{ ...issuer, disable_tlsalpn_challenge: true }]),
		policyForNames(['two.example.com'], [{ ...issuer, disable_http_challenge: true }]),
	);
	await serveDocument(other, wanted);
	for (const name of ['one.example.com', 'two.example.com']) {
		await eventually(`${name} was validated`, () => other.sink.for(name) !== undefined);
	}
	await other.manager.close();
	// The tokens have been removed, and requests for unknown tokens get no challenge response.
	assert.not.ok(existsSync(path.join(folder, 'store/acme/challenges')));
	assert.is((await get(http, 'one.example.com', '/.well-known/acme-challenge/none')).status, 308);
	assert.is((await certificateOf(https, 'two.example.com', 'acme-tls/1'))?.subject, undefined);
});

served('acme_server serves the directory, nonces and accounts on every thread', async () => {
	const ask = (method: string, file: string, body?: string) =>
		new Promise<{ status: number; text: string; nonce: string; location: string }>((resolve, reject) => {
			const options = {
				...{
					host: '127.0.0.1',
					port: https,
					servername: 'acme.localhost',
					method,
					path: file,
					agent: false as const,
				},
				headers: {
					host: `acme.localhost:${https}`,
					...(body === undefined ? {} : { 'content-type': 'application/jose+json' }),
				},
				ca: readFileSync(path.join(folder, 'store/pki/authorities/local/root.crt')),
			};
			const sent = secureRequest(options, response => {
				let text = '';
				response.setEncoding('utf8').on('data', chunk => {
					text += chunk;
				});
				const { 'replay-nonce': nonce, location } = response.headers;
				response.on('end', () =>
					resolve({ status: response.statusCode!, text, nonce: String(nonce), location: String(location) }),
				);
			});
			sent.on('error', reject);
			sent.end(body);
		});
	const base = `https://acme.localhost:${https}/acme/local`;
	const directory = await ask('GET', '/acme/local/directory');
	assert.is(directory.status, 200);
	assert.is(
		directory.text,
		`{"newNonce":"${base}/new-nonce","newAccount":"${base}/new-account","newOrder":"${base}/new-order","revokeCert":"${base}/revoke-cert","keyChange":"${base}/key-change"}\n`,
	);
	assert.is((await ask('GET', '/elsewhere')).text, 'not ACME');
	const key = await makePrivateKey('p256');
	for (const status of [201, 200, 200, 200]) {
		const { nonce } = await ask('HEAD', '/acme/local/new-nonce');
		const url = `${base}/new-account`;
		const body = createJws({ alg: 'ES256', jwk: publicJwk(key), nonce, url }, { termsOfServiceAgreed: true }, data =>
			sign('sha256', data, { key, dsaEncoding: 'ieee-p1363' }),
		);
		const account = await ask('POST', '/acme/local/new-account', body);
		assert.is(account.status, status, account.text);
		assert.ok(account.location.startsWith(`${base}/account/`));
		assert.is((await ask('POST', '/acme/local/new-account', body)).status, 400);
	}
	assert.is((await ask('POST', '/acme/local/new-order', 'x'.repeat(200_000))).status, 413);
});

served.run();
