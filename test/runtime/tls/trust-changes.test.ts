/**
 * The trusted CAs change while the server runs: clients and upstreams with certificates of a removed CA are rejected, with and
 * without a reload of the configuration.
 */
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { connect as connectHttp2 } from 'node:http2';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Document } from '../../../compiler/document/document.ts';
import type { ClientAuth, SiteTls } from '../../../compiler/document/tls-settings.ts';
import type { Runtime } from '../../../runtime/main/runtime.ts';
import { ioMode } from '../../../runtime/sockets/io-mode.ts';
import { TestAuthority, type TestCertificate } from '../../certificates.ts';
import { freePorts, temporaryFolder, waitForClock } from '../../harness.ts';
import { eventually, jsonInput, withServer } from '../running-server.ts';
import { answerBeforeExpiry } from './expiring-client.ts';
import { tlsFailure, tlsGet } from './tls-client.ts';

const folder = temporaryFolder();
const [authority, first, second] = await Promise.all([
	TestAuthority.make(),
	TestAuthority.make('CN=First'),
	TestAuthority.make('CN=Second'),
]);
const [port] = (await freePorts(1)) as [number];

function keep(name: string, { certificate, key }: TestCertificate): { certificate: string; key: string } {
	const files = { certificate: path.join(folder, `${name}.pem`), key: path.join(folder, `${name}.key`) };
	writeFileSync(files.certificate, certificate);
	writeFileSync(files.key, key, { mode: 0o600 });
	return files;
}

const served = keep('served', await authority.issue({ names: ['a.test', '127.0.0.1'] }));
const ca = path.join(folder, 'ca.pem');
const ofFirst = await first.issue({ subject: 'CN=ada' });
const ofSecond = await second.issue({ subject: 'CN=eve' });

/** Returns the TLS options of a client with the given certificate. */
function clientOptions({ certificate, key }: TestCertificate) {
	return { servername: 'a.test', cert: certificate, key };
}

function document(auth: Partial<ClientAuth> = {}, more: SiteTls = {}): Document {
	const pool = { source: 'file' as const, files: [ca] };
	return {
		settings: { auto_https: ['off'] },
		sites: [
			{
				addresses: [`https://a.test:${port}`],
				bind: ['127.0.0.1'],
				tls: {
					certificates: [served],
					client_auth: { mode: 'require_and_verify', trust_pool: pool, ...auth },
					...more,
				},
				pipeline: [{ handler: 'respond', body: 'in' }],
			},
		],
	};
}

async function letIn(client: TestCertificate, more: object = {}): Promise<boolean> {
	return (await tlsFailure(port, { ...clientOptions(client), ...more })).startsWith('answered');
}

/** Opens a connection, makes one request on it, and keeps it open. */
async function openConnection(client: TestCertificate): Promise<TLSSocket> {
	const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, ...clientOptions(client) });
	socket.on('error', () => {});
	await once(socket, 'secureConnect');
	socket.write('GET / HTTP/1.1\r\nHost: a.test\r\n\r\n');
	await once(socket, 'data');
	return socket;
}

async function loaded(runtime: Runtime, input: Document, force = false): Promise<boolean> {
	const outcome = await runtime.load(jsonInput(input), { force });
	assert.is(outcome.result, 'applied', JSON.stringify(outcome));
	return outcome.result === 'applied' && !outcome.unchanged;
}

const trust = suite('changing trust in clients');

trust.before.each(() => {
	writeFileSync(ca, first.pem);
});

