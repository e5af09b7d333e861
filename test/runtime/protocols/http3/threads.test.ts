/** HTTP/3 on worker threads that bind as soon as they start. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import * as assert from 'uvu/assert';
import { freePorts, temporaryFolder } from '../../../harness.ts';
import { withServer } from '../../running-server.ts';
import { certificate, headers, openControlStream, response } from './frames.ts';
import { http3Suite } from './http3-suite.ts';
import { connect } from './quic-client.ts';

const test = http3Suite('HTTP/3 and threads');

test('HTTP/3 is served from the first event-loop turn on', async () => {
	const folder = temporaryFolder();
	const { chain, key } = await certificate;
	const files = { certificate: path.join(folder, 'c.pem'), key: path.join(folder, 'k.pem') };
	writeFileSync(files.certificate, chain);
	writeFileSync(files.key, key);
	const [port] = (await freePorts(1)) as [number];
	const site = {
		addresses: [`https://localhost:${port}`],
		bind: ['127.0.0.1'],
		tls: { certificates: [files] },
		pipeline: [{ handler: 'respond', body: 'served' }],
	};
	const settings = { threads: 2, auto_https: ['disable_redirects'], servers: [{ protocols: ['h1', 'h2', 'h3'] }] };
	await withServer({ settings, sites: [site] } as never, {}, async () => {
		const ask = async (): Promise<void> => {
			const clients = await Promise.all(Array.from({ length: 12 }, () => connect(port)));
			for (const client of clients) openControlStream(client);
			const bodies = await Promise.all(
				clients.map(async client => (await response(client, client.open().write(headers(), true))).body),
			);
			assert.equal(new Set(bodies), new Set(['served']));
			for (const client of clients) client.close();
		};
		await ask();
	});
});

test.run();
