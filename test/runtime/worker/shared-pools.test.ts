/** Upstream pools across threads and reloads: counters that all threads share, and connections that survive a reload. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Document } from '../../../compiler/document/document.ts';
import { eventually, jsonInput, respondingSite, withServer } from '../running-server.ts';

/** Runs a test with an upstream that counts its connections. */
async function withUpstream(test: (upstream: { address: string; open(): number; taken(): number }) => Promise<void>) {
	let open = 0;
	let taken = 0;
	const server: Server = createServer((_request, response) => response.end('from upstream'));
	server.on('connection', socket => {
		open++;
		taken++;
		socket.on('close', () => open--);
	});
	server.listen(0, '127.0.0.1');
	await once(server, 'listening');
	const { port } = server.address() as { port: number };
	try {
		await test({ address: `127.0.0.1:${port}`, open: () => open, taken: () => taken });
	} finally {
		server.closeAllConnections();
		server.close();
	}
}

function proxying(address: string, header: string): Document {
	const steps = [
		{ handler: 'edit_headers', response: { set: [{ name: 'X-Load', value: header }] } },
		{ handler: 'proxy', upstreams: { to: [address], balance: { policy: 'least_conn' } } },
	];
	return { sites: [{ addresses: ['http://:0'], bind: ['127.0.0.1'], pipeline: steps }] };
}

const pools = suite('shared pools');

pools(
	'pools keep their connections over a load that does not change them, and close them when no longer used',
	async () => {
		await withUpstream(async upstream => {
			await withServer(proxying(upstream.address, 'a'), {}, async ({ runtime, get }) => {
				for (let i = 0; i < 20; i++) assert.is((await get()).body, 'from upstream');
				const taken = upstream.taken();
				assert.ok(taken <= 2, `${taken} connections for two threads`);
				assert.is((await runtime.load(jsonInput(proxying(upstream.address, 'b')))).result, 'applied');
				for (let i = 0; i < 20; i++) {
					const { body, headers } = await get();
					assert.equal([body, headers.get('x-load')], ['from upstream', 'b']);
				}
				assert.ok(upstream.taken() <= 2, `${upstream.taken()} connections`);
				assert.is((await runtime.load(jsonInput({ sites: [respondingSite('none')] }))).result, 'applied');
				await eventually('the connections are closed', () => upstream.open() === 0);
			});
		});
	},
);

pools('pools work on a replacement thread', async () => {
	await withUpstream(async upstream => {
		await withServer(proxying(upstream.address, 'a'), { threads: 1 }, async ({ runtime, get, log }) => {
			await get();
			await runtime.terminateWorker(0);
			await eventually('replaced', () => log.text().includes('a worker thread was replaced'));
			assert.is((await get()).body, 'from upstream');
		});
	});
});

pools.run();
