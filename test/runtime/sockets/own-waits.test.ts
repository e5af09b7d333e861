/**
 * The poller waits for events in place of Node's event loop. Everything else that the event loop does must still happen: timers,
 * callbacks, messages, file operations, and Node's own sockets.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { Worker } from 'node:worker_threads';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { isDirectIo } from '../../../runtime/sockets/io-mode.ts';

const waits = suite('waits in place of the event loop');

/** A thread that runs waiting-thread.ts, and a connection to it. */
class WaitingThread {
	readonly worker: Worker;
	readonly #echo: Server;
	readonly #clients: Socket[] = [];
	#port = 0;

	private constructor(echo: Server) {
		this.#echo = echo;
		this.worker = new Worker(new URL('./waiting-thread.ts', import.meta.url), {
			workerData: { echoPort: (echo.address() as AddressInfo).port },
		});
	}

	static async start(): Promise<WaitingThread> {
		const echo = createServer(socket => socket.pipe(socket)).listen(0, '127.0.0.1');
		await once(echo, 'listening');
		const thread = new WaitingThread(echo);
		[thread.#port] = await once(thread.worker, 'message');
		thread.worker.on('message', what => {
			if (what === 'ask') thread.worker.postMessage('message');
		});
		return thread;
	}

	/** Opens a connection. Returns a function that sends a line and resolves to the answer. */
	async connect(): Promise<(line: string) => Promise<string>> {
		const client = connect(this.#port, '127.0.0.1');
		this.#clients.push(client);
		await once(client, 'connect');
		const lines = createInterface(client);
		return async line => {
			client.write(`${line}\n`);
			const [answer] = await once(lines, 'line');
			return answer;
		};
	}

	async end(): Promise<void> {
		for (const client of this.#clients) client.destroy();
		this.#echo.close();
		await this.worker.terminate();
	}
}

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
async function turnsOfManyAnswers(ask: (line: string) => Promise<string>): Promise<number> {
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
		const keepAsking = async (ask: (line: string) => Promise<string>): Promise<void> => {
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

waits('while delays of the event loop are recorded, the event loop waits itself', async () => {
	await withThread(async thread => {
		const ask = await thread.connect();
		assert.is(await ask('record'), 'recording');
		const turns = await turnsOfManyAnswers(ask);
		assert.ok(turns >= 200, `${turns} turns`);
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
