/** Connections that wait until other threads have closed idle ones. */
import { Socket } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { RoomQueue } from '../../../runtime/listeners/room-queue.ts';
import { until } from '../../harness.ts';

const queue = suite('room queue');

queue('each waiting connection is admitted in order once there is room, and room is asked for again', async () => {
	let roomCount = 0;
	let requestCount = 0;
	const admitted: number[] = [];
	const room = new RoomQueue(
		() => roomCount > 0,
		() => {
			requestCount++;
			roomCount = 1;
		},
	);
	for (const number of [1, 2, 3]) {
		const admit = (): void => {
			admitted.push(number);
			roomCount--;
		};
		assert.ok(room.add(new Socket(), admit));
	}
	await until('all are admitted', () => admitted.length === 3);
	assert.equal(admitted, [1, 2, 3]);
	assert.is(requestCount, 3);
	assert.not.ok(room.hasWaiting);
});

queue('no connection waits for a while after one has waited in vain, and only a limited number waits', async () => {
	let requestCount = 0;
	const room = new RoomQueue(
		() => false,
		() => requestCount++,
	);
	let attempts = 0;
	for (let number = 0; number < 64; number++) assert.ok(room.add(new Socket(), () => attempts++));
	assert.not.ok(room.add(new Socket(), () => assert.unreachable()));
	await until('all have waited', () => attempts === 64);
	assert.ok(requestCount > 1);
	assert.not.ok(room.add(new Socket(), () => assert.unreachable()));
});

queue('closing it closes the connections', async () => {
	const room = new RoomQueue(
		() => false,
		() => {},
	);
	const socket = new Socket();
	room.add(socket, () => assert.unreachable());
	room.close();
	assert.ok(socket.destroyed);
	assert.not.ok(room.hasWaiting);
});

queue.run();
