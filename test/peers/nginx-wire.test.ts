/**
 * Sends the requests of fixtures/wire to nginx. The page about them must list exactly those requests that nginx accepts although
 * svc refuses them. UPDATE=1 rewrites the page.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, temporaryFolder } from '../harness.ts';
import { openWire } from '../runtime/protocols/http1/wire.ts';
import { readAcceptedElsewhere, renderWirePage, WIRE_FOLDER, wireRequests } from '../wire-corpus.ts';
import { startNginx } from './nginx-process.ts';

const peers = suite('bytes with two readings, for nginx');

peers('the page lists the refused requests that nginx accepts', async () => {
	const [port] = (await freePorts(1)) as [number];
	const folder = temporaryFolder();
	const nginx = await startNginx(
		folder,
		port,
		`access_log off;
	server { listen 127.0.0.1:${port}; location / { default_type text/plain; return 200 "<$request_uri>"; } }`,
	);
	try {
		const requests = wireRequests();
		const now: { [name: string]: { [server: string]: readonly string[] } } = {};
		const before = readAcceptedElsewhere();
		for (const { name, bytes, status } of requests) {
			if (status === undefined) continue;
			const client = await openWire(port);
			client.send(bytes);
			client.socket.end();
			const text = await client.whole(5000);
			client.socket.destroy();
			const taken = [...text.matchAll(/<([^>]*)>/g)]
				.map(([, target]) => target!)
				.filter(target => /^[\x21-\x7e]+$/.test(target));
			// Ignores matches in nginx's HTML error pages. Only responses of the location in this configuration show that nginx has
			// accepted a request.
			const targets = taken.filter(target => target.startsWith('/first') || target.startsWith('/smuggled'));
			const node = before[name]?.node;
			if (targets.length === 0 && node === undefined) continue;
			now[name] = { ...(node ? { node } : {}), ...(targets.length > 0 ? { nginx: targets } : {}) };
		}
		if (process.env.UPDATE === '1') {
			writeFileSync(path.join(WIRE_FOLDER, 'accepted-elsewhere.json'), `${JSON.stringify(now, null, '\t')}\n`);
			writeFileSync(path.join(WIRE_FOLDER, 'README.md'), renderWirePage(requests, now));
		}
		assert.equal(before, now, 'run with UPDATE=1 when nginx has changed');
		assert.is(readFileSync(path.join(WIRE_FOLDER, 'README.md'), 'utf8'), renderWirePage(requests, now));
	} finally {
		await nginx.stop();
	}
});

peers.run();
