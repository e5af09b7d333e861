/** Streamed responses over TLS arrive intact, although data that was written stays in the process for a while. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:tls';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { BodySource } from '../../../../compiler/exchange/body.ts';
import { createHttp1Server } from '../../../../runtime/protocols/http1/http1-server.ts';
import { DEFAULT_LIMITS } from '../../../../runtime/protocols/http1/limits.ts';
import { TestAuthority } from '../../../certificates.ts';
import { tlsGet } from '../../tls/tls-client.ts';

/** Returns a body with pieces of the given lengths, which follow one another after a short delay. */
function delayedBody(pieces: readonly number[]): BodySource {
	let next = 0;
	return {
		length: undefined,
		pull: () =>
			new Promise(resolve => {
				setTimeout(() => resolve(next < pieces.length ? Buffer.alloc(pieces[next++]!, 'x') : null), 5);
			}),
		cancel: () => {},
	};
}

const streams = suite('streams over TLS');
let server: Server;

streams.before(async () => {
	const { certificate, key } = await (await TestAuthority.make()).issue({ names: ['example.test'] });
	const protocol = createHttp1Server({
		handle(x) {
			x.response.status = 200;
			x.response.body = delayedBody(x.request.path.slice(1).split(',').map(Number));
		},
		onExchangeFinished: () => {},
		countRefusal: () => {},
		onConnectionOpened: () => {},
		onConnectionClosed: () => {},
		limits: DEFAULT_LIMITS,
		draining: false,
	});
	server = createServer({ cert: certificate, key }, socket => protocol.accept(socket, 'https'));
	server.listen(0, '127.0.0.1');
	await once(server, 'listening');
});

streams.after(() => {
	server.close();
});

for (const pieces of [[10, 10, 10], [300], [5000, 10, 5000, 10], [100_000, 1, 1], [4096, 4097, 1]]) {
	streams(`pieces of ${pieces.join(', ')} bytes arrive complete`, async () => {
		const { port } = server.address() as { port: number };
		const { text } = await tlsGet(port, { path: `/${pieces.join(',')}`, hostHeader: 'example.test' });
		assert.is(
			text.match(/x/g)!.length,
			pieces.reduce((sum, size) => sum + size) + (text.split('\r\n\r\n')[0]!.match(/x/g)?.length ?? 0),
		);
		assert.ok(text.endsWith('0\r\n\r\n'));
	});
}

streams.run();
