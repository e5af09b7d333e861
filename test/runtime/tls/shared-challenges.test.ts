/** Processes that share a store answer each other's ACME challenges, even for names that only another process serves. */
import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { request } from 'node:http';
import path from 'node:path';
import { connect } from 'node:tls';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Document, Site } from '../../../compiler/document/document.ts';
import type { ChallengeQuestion } from '../../../runtime/certificates/certificate-feed.ts';
import { SharedChallenges } from '../../../runtime/certificates/shared-challenges.ts';
import { createMemoryStore } from '../../../runtime/storage/memory-store.ts';
import { openStore } from '../../../runtime/storage/open-store.ts';
import { answerChallenge } from '../../../runtime/tls/before-sites.ts';
import { LookupLimiter } from '../../../runtime/tls/lookup-limiter.ts';
import { ThreadTls } from '../../../runtime/tls/thread-tls.ts';
import { TestAuthority } from '../../certificates.ts';
import { fakeExchange } from '../../compiler/fake-exchange.ts';
import { freePorts, temporaryFolder } from '../../harness.ts';
import { type ChallengeValidation, scriptedAcmeServer } from '../certificates/scripted-acme-server.ts';
import {
	eventually,
	planOfPolicies,
	policyForNames,
	serveDocument,
	testManager,
} from '../certificates/test-manager.ts';
import { withServer } from '../running-server.ts';

const folder = temporaryFolder();
const machine = { workingDirectory: folder, environment: process.env };
const [httpPort, httpsPort] = (await freePorts(2)) as [number, number];

/** Sends a GET request for a host, which the server need not know. Returns the status and the body of the response. */
function get(host: string, path: string): Promise<{ status: number; body: string }> {
	return new Promise((resolve, reject) => {
		request({ host: '127.0.0.1', port: httpPort, path, headers: { host }, agent: false }, response => {
			let body = '';
			response.setEncoding('utf8').on('data', text => {
				body += text;
			});
			response.on('end', () => resolve({ status: response.statusCode!, body }));
		})
			.on('error', reject)
			.end();
	});
}

/** Returns the certificate that the server presents in a TLS-ALPN-01 handshake; undefined if the handshake fails. */
function challengeCertificate(servername: string): Promise<X509Certificate | undefined> {
	return new Promise(resolve => {
		const socket = connect(
			{ host: '127.0.0.1', port: httpsPort, servername, ALPNProtocols: ['acme-tls/1'], rejectUnauthorized: false },
			() => {
				resolve(socket.alpnProtocol === 'acme-tls/1' ? socket.getPeerX509Certificate() : undefined);
				socket.destroy();
			},
		);
		socket.on('error', () => resolve(undefined));
	});
}

/** Validates a challenge against the server under test, as a CA does. */
async function validate({ type, name, token, keyAuthorization }: ChallengeValidation): Promise<boolean> {
	if (type === 'tls-alpn-01') return (await challengeCertificate(name))?.checkHost(name) === name;
	return (await get(name, `/.well-known/acme-challenge/${token}`)).body === keyAuthorization;
}

/** Returns sites whose names do not occur in the orders. */
async function unrelatedSites(): Promise<Site[]> {
	const { certificate, key } = await (await TestAuthority.make()).issue({ names: ['own.test'] });
	return [
		{
			addresses: [`http://own.test:${httpPort}`],
			bind: ['127.0.0.1'],
			pipeline: [{ handler: 'respond', body: 'plain' }],
		},
		{
			addresses: [`https://own.test:${httpsPort}`],
			bind: ['127.0.0.1'],
			tls: { certificates: [keepPair(certificate, key)] },
			pipeline: [{ handler: 'respond', body: 'over TLS' }],
		},
	];
}

function keepPair(certificate: string, key: string): { certificate: string; key: string } {
	const files = { certificate: path.join(folder, 'own.pem'), key: path.join(folder, 'own.key') };
	writeFileSync(files.certificate, certificate);
	writeFileSync(files.key, key, { mode: 0o600 });
	return files;
}

const settings = (store: string): NonNullable<Document['settings']> => ({
	...{ http_port: httpPort, https_port: httpsPort, auto_https: ['disable_redirects'] },
	storage: { store: 'file_system', root: store },
});

const shared = suite('shared challenges');

for (const type of ['http-01', 'tls-alpn-01'] as const) {
	shared(`${type}: a process answers for a name that it does not serve, without an issuer of its own`, async () => {
		const acme = await scriptedAcmeServer(folder);
		acme.faults.challenges = [type];
		acme.faults.validate = validate;
		const ordering = testManager();
		try {
			const document = { settings: settings(ordering.folder), sites: await unrelatedSites() };
			await withServer(document, { threads: 1 }, async () => {
				const issuer = { issuer: 'acme', directory: acme.directory, trusted_roots: [acme.rootFile] };
				const only = type === 'http-01' ? 'disable_tlsalpn_challenge' : 'disable_http_challenge';
				await serveDocument(
					ordering,
					planOfPolicies(policyForNames(['other.example.com'], [{ ...issuer, [only]: true }])),
				);
				await eventually('obtained', () => ordering.sink.for('other.example.com') !== undefined);
				assert.is(acme.orders.length, 1, 'the first validation succeeds');
				assert.is((await get('own.test', '/')).body, 'plain');
				assert.is(await challengeCertificate('own.test'), undefined, 'an unpublished challenge is not answered');
			});
		} finally {
			await ordering.manager.close();
			await acme.close();
		}
	});
}

