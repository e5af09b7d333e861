/** HTTP/3 with a release of OpenSSL in which a connection cannot be processed by itself, but only together with its listener. */
import * as assert from 'uvu/assert';
import { isStream } from '../../../../compiler/exchange/body.ts';
import { findChannelRuns } from '../../../../runtime/sockets/quic/channel-runs.ts';
import { quicThread } from '../../../../runtime/sockets/quic/quic-thread.ts';
import { frame, headers, response, serve } from './frames.ts';
import { http3Suite } from './http3-suite.ts';
import { connect } from './quic-client.ts';

const test = http3Suite('HTTP/3 with an unknown release of OpenSSL');

test('connections are run by themselves in known releases of OpenSSL only', () => {
	assert.ok(findChannelRuns());
	assert.ok(findChannelRuns({ openssl: '3.5.4+quic' }));
	for (const openssl of ['3.6.0', '3.50.1', '4.0.0']) assert.is(findChannelRuns({ openssl }), undefined, openssl);
	assert.is(findChannelRuns({ missing: 'ossl_quic_channel_subtick' }), undefined);
});

test('otherwise, listeners serve requests and long bodies in both directions', async () => {
	Object.assign(quicThread()!, { channelRuns: undefined });
	const server = await serve(async x => {
		const { body } = x.request;
		let receivedBytes = 0;
		if (isStream(body))
			for (let piece = await body.pull(); piece !== null; piece = await body.pull()) receivedBytes += piece.length;
		x.response.body = `${receivedBytes} `.padEnd(300_000, 'x');
	});
	const client = await connect(server.port);
	try {
		for (const sentBytes of [0, 200_000]) {
			const stream = client.open().write(
				headers([
					[':method', 'POST'],
					[':scheme', 'https'],
					[':authority', 'localhost'],
					[':path', '/'],
				]),
			);
			stream.write(frame(0, Buffer.alloc(sentBytes, 'a')), true);
			const { body } = await response(client, stream);
			assert.is(body.length, 300_000);
			assert.is(body.slice(0, body.indexOf(' ')), String(sentBytes));
		}
		assert.equal(server.failures, []);
	} finally {
		client.close();
		server.stop();
	}
});

test.run();
