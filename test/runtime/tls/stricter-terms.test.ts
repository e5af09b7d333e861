/** A reload demands more of a site's clients: connections that began under weaker terms of client authentication serve nothing more. */
import { writeFileSync } from 'node:fs';
import { type ClientHttp2Session, connect as connectHttp2, constants } from 'node:http2';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Document } from '../../../compiler/document/document.ts';
import type { ClientAuth } from '../../../compiler/document/tls-settings.ts';
import type { TlsInfo } from '../../../compiler/exchange/exchange.ts';
import { TestAuthority, type TestCertificate } from '../../certificates.ts';
import { freePorts, temporaryFolder } from '../../harness.ts';
import { jsonInput, withServer } from '../running-server.ts';
import { startTlsListener } from './one-listener.ts';

const folder = temporaryFolder();
const [first, second] = await Promise.all([TestAuthority.make('CN=First'), TestAuthority.make('CN=Second')]);
const [port] = (await freePorts(1)) as [number];
const ada = await first.issue({ subject: 'CN=ada' });

function keep(name: string, text: string): string {
	const file = path.join(folder, name);
	writeFileSync(file, text, { mode: 0o600 });
	return file;
}

const pair = await first.issue({ names: ['a.test', 'b.test'] });
const served = { certificate: keep('served.pem', pair.certificate), key: keep('served.key', pair.key) };
const firstPool = { source: 'file', files: [keep('first.pem', first.pem)] } as const;
const secondPool = { source: 'file', files: [keep('second.pem', second.pem)] } as const;
const bothPools = { source: 'combined', of: [firstPool, secondPool] } as const;

const requireFirst: ClientAuth = { mode: 'require_and_verify', trust_pool: firstPool };
const requireSecond: ClientAuth = { mode: 'require_and_verify', trust_pool: secondPool };
const requireBoth: ClientAuth = { mode: 'require_and_verify', trust_pool: bothPools };
const verifyFirst: ClientAuth = { mode: 'verify_if_given', trust_pool: firstPool };
const request: ClientAuth = { mode: 'request' };
const require: ClientAuth = { mode: 'require' };

/**
 * A document with `a.test`, whose terms of client authentication are `auth`. Other sites always use each of the terms that the
 * tests choose, so that no reload removes a trusted certificate, and so that the listener requests certificates from the
 * beginning.
 */
function document(auth: ClientAuth | undefined): Document {
	const site = (host: string, clientAuth: ClientAuth | undefined, body: string) => ({
		addresses: [`https://${host}:${port}`],
		bind: ['127.0.0.1'],
		tls: { certificates: [served], ...(clientAuth ? { client_auth: clientAuth } : {}) },
		pipeline: [{ handler: 'respond', body }],
	});
	const others = [requireFirst, requireSecond, verifyFirst, request, require];
	return {
		settings: { auto_https: ['off'] },
		sites: [
			site('a.test', auth, auth === undefined ? 'open' : JSON.stringify(auth)),
			...others.map((other, at) => site(`b${at}.test`, other, 'other')),
		],
	};
}

/** Sends a request. Resolves to the status, or to `gone` if the connection serves no more requests. */
function ask(session: ClientHttp2Session): Promise<number | 'gone'> {
	return new Promise(resolve => {
		if (session.closed || session.destroyed) {
			resolve('gone');
			return;
		}
		const stream = session.request({ ':path': '/', ':authority': 'a.test' });
		stream.on('response', fields => resolve(Number(fields[constants.HTTP2_HEADER_STATUS])));
		stream.on('error', () => resolve('gone'));
		stream.on('close', () => resolve('gone'));
		stream.resume();
	});
}

const terms = suite('stricter terms for clients');

for (const [name, before, after, client, isServed] of [
	['no certificate, then one is required', undefined, requireFirst, undefined, false],
	['an unverified certificate, then it must be verified', request, requireFirst, ada, false],
	[
		'an unverified certificate of a client that had to present one, then it is verified',
		require,
		verifyFirst,
		ada,
		false,
	],
	['an optional certificate, then it is required', verifyFirst, requireFirst, undefined, false],
	['a certificate of another authority', requireFirst, requireSecond, ada, false],
	['a certificate, then a further authority is trusted', requireFirst, requireBoth, ada, true],
	['a certificate, then one is optional', requireFirst, verifyFirst, ada, true],
	['no certificate, then one is requested', undefined, request, undefined, true],
	['no certificate, then one is optional', undefined, verifyFirst, undefined, true],
	['a certificate, then none is requested', requireFirst, undefined, ada, true],
] as readonly (readonly [
	string,
	ClientAuth | undefined,
	ClientAuth | undefined,
	TestCertificate | undefined,
	boolean,
])[]) {
	terms(name, async () => {
		await withServer(document(before), { threads: 1 }, async ({ runtime }) => {
			const options = client === undefined ? {} : { cert: client.certificate, key: client.key };
			const session = connectHttp2(`https://127.0.0.1:${port}`, {
				servername: 'a.test',
				rejectUnauthorized: false,
				...options,
			});
			session.on('error', () => {});
			try {
				assert.is(await ask(session), 200);
				const outcome = await runtime.load(jsonInput(document(after)), {});
				assert.is(outcome.result, 'applied', JSON.stringify(outcome));
				const status = await ask(session);
				if (isServed) assert.is(status, 200);
				else assert.ok(status === 421 || status === 'gone', `${status}`);
			} finally {
				session.destroy();
			}
		});
	});
}

terms(
	'connections are outdated as soon as requests see the new settings, which are applied a moment later',
	async () => {
		const listener = await startTlsListener({}, []);
		const { server } = listener;
		const current = { policies: [{}], names: {}, other: 0, strict_sni_host: false };
		const next = { ...current, policies: [{}, { client_auth: requireFirst }], names: { 'a.test': 1 } };
		const info = (serverName: string): TlsInfo => ({
			...{ version: 'tls1.3', cipherSuite: '', protocol: 'h2', serverName, resumed: false },
		});
		const checksFor = (settings: object) => server.requestChecksFor(JSON.stringify(settings));
		assert.equal(checksFor(current), { requiresSameHost: false, isOutdated: undefined });
		const isOutdated = checksFor(next).isOutdated!;
		assert.is(isOutdated(info('a.test')), true);
		assert.is(isOutdated(info('b.test')), false);
		assert.is(checksFor({ ...current, default_sni: 'b.test' }).isOutdated, undefined);
		assert.is(checksFor({ ...current, strict_sni_host: true }).requiresSameHost, true);
		listener.close();
	},
);

terms.run();