for (const [how, version] of [
	['a load', 'TLSv1.3'],
	['a load', 'TLSv1.2'],
	['a periodic check', 'TLSv1.3'],
] as const) {
	trust(`after ${how} clients of a removed CA are rejected (${version})`, async () => {
		await withServer(document(), { threads: 1 }, async ({ runtime, log }) => {
			const { session } = await tlsGet(port, { ...clientOptions(ofFirst), maxVersion: version });
			const again = await tlsGet(port, { ...clientOptions(ofFirst), maxVersion: version, session: session! });
			assert.is(again.reused, true, 'sessions are resumed under the same trust');
			assert.not.ok(await letIn(ofSecond));
			const kept = await openConnection(ofFirst);
			const kept2 = connectHttp2(`https://127.0.0.1:${port}`, { rejectUnauthorized: false, ...clientOptions(ofFirst) });
			kept2.on('error', () => {});
			await once(kept2, 'connect');
			const closed = Promise.all([once(kept, 'close'), once(kept2, 'close')]);

			writeFileSync(ca, second.pem);
			if (how === 'a load') assert.ok(await loaded(runtime, document()), 'it is not what was being served');
			else await eventually('the change is noticed', () => log.text().includes('trusted client certificates reloaded'));

			assert.not.ok(await letIn(ofFirst));
			assert.not.ok(
				await letIn(ofFirst, { maxVersion: version, session: session! }),
				'the client was accepted by its session ticket',
			);
			assert.ok(await letIn(ofSecond));
			await closed;
		});
	});
}

for (const version of ['TLSv1.3', 'TLSv1.2'] as const) {
	trust(`a session is not resumed once its client certificate has expired (${version})`, async () => {
		await withServer(document(), { threads: 1 }, async () => {
			const {
				client: short,
				answer,
				expiresAt,
			} = await answerBeforeExpiry(first, client => tlsGet(port, { ...clientOptions(client), maxVersion: version }));
			const { session } = answer;
			await waitForClock(expiresAt - Date.now() + 1000);
			assert.not.ok(await letIn(short, { maxVersion: version, session: session! }), 'with the expired certificate');
			if (ioMode() !== 'direct') return;
			const renewed = { ...clientOptions(ofFirst), maxVersion: version, session: session! };
			assert.is((await tlsGet(port, renewed)).reused, false, 'with a renewed certificate');
		});
	});
}

trust('adding a CA closes no connection', async () => {
	await withServer(document(), { threads: 1 }, async ({ runtime }) => {
		const kept = await openConnection(ofFirst);
		writeFileSync(ca, first.pem + second.pem);
		assert.ok(await loaded(runtime, document()));
		assert.ok(await letIn(ofSecond));
		kept.write('GET / HTTP/1.1\r\nHost: a.test\r\n\r\n');
		const [answer] = (await once(kept, 'data')) as [Buffer];
		assert.match(answer.toString(), 'HTTP/1.1 200');
		kept.destroy();
	});
});

trust('a configuration that names another pool closes connections verified by the previous one', async () => {
	const other = path.join(folder, 'other.pem');
	writeFileSync(other, second.pem);
	await withServer(document(), { threads: 1 }, async ({ runtime }) => {
		const whenClosed = once(await openConnection(ofFirst), 'close');
		assert.ok(await loaded(runtime, document({ trust_pool: { source: 'file', files: [other] } })));
		await whenClosed;
		assert.not.ok(await letIn(ofFirst));
	});
});

trust('clients with a removed leaf certificate are rejected', async () => {
	const leaves = path.join(folder, 'leaves');
	mkdirSync(leaves, { recursive: true });
	writeFileSync(path.join(leaves, 'ada.pem'), ofFirst.certificate);
	writeFileSync(path.join(leaves, 'eve.pem'), ofSecond.certificate);
	const { trust_pool: _, ...auth } = document().sites![0]!.tls!.client_auth!;
	const { sites, ...rest } = document();
	const tls = { certificates: [served], client_auth: { ...auth, trusted_leaves: { folders: [leaves] } } };
	await withServer({ ...rest, sites: [{ ...sites![0]!, tls }] }, { threads: 1 }, async () => {
		assert.ok(await letIn(ofFirst));
		const whenClosed = once(await openConnection(ofFirst), 'close');
		rmSync(path.join(leaves, 'ada.pem'));
		await whenClosed;
		assert.not.ok(await letIn(ofFirst));
		assert.ok(await letIn(ofSecond));
	});
});

