/** The limits in `servers { quic { … } }` apply to the sockets, a reload changes them, and refusals are counted and logged. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import * as assert from 'uvu/assert';
import type { Document } from '../../../compiler/document/document.ts';
import type { QuicSettings } from '../../../compiler/document/server-settings.ts';
import { quic } from '../../../compiler/modules/options/servers/quic.ts';
import { quicLimits } from '../../../runtime/listeners/quic-listener.ts';
import type { Runtime } from '../../../runtime/main/runtime.ts';
import { DEFAULT_QUIC_LIMITS } from '../../../runtime/sockets/quic/quic-limits.ts';
import { TestAuthority } from '../../certificates.ts';
import { freePorts, temporaryFolder } from '../../harness.ts';
import { http3Suite } from '../protocols/http3/http3-suite.ts';
import { QuicClient } from '../protocols/http3/quic-client.ts';
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

async function refusals(runtime: Runtime, reason: string): Promise<number> {
	return Number(
		new RegExp(`^svc_http3_refused_total\\{reason="${reason}"\\} (\\d+)$`, 'm').exec(await runtime.metrics())![1],
	);
}

/** Opens a connection. Resolves to false if the server refuses the connection because of the limit for one client. */
async function opens(runtime: Runtime): Promise<boolean> {
	const before = await refusals(runtime, 'client_limit');
	const client = new QuicClient(port);
	clients.push(client);
	await eventually('a connection or a refusal', async () => {
		return client.connected || (await refusals(runtime, 'client_limit')) > before;
	});
	return client.connected;
}

test('the defaults in the manual are those of the sockets', () => {
	const properties = (quic.schema.quic as { properties: { [name: string]: { default?: number } } }).properties;
	const named = Object.entries(properties).filter(([name]) => name !== '@id');
	const defaults = Object.fromEntries(named.map(([name, { default: usual }]) => [name, usual]));
	assert.equal(quicLimits(defaults), { ...DEFAULT_QUIC_LIMITS });
});

test('a client gets no more connections than its limit, until a load raises it', async () => {
	await withServer(document({ connections_per_client: 2 }), { threads: 1 }, async ({ runtime, log }) => {
		assert.equal([await opens(runtime), await opens(runtime), await opens(runtime)], [true, true, false]);
		await eventually('logged', () => log.text().includes('QUIC packets were refused'));
		const entries = log.entries.filter(({ msg }) => msg === 'QUIC packets were refused');
		// At most one entry a minute is logged.
		assert.is(entries.length, 1);
		assert.is(entries[0]!.level, 'warn');
		assert.is(entries[0]!.port, port);
		assert.ok((entries[0]!.refused as { client_limit?: number }).client_limit! >= 1);
		const loaded = await runtime.load(jsonInput(document({ connections_per_client: 3 })), { force: false });
		assert.is(loaded.result, 'applied', JSON.stringify(loaded));
		// The refused client retries until it is closed.
		clients.at(-1)!.close();
		assert.equal([await opens(runtime), await opens(runtime)], [true, false]);
	});
});

test('every client proves its address where the configuration says so', async () => {
	await withServer(document({ retry_above: 0 }), { threads: 1 }, async ({ runtime }) => {
		assert.ok(await opens(runtime));
		assert.ok((await refusals(runtime, 'retry')) > 0);
	});
	await withServer(document({}), { threads: 1 }, async ({ runtime }) => {
		assert.ok(await opens(runtime));
		assert.is(await refusals(runtime, 'retry'), 0);
	});
});

test.run();
