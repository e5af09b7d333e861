/** Loss probes are prepared so that OpenSSL does not close the connection, and nothing else is. */
import * as assert from 'uvu/assert';
import { foreignFunctions, loadForeignFunctions } from '../../../../runtime/sockets/foreign-functions.ts';
import { foreignSignature } from '../../../../runtime/sockets/foreign-library.ts';
import { findLossProbes, type LossDetection, type LossProbes } from '../../../../runtime/sockets/quic/loss-probes.ts';
import { QuicEngine } from '../../../../runtime/sockets/quic/quic-engine.ts';
import { quicThread } from '../../../../runtime/sockets/quic/quic-thread.ts';
import { until } from '../../../harness.ts';
import { headers, response, serve } from '../../protocols/http3/frames.ts';
import { http3Suite } from '../../protocols/http3/http3-suite.ts';
import { connect } from '../../protocols/http3/quic-client.ts';
import { udpRelay } from '../../protocols/http3/udp-relay.ts';

const test = http3Suite('loss probes of QUIC connections');

test('probes are prepared when they are due, and not otherwise', async () => {
	const body = 'hello '.repeat(1000);
	const server = await serve(x => {
		x.response.body = body;
	});
	const probes = quicThread()!.lossProbes!;
	const methods = Object.getPrototypeOf(probes) as LossProbes;
	let dueCount = 0;
	let preparedCount = 0;
	let isLosing = false;
	probes.isDue = (detection, time) => {
		const isDue = methods.isDue.call(probes, detection, time);
		if (isDue) dueCount++;
		return isDue;
	};
	probes.prepare = detection => {
		preparedCount++;
		methods.prepare.call(probes, detection);
	};
	// The path works again once two probes have been due.
	const relay = await udpRelay(server.port, { loses: toClient => toClient && isLosing && dueCount < 2 });
	const client = await connect(relay.port);
	try {
		for (isLosing of [false, true, false]) {
			preparedCount = 0;
			dueCount = 0;
			assert.is((await response(client, client.open().write(headers(), true))).body, body);
			if (isLosing) assert.ok(dueCount >= 2);
			// The run that receives the acknowledgment of a probe is prepared as well. The last probe may be from the previous round.
			assert.ok(preparedCount >= dueCount && preparedCount <= 2 * dueCount + 1, `${preparedCount} for ${dueCount}`);
		}
		assert.equal(server.failures, []);
	} finally {
		Reflect.deleteProperty(probes, 'isDue');
		Reflect.deleteProperty(probes, 'prepare');
		client.close();
		relay.close();
		server.stop();
	}
});

