/** Client certificates over QUIC have the same outcomes, alerts, reasons and placeholders as over TLS on TCP, in every mode. */
import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import * as assert from 'uvu/assert';
import type { Document } from '../../../../compiler/document/document.ts';
import type { ClientAuth, SiteTls } from '../../../../compiler/document/tls-settings.ts';
import type { Runtime } from '../../../../runtime/main/runtime.ts';
import { TestAuthority, type TestCertificate } from '../../../certificates.ts';
import { freePorts, temporaryFolder, waitForClock } from '../../../harness.ts';
import { eventually, jsonInput, withServer } from '../../running-server.ts';
import { answerBeforeExpiry } from '../../tls/expiring-client.ts';
import { tlsFailure, tlsGet } from '../../tls/tls-client.ts';
import { headers, openControlStream, REQUEST, response } from './frames.ts';
import { http3Suite } from './http3-suite.ts';
import { freeSession, QuicClient, type QuicClientOptions } from './quic-client.ts';

const test = http3Suite('client certificates over QUIC');
const folder = temporaryFolder();
const [port] = (await freePorts(1)) as [number];
const authority = await TestAuthority.make();
const other = await TestAuthority.make('CN=Other');
const shown = {
	none: undefined,
	good: await authority.issue({
		subject: 'O=Here,CN=Good',
		names: ['good.test'],
		emails: ['good@a.test'],
		serial: '0a',
	}),
	stranger: await other.issue({ subject: 'CN=Stranger' }),
	expired: await authority.issue({ subject: 'CN=Expired', from: -7200, until: -3600 }),
	early: await authority.issue({ subject: 'CN=Early', from: 3600 }),
};
type Shown = keyof typeof shown;

/** The codes of TLS alerts in QUIC (RFC 9001 §4.8). */
const ALERT_CODES = { bad: 0x100 + 42, expired: 0x100 + 45, unknown: 0x100 + 48, missing: 0x100 + 116 } as const;
type Outcome = keyof typeof ALERT_CODES | 'let in';
const letIn = 'let in';

const ca = path.join(folder, 'ca.pem');
writeFileSync(ca, authority.pem);
const pool = { source: 'file', files: [ca] } as const;
const leaves = { pem: (['good', 'expired', 'early'] as const).map(name => shown[name].certificate) };

/**
 * The settings of a site, and the outcome for each of {@link shown} in order. The outcomes are the same as over TCP (see
 * client-alerts.test.ts).
 */
const OUTCOMES_BY_SETTINGS: readonly [ClientAuth, ...outcomes: Outcome[]][] = [
	[{ mode: 'request' }, letIn, letIn, letIn, letIn, letIn],
	[{ mode: 'require' }, 'missing', letIn, letIn, letIn, letIn],
	[{ mode: 'require', trusted_leaves: leaves }, 'missing', letIn, 'bad', 'expired', 'bad'],
	[{ mode: 'verify_if_given', trust_pool: pool }, letIn, letIn, 'unknown', 'expired', 'bad'],
	[{ mode: 'verify_if_given', trusted_leaves: leaves }, letIn, letIn, 'bad', 'expired', 'bad'],
	[{ mode: 'require_and_verify', trust_pool: pool }, 'missing', letIn, 'unknown', 'expired', 'bad'],
	[{ mode: 'require_and_verify', trusted_leaves: leaves }, 'missing', letIn, 'bad', 'expired', 'bad'],
	[
		{ mode: 'require_and_verify', trust_pool: pool, trusted_leaves: leaves },
		'missing',
		letIn,
		'unknown',
		'expired',
		'bad',
	],
	[
		{ mode: 'require_and_verify', trust_pool: { source: 'combined', of: [] } },
		...(['missing', 'unknown', 'unknown', 'unknown', 'unknown'] as const),
	],
];
const NAMES = OUTCOMES_BY_SETTINGS.map((_, at) => `m${at}.test`);
const OPEN = 'open.test';
const BODY = [
	'subject',
	'issuer',
	'serial',
	'fingerprint',
	'certificate_der_base64',
	'san.dns_names.0',
	'san.emails.0',
].map(name => `{http.request.tls.client.${name}}`);