trust('a broken pool is logged once and the previous one stays in use; a load that names it is refused', async () => {
	await withServer(document(), { threads: 1 }, async ({ runtime, log }) => {
		writeFileSync(ca, 'nonsense');
		const failures = () => log.text().split('cannot be reloaded').length - 1;
		await eventually('the failure is logged', () => failures() === 1);
		assert.ok(await letIn(ofFirst));
		assert.is((await runtime.load(jsonInput(document()))).result, 'refused');
		assert.ok(await letIn(ofFirst));
		writeFileSync(ca, second.pem);
		await eventually('the repaired pool is used', () => letIn(ofSecond));
		assert.is(failures(), 1);
		assert.not.ok(await letIn(ofFirst));
	});
});

trust('a load is unchanged only if the files are unchanged; it can be forced', async () => {
	await withServer(document(), { threads: 1 }, async ({ runtime }) => {
		assert.not.ok(await loaded(runtime, document()));
		const later = new Date(Date.now() + 5000);
		utimesSync(ca, later, later);
		assert.not.ok(await loaded(runtime, document()), 'changed file times alone must not count as a change');
		const before = runtime.generation;
		assert.ok(await loaded(runtime, document(), true));
		assert.is(runtime.generation, before + 1);
		assert.not.ok(await loaded(runtime, document()));
		assert.is((await runtime.preview(jsonInput(document()), { force: true })).result, 'swap');
		assert.is((await runtime.preview(jsonInput(document()))).result, 'unchanged');
		const key = readFileSync(served.key);
		const next = await authority.issue({ names: ['a.test'] });
		keep('served', next);
		assert.ok(await loaded(runtime, document()), 'a certificate and its key');
		assert.not.equal(readFileSync(served.key), key);
	});
});

const upstreams = suite('changing trust in upstreams');

async function proxied(
	file: string,
	test: (server: { port: number; runtime: Runtime; document: Document }) => Promise<void>,
) {
	const pair = await first.issue({ names: ['127.0.0.1'] });
	const upstream = createServer({ cert: pair.certificate, key: pair.key }, (_request, response) => response.end('up'));
	upstream.listen(0, '127.0.0.1');
	await once(upstream, 'listening');
	const { port: at } = upstream.address() as AddressInfo;
	const tls = { trust: { source: 'file' as const, files: [file] } };
	const wanted: Document = {
		sites: [
			{
				addresses: ['http://:0'],
				bind: ['127.0.0.1'],
				pipeline: [{ handler: 'proxy', upstreams: { to: [`127.0.0.1:${at}`], transport: { type: 'http', tls } } }],
			},
		],
	};
	try {
		await withServer(wanted, { threads: 1 }, ({ port: ours, runtime }) =>
			test({ port: ours, runtime, document: wanted }),
		);
	} finally {
		upstream.closeAllConnections();
		upstream.close();
	}
}

for (const how of ['a load', 'a periodic check']) {
	upstreams(`after ${how} an upstream is verified by the new contents of the file, on a new connection`, async () => {
		const file = path.join(folder, 'upstream-ca.pem');
		writeFileSync(file, first.pem);
		await proxied(file, async ({ port: ours, runtime, document: same }) => {
			const status = async () => (await fetch(`http://127.0.0.1:${ours}/`)).status;
			assert.is(await status(), 200);
			writeFileSync(file, second.pem);
			if (how === 'a load') {
				assert.ok(await loaded(runtime, same));
				assert.is(await status(), 502, 'neither an idle connection nor a session is reused');
			} else await eventually('the idle connection is closed', async () => (await status()) === 502);
			writeFileSync(file, first.pem);
			if (how === 'a load') assert.ok(await loaded(runtime, same));
			await eventually('the upstream is verified again', async () => (await status()) === 200);
			assert.not.ok(await loaded(runtime, same));
			assert.ok(await loaded(runtime, same, true));
			assert.is(await status(), 200);
		});
	});
}

trust.run();
upstreams.run();
