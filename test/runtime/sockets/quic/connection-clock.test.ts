/** QUIC connections use a clock that is never set, because OpenSSL closes connections when the system's time is set back. */
import * as assert from 'uvu/assert';
import { foreignFunctions, loadForeignFunctions } from '../../../../runtime/sockets/foreign-functions.ts';
import { foreignSignature } from '../../../../runtime/sockets/foreign-library.ts';
import { IDLE_TIMEOUT_MS } from '../../../../runtime/sockets/quic/quic-limits.ts';
import { quicThread } from '../../../../runtime/sockets/quic/quic-thread.ts';
import { headers, response, serve } from '../../protocols/http3/frames.ts';
import { http3Suite } from '../../protocols/http3/http3-suite.ts';
import { connect } from '../../protocols/http3/quic-client.ts';

const test = http3Suite('clock of QUIC connections');

test('a connection uses the time since the machine started, as it was when it was updated last', async () => {
	const { ossl_quic_channel_get0_engine: engineOf, ossl_quic_engine_get_time: timeOf } = loadForeignFunctions(
		foreignFunctions()!,
		{
			ossl_quic_channel_get0_engine: foreignSignature('pointer', 'pointer'),
			ossl_quic_engine_get_time: foreignSignature('uint64', 'pointer'),
		},
	);
	const server = await serve(x => {
		x.response.body = 'hello';
	});
	const runs = quicThread()!.channelRuns!;
	const channels: bigint[] = [];
	runs.channelOf = connection => {
		const channel = Object.getPrototypeOf(runs).channelOf.call(runs, connection);
		channels.push(channel);
		return channel;
	};
	const client = await connect(server.port);
	try {
		assert.is((await response(client, client.open().write(headers(), true))).body, 'hello');
		const engine = engineOf(channels[0]!);
		// Less than a microsecond is rounded.
		const before = process.hrtime.bigint() - 1000n;
		runs.updateTime();
		const after = process.hrtime.bigint() + 1000n;
		const time = timeOf(engine) as bigint;
		assert.ok(before <= time && time <= after, `${time} is not a time after ${before}`);
		assert.is(Number(time), runs.time);
		runs.runEstablished(channels[0]!);
		const dueIn = runs.dueAt - performance.now();
		assert.ok(dueIn > 0 && dueIn <= IDLE_TIMEOUT_MS + 1, `the next event is due in ${dueIn} ms`);
	} finally {
		Reflect.deleteProperty(runs, 'channelOf');
		client.close();
		server.stop();
	}
});

test.run();