function keep(name: string, { certificate, key }: TestCertificate): { certificate: string; key: string } {
	const files = { certificate: path.join(folder, `${name}.pem`), key: path.join(folder, `${name}.key`) };
	writeFileSync(files.certificate, certificate);
	writeFileSync(files.key, key, { mode: 0o600 });
	return files;
}

const served = keep('served', await authority.issue({ names: [...NAMES, OPEN] }));

function site(name: string, tls: SiteTls) {
	return {
		addresses: [`https://${name}:${port}`],
		bind: ['127.0.0.1'],
		tls: { certificates: [served], ...tls },
		pipeline: [{ handler: 'respond', body: `${name} ${BODY.join('|')}` }],
	};
}

function document(
	sites: Document['sites'] = OUTCOMES_BY_SETTINGS.map(([auth], at) => site(NAMES[at]!, { client_auth: auth })),
): Document {
	return { settings: { auto_https: ['off'], metrics: {} }, sites: [...sites!, site(OPEN, {})] };
}

const clients: QuicClient[] = [];

test.after.each(() => {
	for (const client of clients.splice(0)) client.close();
});

function opened(options: QuicClientOptions): QuicClient {
	const client = new QuicClient(port, options);
	clients.push(client);
	return client;
}

/** The result of a request on its own connection. */
interface RequestResult {
	readonly outcome: Outcome | number;
	readonly status?: string;
	readonly body?: string;
}

async function ask(client: QuicClient, host: string): Promise<RequestResult> {
	const fields = REQUEST.map(([name, value]) => [name, name === ':authority' ? `${host}:${port}` : value] as const);
	const stream = client.open().write(headers(fields), true);
	const answer = await response(client, stream);
	stream.stop();
	return { outcome: letIn, status: answer.status, body: answer.body };
}

async function visit(
	name: string,
	pair: TestCertificate | undefined,
	more: QuicClientOptions = {},
	host = name,
): Promise<RequestResult> {
	const client = opened({ serverName: name, pair, ...more });
	try {
		// The client's handshake completes before the server has seen the client's certificate.
		await client.until('the handshake', () => client.connected || client.closed !== undefined);
		if (client.closed !== undefined) return outcomeOf(client);
		openControlStream(client);
		return await ask(client, host);
	} catch (error) {
		if (client.closed === undefined) throw error;
		return outcomeOf(client);
	} finally {
		client.close();
	}
}

function outcomeOf({ closed }: QuicClient): RequestResult {
	const known = Object.entries(ALERT_CODES).find(([, code]) => code === closed!.code);
	return { outcome: (known?.[0] as Outcome | undefined) ?? closed!.code };
}

/** Returns the number of failed handshakes by reason. */
async function failuresByReason(runtime: Runtime): Promise<Map<string, number>> {
	const lines = (await runtime.metrics()).matchAll(/^svc_tls_handshakes_total\{version="",result="(\w+)"\} (\d+)$/gm);
	return new Map([...lines].map(([, reason, count]) => [reason!, Number(count)]));
}

const REASONS: { readonly [outcome in Outcome]?: string } = {
	missing: 'client_certificate_missing',
	bad: 'client_certificate_untrusted',
	unknown: 'client_certificate_untrusted',
	expired: 'client_certificate_expired',
};

