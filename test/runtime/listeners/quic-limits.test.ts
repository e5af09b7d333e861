/** `servers { quic { … } }`: the limits reach the sockets, a reload changes them, and refusals are counted and logged. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import * as assert from 'uvu/assert';
import type { Document } from '../../../compiler/document/document.ts';
import type { QuicSettings } from '../../../compiler/document/server-settings.ts';
import { quic } from '../../../compiler/modules/options/servers/quic.ts';
import { quicLimits } from '../../../runtime/listeners/quic-listener.ts';
import { DEFAULT_QUIC_LIMITS } from '../../../runtime/sockets/quic/quic-limits.ts';
import { TestAuthority } from '../../certificates.ts';
import { freePorts, temporaryFolder } from '../../harness.ts';
import { http3Suite } from '../protocols/http3/http3-suite.ts';
import { connect, type QuicClient } from '../protocols/http3/quic-client.ts';
import { eventually, jsonInput, withServer } from '../running-server.ts';

const test = http3Suite('limits of QUIC');
const folder = temporaryFolder();
const [port] = (await freePorts(1)) as [number];
const { certificate, key } = await (await TestAuthority.make()).issue({ names: ['localhost'] });
const files = { certificate: path.join(folder, 'c.pem'), key: path.join(folder, 'k.pem') };
writeFileSync(files.certificate, certificate);
writeFileSync(files.key, key, { mode: 0o600 });
const clients: QuicClient[] = [];

test.after.each(() => {
	for (const client of clients.splice(0)) client.close();
});

function document(settings: QuicSettings): Document {
	return {
		settings: { auto_https: ['off'], metrics: {}, servers: [{ quic: settings }] },
		sites: [
			{
				addresses: [`https://localhost:${port}`],
				bind: ['127.0.0.1'],
				tls: { certificates: [files] },
				pipeline: [{ handler: 'respond', body: 'served' }],
			},
		],
	};
}

/** Opens a connection. Resolves to false if the server closes it, or does not answer for a while. */
async function open(): Promise<boolean> {
	const wait = process.env.QUIC_WAIT;
	process.env.QUIC_WAIT = '1500';
	try {
		clients.push(await connect(port));
		return true;
	} catch {
		return false;
	} finally {
		if (wait === undefined) delete process.env.QUIC_WAIT;
		else process.env.QUIC_WAIT = wait;
	}
}

test('the defaults in the manual are those of the sockets', () => {
	const properties = (quic.schema.quic as { properties: { [name: string]: { default?: number } } }).properties;
	const named = Object.entries(properties).filter(([name]) => name !== '@id');
	const defaults = Object.fromEntries(named.map(([name, { default: usual }]) => [name, usual]));
	assert.equal(quicLimits(defaults), { ...DEFAULT_QUIC_LIMITS });
});

test('a client gets no more connections than its limit, until a load raises it', async () => {
	await withServer(document({ connections_per_client: 2 }), { threads: 1 }, async ({ runtime, log }) => {
		assert.equal([await open(), await open(), await open()], [true, true, false]);
		const refused = /^svc_http3_refused_total\{reason="client_limit"\} [1-9]/m;
		await eventually('counted', async () => refused.test(await runtime.metrics()));
		await eventually('logged', () => log.text().includes('QUIC packets were refused'));
		const entries = log.entries.filter(({ msg }) => msg === 'QUIC packets were refused');
		// One entry a minute.
		assert.is(entries.length, 1);
		assert.is(entries[0]!.level, 'warn');
		assert.is(entries[0]!.port, port);
		assert.ok((entries[0]!.refused as { client_limit?: number }).client_limit! >= 1);
		const loaded = await runtime.load(jsonInput(document({ connections_per_client: 3 })), { force: false });
		assert.is(loaded.result, 'applied', JSON.stringify(loaded));
		assert.equal([await open(), await open()], [true, false]);
	});
});

test('every client proves its address where the configuration says so', async () => {
	await withServer(document({ retry_above: 0 }), { threads: 1 }, async ({ runtime }) => {
		assert.ok(await open());
		assert.match(await runtime.metrics(), /^svc_http3_refused_total\{reason="retry"\} [1-9]/m);
	});
	await withServer(document({}), { threads: 1 }, async ({ runtime }) => {
		assert.ok(await open());
		assert.match(await runtime.metrics(), /^svc_http3_refused_total\{reason="retry"\} 0/m);
	});
});

test.run();
