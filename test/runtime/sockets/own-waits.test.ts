/**
 * The poller waits for events in place of Node's event loop. Everything else that the event loop does must still happen: timers,
 * callbacks, messages, file operations, and Node's own sockets.
 */
import { once } from 'node:events';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { isDirectIo } from '../../../runtime/sockets/io-mode.ts';
import { type Ask, WaitingThread } from './waiting-thread-client.ts';

const waits = suite('waits in place of the event loop');

async function withThread(run: (thread: WaitingThread) => Promise<void>): Promise<void> {
	if (!isDirectIo()) return;
	const thread = await WaitingThread.start();
	try {
		await run(thread);
	} finally {
		await thread.end();
	}
}

/** Returns the number of turns that the event loop takes while 200 lines are answered. */
async function turnsOfManyAnswers(ask: Ask): Promise<number> {
	const turnsBefore = Number(await ask('turns'));
	for (let count = 0; count < 200; count++) await ask('nothing');
	return Number(await ask('turns')) - turnsBefore;
}

const EXPECTED_ANSWERS: { readonly [line: string]: string } = {
	timer: 'timer',
	immediate: 'immediate',
	tick: 'tick',
	promise: 'promise',
	order: 'tick,microtask,immediate',
	file: 'file',
	message: 'message',
	"a socket of Node's": 'echo',
	'an error in a tick': 'in a tick',
	'an error in a microtask': 'in a microtask',
	'an error': 'in a handler',
};

waits('events that arrive one after another are reported without turns of the event loop', async () => {
	await withThread(async thread => {
		const turns = await turnsOfManyAnswers(await thread.connect());
		assert.ok(turns < 50, `${turns} turns`);
	});
});

waits('events are also reported without turns of the event loop while its delays are recorded', async () => {
	await withThread(async thread => {
		const ask = await thread.connect();
		assert.is(await ask('record'), 'recording');
		const turns = await turnsOfManyAnswers(ask);
		assert.ok(turns < 50, `${turns} turns`);
	});
});

waits('timers, callbacks, messages, files and sockets of Node are served between events', async () => {
	await withThread(async thread => {
		const ask = await thread.connect();
		for (const [line, answer] of Object.entries(EXPECTED_ANSWERS)) {
			assert.is(await ask('nothing'), 'nothing');
			assert.is(await ask(line), answer);
		}
	});
});

waits('a timer that is set before a long callback is not late by the duration of the callback', async () => {
	await withThread(async thread => {
		const ask = await thread.connect();
		await ask('nothing');
		const milliseconds = Number(await ask('timer during a long callback'));
		assert.ok(milliseconds < 500, `${milliseconds} ms`);
	});
});

waits('they are also served while events never stop', async () => {
	await withThread(async thread => {
		let hasEnded = false;
		const keepAsking = async (ask: Ask): Promise<void> => {
			while (!hasEnded) assert.is(await ask('nothing'), 'nothing');
		};
		const askers = [await thread.connect(), await thread.connect(), await thread.connect()].map(keepAsking);
		const ask = await thread.connect();
		for (const [line, answer] of Object.entries(EXPECTED_ANSWERS)) assert.is(await ask(line), answer);
		hasEnded = true;
		await Promise.all(askers);
	});
});

waits('a callback for which the event loop does not wake up runs after a number of events', async () => {
	await withThread(async thread => {
		const ask = await thread.connect();
		await ask('nothing');
		assert.is(await ask('unreferenced immediate'), 'set');
		for (let count = 0; count < 300; count++) await ask('nothing');
		assert.is(await ask('count of unreferenced immediates'), '1');
	});
});

waits('a waiting thread can be terminated, and can exit', async () => {
	for (const end of ['terminate', 'exit'] as const) {
		await withThread(async thread => {
			const ask = await thread.connect();
			await ask('nothing');
			const whenExited = once(thread.worker, 'exit');
			if (end === 'terminate') await thread.worker.terminate();
			else void ask('exit').catch(() => {});
			const [code] = await whenExited;
			assert.is(code, end === 'terminate' ? 1 : 7);
		});
	}
});

waits.run();