test('every mode has the outcomes, alerts and reasons of TCP', async () => {
	await withServer(document(), { threads: 1 }, async ({ runtime }) => {
		const expected = new Map<string, number>();
		for (const [at, [auth, ...outcomes]] of OUTCOMES_BY_SETTINGS.entries()) {
			for (const [i, name] of (Object.keys(shown) as Shown[]).entries()) {
				const seen = await visit(NAMES[at]!, shown[name]);
				assert.is(seen.outcome, outcomes[i]!, `${JSON.stringify(auth)} with ${name}`);
				const pair = shown[name];
				const own = pair ? { cert: pair.certificate, key: pair.key } : {};
				const overTcp = await tlsFailure(port, { servername: NAMES[at]!, ...own });
				assert.is(overTcp.startsWith('answered'), seen.outcome === letIn, `over TCP: ${overTcp}`);
				const reason = REASONS[outcomes[i]!];
				if (reason !== undefined) expected.set(reason, (expected.get(reason) ?? 0) + 2);
			}
		}
		await eventually('each failure is counted, over TCP and over QUIC', async () => {
			const counted = await failuresByReason(runtime);
			return [...expected].every(([reason, count]) => counted.get(reason) === count);
		});
	});
});

test('placeholders have the facts of the certificate', async () => {
	const { raw, fingerprint256, issuer } = new X509Certificate(shown.good.certificate);
	await withServer(document(), { threads: 1 }, async () => {
		for (const at of [0, 1, 3, 5, 7]) {
			const { body } = await visit(NAMES[at]!, shown.good);
			const fingerprint = fingerprint256.replaceAll(':', '').toLowerCase();
			const facts = ['CN=Good,O=Here', issuer, '10', fingerprint, raw.toString('base64'), 'good.test', 'good@a.test'];
			assert.is(body, `${NAMES[at]} ${facts.join('|')}`);
		}
		assert.is((await visit(NAMES[0]!, undefined)).body, `${NAMES[0]} ||||||`);
		// If a site does not ask for a certificate, its placeholders are empty.
		assert.is((await visit(OPEN, shown.good)).body, `${OPEN} ||||||`);
	});
});

test('the request for a certificate names the authorities of the site', async () => {
	await withServer(document(), { threads: 1 }, async () => {
		for (const [at, named] of [
			[0, []],
			[5, ['/CN=Test Authority']],
		] as const) {
			const client = opened({ serverName: NAMES[at]!, pair: shown.good });
			await client.until('the handshake', () => client.connected);
			assert.equal(client.requestedAuthorities, [...named]);
			client.close();
		}
	});
});

test('browsers are not sent to QUIC, where they show no certificates', async () => {
	await withServer(document(), { threads: 1 }, async () => {
		for (const [at, name] of NAMES.entries()) {
			if (at === OUTCOMES_BY_SETTINGS.length - 1) continue;
			const { certificate: cert, key } = shown.good;
			assert.not.match((await tlsGet(port, { servername: name, cert, key })).text, /alt-svc/i);
		}
		assert.match((await tlsGet(port, { servername: OPEN })).text, /alt-svc: h3=/i);
	});
});

test('another host on the same connection gets 421, whichever of them asks for certificates', async () => {
	await withServer(document(), { threads: 1 }, async () => {
		for (const [name, host] of [
			[OPEN, NAMES[5]!],
			[NAMES[0]!, NAMES[5]!],
			[NAMES[5]!, NAMES[6]!],
			[NAMES[5]!, OPEN],
		] as const) {
			const client = opened({ serverName: name, pair: shown.good });
			await client.until('the handshake', () => client.connected);
			openControlStream(client);
			assert.is((await ask(client, name)).status, '200');
			assert.is((await ask(client, host)).status, '421', `${host} over the connection of ${name}`);
			// The connection remains usable.
			assert.is((await ask(client, name)).status, '200');
			client.close();
		}
	});
});

test('a session resumes under the same terms only, with the certificate of its first handshake', async () => {
	await withServer(document(), { threads: 2 }, async () => {
		for (const [first, pair] of [
			[OPEN, undefined],
			[NAMES[0]!, undefined],
			[NAMES[1]!, shown.stranger],
			[NAMES[5]!, shown.good],
		] as const) {
			const client = opened({ serverName: first, pair });
			await client.until('the handshake', () => client.connected);
			openControlStream(client);
			const before = await ask(client, first);
			const session = client.session();
			for (const second of [OPEN, ...NAMES]) {
				const next = opened({ serverName: second, session });
				try {
					await next.until('the handshake', () => next.connected || next.closed !== undefined);
					assert.is(next.resumed, second === first, `${second} after ${first}`);
					if (second !== first) continue;
					openControlStream(next);
					assert.equal(await ask(next, second), before);
				} finally {
					next.close();
				}
			}
			freeSession(session);
			client.close();
		}
	});
});

