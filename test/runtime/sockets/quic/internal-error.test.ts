/** If OpenSSL closes a QUIC connection because of an error of its own, the log says why, at most once a minute. */
import * as assert from 'uvu/assert';
import { QuicListener, type QuicListenerDeps } from '../../../../runtime/listeners/quic-listener.ts';
import type { LogEntry } from '../../../../runtime/logs/log-entry.ts';
import { DEFAULT_LIMITS } from '../../../../runtime/protocols/http1/limits.ts';
import { foreignFunctions, loadForeignFunctions } from '../../../../runtime/sockets/foreign-functions.ts';
import { foreignSignature } from '../../../../runtime/sockets/foreign-library.ts';
import { quicThread } from '../../../../runtime/sockets/quic/quic-thread.ts';
import { headers, response, serve } from '../../protocols/http3/frames.ts';
import { http3Suite } from '../../protocols/http3/http3-suite.ts';
import { connect } from '../../protocols/http3/quic-client.ts';

const test = http3Suite('internal errors of QUIC connections');

function cString(text: string): Buffer {
	const bytes = Buffer.allocUnsafeSlow(text.length + 1);
	bytes.write(`${text}\0`);
	return bytes;
}

test('the owner of a connection gets the reason and the errors of OpenSSL', async () => {
	const signature = foreignSignature(
		...(['void', 'pointer', 'uint64', 'uint64', 'pointer', 'pointer', 'pointer', 'int32', 'pointer'] as const),
	);
	const { ossl_quic_channel_raise_protocol_error_loc: raise } = loadForeignFunctions(foreignFunctions()!, {
		ossl_quic_channel_raise_protocol_error_loc: signature,
	});
	const { library, channelRuns } = quicThread()!;
	const server = await serve(x => {
		x.response.body = 'hello';
	});
	let channel = 0n;
	channelRuns!.channelOf = connection => {
		channel = Object.getPrototypeOf(channelRuns).channelOf.call(channelRuns, connection);
		return channel;
	};
	const client = await connect(server.port);
	try {
		assert.is((await response(client, client.open().write(headers(), true))).body, 'hello');
		const [reason, file, name] = [cString('something odd'), cString('../ssl/quic/odd.c'), cString('be_odd')];
		raise(
			...([channel, 1n, 0n, library.addressOf(reason), 0n] as const),
			...([library.addressOf(file), 17, library.addressOf(name)] as const),
		);
		client.open().write(headers(), true);
		assert.equal(await client.end(), { code: 1, transport: true, byServer: true });
		const details = 'QUIC error code: 0x1 (INTERNAL_ERROR), reason: "something odd"';
		assert.equal(server.failures, [
			{ reason: 'something odd', errors: [`internal error, ${details}, be_odd, odd.c:17`] },
		]);
	} finally {
		Reflect.deleteProperty(channelRuns!, 'channelOf');
		client.close();
		server.stop();
	}
});

test('connections that are closed otherwise report no internal error', async () => {
	const server = await serve(x => {
		x.response.body = 'hello';
	});
	const client = await connect(server.port);
	assert.is((await response(client, client.open().write(headers(), true))).body, 'hello');
	server.protocol.drain();
	await client.end();
	client.close();
	assert.equal(server.failures, []);
	server.stop();
});

test('the log has the reason, the errors and the number of connections, at most once a minute', () => {
	const entries: LogEntry[] = [];
	const deps: Partial<QuicListenerDeps> = {
		tls: { ticketKeys: [], addListener() {}, removeListener() {} } as never,
		host: { limits: DEFAULT_LIMITS } as never,
		counters: { countDatagrams() {} } as never,
		log: entry => void entries.push(entry),
	};
	const address = { address: '127.0.0.1', port: 0, only6: false, shared: false };
	const listener = new QuicListener(address, deps as QuicListenerDeps);
	const { now } = performance;
	let time = now.call(performance);
	performance.now = () => time;
	try {
		const error = { reason: 'something odd', errors: ['internal error, odd.c:17'] };
		for (let i = 0; i < 3; i++) listener.onInternalError(error);
		time += 60_000;
		listener.onInternalError(error);
		assert.equal(
			entries.map(({ level, fields }) => ({ level, fields })),
			[1, 3].map(connections => ({ level: 'warn', fields: { port: listener.port, connections, ...error } })),
		);
	} finally {
		performance.now = now;
		listener.close();
	}
});

test.run();