test('a probe that becomes due while a connection runs is prepared', async () => {
	const server = await serve(x => {
		x.response.body = 'hello '.repeat(1000);
	});
	const runs = quicThread()!.channelRuns!;
	const probes = quicThread()!.lossProbes!;
	const { ossl_ackm_get_loss_detection_deadline: deadlineOf } = loadForeignFunctions(foreignFunctions()!, {
		ossl_ackm_get_loss_detection_deadline: foreignSignature('uint64', 'pointer'),
	});
	let ackManager = 0n;
	probes.detectionOf = channel => {
		const detection = Object.getPrototypeOf(probes).detectionOf.call(probes, channel) as LossDetection;
		({ ackManager } = detection);
		return detection;
	};
	const { onWritten } = QuicEngine.prototype;
	let engine: QuicEngine | undefined;
	QuicEngine.prototype.onWritten = function (bytes) {
		engine = this;
		onWritten.call(this, bytes);
	};
	let isPrepared = false;
	probes.prepare = detection => {
		isPrepared = true;
		Object.getPrototypeOf(probes).prepare.call(probes, detection);
	};
	let isWatching = false;
	/** For each probe, true if it was prepared. */
	const sent: boolean[] = [];
	for (const name of ['runEstablished', 'send'] as const) {
		runs[name] = channel => {
			const deadline = deadlineOf(ackManager) as bigint;
			// The thread loses the processor until the probe is due.
			while (isWatching && process.hrtime.bigint() <= deadline);
			Object.getPrototypeOf(runs)[name].call(runs, channel);
			if (isWatching && deadlineOf(ackManager) !== deadline) sent.push(isPrepared);
			isPrepared = false;
		};
	}
	let isLosing = false;
	// Nothing arrives after the second request.
	const relay = await udpRelay(server.port, {
		loses: toClient => isLosing && (toClient || server.exchanges.length === 2),
	});
	const client = await connect(relay.port);
	try {
		assert.is((await response(client, client.open().write(headers(), true))).status, '200');
		isLosing = true;
		client.open().write(headers(), true);
		await until('the second response', () => server.finished.length === 2 || engine!.bufferedBytes > 6000);
		isWatching = true;
		while (sent.length < 3) engine!.run();
		assert.ok(
			sent.every(wasPrepared => wasPrepared),
			sent.join(),
		);
	} finally {
		isWatching = false;
		QuicEngine.prototype.onWritten = onWritten;
		for (const name of ['detectionOf', 'prepare']) Reflect.deleteProperty(probes, name);
		for (const name of ['runEstablished', 'send']) Reflect.deleteProperty(runs, name);
		client.close();
		relay.close();
		server.stop();
	}
});

test('probes are not prepared for data that fits into one packet', async () => {
	const server = await serve(x => {
		x.response.body = 'hello';
	});
	const probes = quicThread()!.lossProbes!;
	let preparedCount = 0;
	probes.prepare = () => void preparedCount++;
	let lostCount = 0;
	let isLosing = false;
	// The client receives the response with the second probe at the earliest.
	const relay = await udpRelay(server.port, { loses: toClient => toClient && isLosing && ++lostCount <= 3 });
	const client = await connect(relay.port);
	try {
		for (isLosing of [false, true]) {
			assert.is((await response(client, client.open().write(headers(), true))).body, 'hello');
		}
		assert.ok(lostCount > 3);
		assert.is(preparedCount, 0);
	} finally {
		Reflect.deleteProperty(probes, 'prepare');
		client.close();
		relay.close();
		server.stop();
	}
});

test('where the structures are not recognized, no pointer is used', () => {
	const { library } = quicThread()!;
	for (const fill of [0, 0x58, 0xff]) {
		const memory = Buffer.allocUnsafeSlow(4096).fill(fill);
		assert.is(findLossProbes()!.detectionOf(library.addressOf(memory)), undefined);
	}
});

test('the pointers are used only if they are found once', async () => {
	const { library, lossProbes } = quicThread()!;
	const server = await serve(x => {
		x.response.body = 'hello';
	});
	let channel = 0n;
	lossProbes!.detectionOf = found => {
		channel = found;
		return Object.getPrototypeOf(lossProbes).detectionOf.call(lossProbes, found);
	};
	const client = await connect(server.port);
	try {
		assert.is((await response(client, client.open().write(headers(), true))).body, 'hello');
		const detection = findLossProbes()!.detectionOf(channel)!;
		assert.equal(detection, lossProbes!.detectionOf(channel));
		// A copy of the channel differs from it in the address of the streams, which are part of it.
		const copy = Buffer.allocUnsafeSlow(4096);
		library.copyBytes(channel, 1624).copy(copy);
		assert.is(findLossProbes()!.detectionOf(library.addressOf(copy)), undefined);
	} finally {
		Reflect.deleteProperty(lossProbes!, 'detectionOf');
		client.close();
		server.stop();
	}
});

test('probes are prepared in known releases of OpenSSL only', () => {
	assert.ok(findLossProbes({ openssl: '3.5.4+quic' }));
	for (const openssl of ['3.6.0', '3.50.1', '4.0.0']) assert.is(findLossProbes({ openssl }), undefined, openssl);
});

test.run();