test('a session is not resumed once its client certificate has expired', async () => {
	await withServer(document(), { threads: 1 }, async () => {
		const name = NAMES[5]!;
		const {
			client: short,
			answer: session,
			expiresAt,
		} = await answerBeforeExpiry(authority, async pair => {
			const client = opened({ serverName: name, pair });
			await client.until('the handshake', () => client.connected);
			openControlStream(client);
			assert.is((await ask(client, name)).status, '200');
			const given = client.session();
			client.close();
			return given;
		});
		assert.is((await visit(name, undefined, { session })).outcome, letIn);
		await waitForClock(expiresAt - Date.now() + 1000);
		assert.is((await visit(name, short, { session })).outcome, 'expired');
		const renewed = opened({ serverName: name, pair: shown.good, session });
		await renewed.until('the handshake', () => renewed.connected);
		openControlStream(renewed);
		assert.match((await ask(renewed, name)).body!, /CN=Good/);
		assert.not.ok(renewed.resumed);
		freeSession(session);
	});
});

test('a connection that began without a certificate is outdated once its site requires one', async () => {
	const auth: ClientAuth = { mode: 'require_and_verify', trust_pool: pool };
	const sites = (changing: SiteTls) => document([site(NAMES[5]!, { client_auth: auth }), site(NAMES[6]!, changing)]);
	await withServer(sites({}), { threads: 1 }, async ({ runtime }) => {
		const changed = opened({ serverName: NAMES[6]! });
		const other = opened({ serverName: OPEN });
		for (const [client, name] of [
			[changed, NAMES[6]!],
			[other, OPEN],
		] as const) {
			await client.until('the handshake', () => client.connected);
			openControlStream(client);
			assert.is((await ask(client, name)).status, '200');
		}
		const { result } = await runtime.load(jsonInput(sites({ client_auth: auth })), {});
		assert.is(result, 'applied');
		const status = await ask(changed, NAMES[6]!).then(
			answer => answer.status,
			() => 'gone',
		);
		assert.ok(status === '421' || status === 'gone', status);
		await changed.end();
		assert.is((await ask(other, OPEN)).status, '200');
	});
});

test('after a change of trust, clients of a removed authority are rejected, their tickets too, and their connections end', async () => {
	const auth: ClientAuth = { mode: 'require_and_verify', trust_pool: pool };
	const only = document([site(NAMES[5]!, { client_auth: auth })]);
	try {
		await withServer(only, { threads: 1 }, async ({ runtime }) => {
			const name = NAMES[5]!;
			const client = opened({ serverName: name, pair: shown.good });
			await client.until('the handshake', () => client.connected);
			openControlStream(client);
			assert.is((await ask(client, name)).status, '200');
			const session = client.session();
			assert.is((await visit(name, undefined, { session })).outcome, letIn);
			assert.is((await visit(name, shown.stranger)).outcome, 'unknown');

			writeFileSync(ca, other.pem);
			const loaded = await runtime.load(jsonInput(only), { force: false });
			assert.is(loaded.result, 'applied', JSON.stringify(loaded));

			await client.end();
			assert.is((await visit(name, shown.good)).outcome, 'unknown');
			assert.is((await visit(name, undefined, { session })).outcome, 'missing');
			assert.is((await visit(name, shown.good, { session })).outcome, 'unknown');
			assert.is((await visit(name, shown.stranger)).outcome, letIn);
			freeSession(session);
		});
	} finally {
		writeFileSync(ca, authority.pem);
	}
});

test.run();