shared('an answer is only for its own token or name, and is removed with the challenge', async () => {
	const store = createMemoryStore();
	const challenges = new SharedChallenges(() => store);
	const token = { type: 'http-01', token: 'Token' } as const;
	const name = { type: 'tls-alpn-01', name: 'a.test' } as const;
	const taken = [
		await challenges.share('http-01', 'a.test', 'Token.thumbprint'),
		await challenges.share('tls-alpn-01', 'a.test', 'Token.thumbprint'),
	];
	assert.equal(await challenges.answer(token), { authorization: 'Token.thumbprint' });
	assert.is(await challenges.answer({ ...token, token: 'token' }), undefined, 'tokens are case-sensitive');
	const found = await challenges.answer(name);
	assert.ok(found && 'certificate' in found && new X509Certificate(found.certificate.chain).checkHost('a.test'));
	assert.is(await challenges.answer({ ...name, name: 'b.test' }), undefined);
	for (const take of taken) await take();
	assert.equal(await store.list(''), []);
	assert.is(await challenges.answer(token), undefined);
});

shared(
	'a token with characters other than letters, digits, - and _ is never looked up, so it cannot name another file',
	async () => {
		const asked: ChallengeQuestion[] = [];
		const tls = new ThreadTls(
			() => {},
			async question => {
				asked.push(question);
				return undefined;
			},
		);
		tls.applyUpdate({ kind: 'shared_challenges', asked: true });
		const ask = (token: string) => {
			const x = fakeExchange({ target: `/.well-known/acme-challenge/${token}` });
			return answerChallenge(x, { tls, clientIp: () => '192.0.2.1' });
		};
		for (const token of [
			'',
			'..',
			'../../secret',
			'..%2f..%2fsecret',
			'a/b',
			'a.json',
			'a%00',
			'a\\b',
			'x'.repeat(513),
		]) {
			assert.is(await ask(token), false, token);
		}
		assert.equal(asked, []);
		assert.is(await ask('x'.repeat(512)), false);
		assert.is(asked.length, 1);
		const store = createMemoryStore();
		const challenges = new SharedChallenges(() => store);
		await challenges.share('http-01', 'a.test', '../../x.thumbprint');
		assert.match((await store.list(''))[0]!, /^acme\/challenges\/http-01\/[0-9a-f]{64}\.json$/);
	},
);

shared('lookups are limited in a flood of unknown tokens; other clients are answered meanwhile', async () => {
	let requestCount = 0;
	const tls = new ThreadTls(
		() => {},
		async question => {
			requestCount++;
			return 'token' in question && question.token === 'known' ? { authorization: 'known.thumbprint' } : undefined;
		},
	);
	tls.applyUpdate({ kind: 'shared_challenges', asked: true });
	const ask = (token: string, client: string) => {
		const x = fakeExchange({ target: `/.well-known/acme-challenge/${token}` });
		return answerChallenge(x, { tls, clientIp: () => client });
	};
	for (let i = 0; i < 10_000; i++) assert.is(await ask(`token${i}`, `2001:db8:1:2::${(i % 999) + 1}`), false);
	assert.ok(requestCount >= 50 && requestCount < 1000, `${requestCount} lookups for 10,000 tokens from one network`);
	assert.is(await ask('known', '192.0.2.1'), true);
});

shared('lookups are limited per second, for one client and in total', () => {
	const limits = new LookupLimiter();
	const taken = (client: (i: number) => string, count: number, now: number) =>
		Array.from({ length: count }, (_, i) => limits.admits(client(i), now)).filter(Boolean).length;
	assert.is(
		taken(() => 'a', 1000, 0),
		50,
	);
	assert.is(
		taken(() => 'a', 1000, 1000),
		20,
	);
	assert.is(
		taken(i => `client ${i}`, 10_000, 1000),
		480,
	);
	assert.is(
		taken(i => `other ${i}`, 10_000, 2000),
		500,
	);
});

shared('concurrent equal lookups are coalesced', async () => {
	let reads = 0;
	const store = createMemoryStore();
	const counting = Object.assign(Object.create(store), {
		read: (key: string) => {
			reads++;
			return store.read(key);
		},
	});
	const challenges = new SharedChallenges(() => counting);
	await Promise.all(Array.from({ length: 100 }, () => challenges.answer({ type: 'http-01', token: 'same' })));
	assert.is(reads, 1);
});

shared('a process whose own orders are not distributed does not answer for others', async () => {
	const store = temporaryFolder();
	const ordering = new SharedChallenges(() => openStore({ store: 'file_system', root: store }, machine));
	await ordering.share('http-01', 'other.test', 'token.thumbprint');
	const path = '/.well-known/acme-challenge/token';
	for (const [distributed, body] of [
		[true, 'token.thumbprint'],
		[false, 'plain'],
	] as const) {
		const issuers = [{ issuer: 'acme', directory: 'https://127.0.0.1:1/', distributed }];
		const managed: Site = {
			addresses: [`https://ordered.test:${httpsPort}`],
			bind: ['127.0.0.1'],
			tls: { issuers },
			pipeline: [{ handler: 'respond', body: 'over TLS' }],
		};
		const document = { settings: settings(store), sites: [...(await unrelatedSites()), managed] };
		await withServer(document, { threads: 1 }, async () => assert.is((await get('own.test', path)).body, body));
	}
});

shared.run();
