/**
 * Bodies are stored while they are sent, at the client's pace. If the client is slow, the body is read and stored ahead of it.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { StoringBody } from '../../../../../compiler/modules/directives/cache/storing-body.ts';
import { concurrentCases } from '../../../../concurrent-cases.ts';

const cases = suite('storing a body while sending it');
const storing = concurrentCases(cases);
const pause = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms));

/**
 * Creates a body whose pieces all use the same buffer, as when they are read from a socket. The piece `undefined` makes the body
 * fail.
 */
function createStoredBody(
	pieces: readonly (string | undefined)[],
	declared: string | undefined,
	awaited: boolean,
	delay = 0,
	ahead = { bytes: 0 },
) {
	const memory = Buffer.alloc(16);
	const remainingPieces = [...pieces];
	const kept: string[] = [];
	const outcome: { stored: boolean | undefined; cancelled: boolean } = { stored: undefined, cancelled: false };
	const body = new StoringBody({
		...{ declaredLength: declared, isAwaited: awaited, readAheadTotal: ahead },
		body: {
			length: undefined,
			async pull() {
				if (delay > 0) await pause(delay);
				if (remainingPieces.length === 0) return null;
				const piece = remainingPieces.shift();
				if (piece === undefined) throw new Error('the origin disconnected');
				memory.fill(0).write(piece);
				return memory.subarray(0, piece.length);
			},
			cancel: () => {
				outcome.cancelled = true;
			},
		},
		writer: {
			write: bytes => kept.push(Buffer.from(bytes).toString()) > 0,
			commit: () => true,
			abandon: () => {},
		},
		onEnd: stored => {
			outcome.stored = stored;
		},
	});
	return { body, kept, outcome };
}

async function rest(body: StoringBody): Promise<string> {
	let text = '';
	for (let piece = await body.pull(); piece !== null; piece = await body.pull()) text += Buffer.from(piece).toString();
	return text;
}

storing('nothing is read ahead while the client keeps pace, or if no request waits', async () => {
	const { body, kept, outcome } = createStoredBody(['ab', 'cd', 'ef'], undefined, false);
	const first = await body.pull();
	await pause(700);
	assert.equal(kept, ['ab']);
	assert.is(Buffer.from(first!).toString(), 'ab');
	assert.is(await rest(body), 'cdef');
	assert.is(outcome.stored, true);
});

storing('the body is read ahead of a slow client, which still gets every byte', async () => {
	const { body, kept, outcome } = createStoredBody(['ab', 'cd', 'ef', 'gh'], undefined, true);
	const first = await body.pull();
	await pause(700);
	assert.equal(kept, ['ab', 'cd', 'ef', 'gh']);
	assert.is(outcome.stored, true, 'the body is stored before the client has read it');
	assert.is(Buffer.from(first!).toString(), 'ab', 'bytes already handed to the client are unchanged');
	assert.is(await rest(body), 'cdefgh');
});

for (const awaited of [true, false]) {
	const others = awaited ? 'others wait' : 'nobody else waits';

	storing(`the body is read ahead of a client that pulls often, but takes long in total, if ${others}`, async () => {
		const pieces = Array.from({ length: 40 }, (_, index) => String.fromCharCode(48 + index));
		const { body, kept, outcome } = createStoredBody(pieces, undefined, awaited);
		let text = '';
		for (let piece = await body.pull(); piece !== null; piece = await body.pull()) {
			const seen = Buffer.from(piece).toString();
			// A single pause of this length is too short for the client to be considered slow.
			await pause(100);
			assert.is(Buffer.from(piece).toString(), seen, 'bytes already handed to the client are unchanged');
			text += seen;
			if (outcome.stored === true) break;
		}
		assert.ok(text.length < 20, `stored only after the client had read ${text.length} of ${pieces.length} pieces`);
		assert.equal(kept, pieces);
		assert.is(text + (await rest(body)), pieces.join(''));
	});
}

storing('a body that arrives slowly is not read ahead of a client that keeps pace', async () => {
	const { body, kept } = createStoredBody(['ab', 'cd', 'ef', 'gh'], undefined, false, 200);
	let passed = 0;
	for (let piece = await body.pull(); piece !== null; piece = await body.pull()) {
		passed++;
		assert.is(kept.length, passed);
	}
	assert.is(passed, 4);
});

storing('a body that pauses while the client waits is not pulled a second time', async () => {
	let resolvePull: ((bytes: Uint8Array | null) => void) | undefined;
	let pullCount = 0;
	const body = new StoringBody({
		...{ declaredLength: undefined, isAwaited: true, readAheadTotal: { bytes: 0 } },
		body: {
			length: undefined,
			pull: () => {
				assert.is(resolvePull, undefined, 'only one pull may be pending');
				pullCount++;
				return new Promise(resolve => {
					resolvePull = resolve;
				});
			},
			cancel: () => {},
		},
		writer: { write: () => true, commit: () => true, abandon: () => {} },
		onEnd: () => {},
	});
	const answer = (text: string | null): void => {
		const resolve = resolvePull!;
		resolvePull = undefined;
		resolve(text === null ? null : Buffer.from(text));
	};
	const first = body.pull();
	await pause(700);
	answer('ab');
	assert.is(Buffer.from((await first)!).toString(), 'ab');
	const second = body.pull();
	await pause(700);
	assert.is(pullCount, 2);
	answer('cd');
	assert.is(Buffer.from((await second)!).toString(), 'cd');
	// Now the client is slow.
	await pause(700);
	assert.is(pullCount, 3);
	answer(null);
	assert.is(await body.pull(), null);
});

storing('a client that resumes reading during read-ahead waits only for the next piece', async () => {
	const { body } = createStoredBody(['ab', 'cd', 'ef', 'gh', 'ij'], undefined, true, 150);
	await body.pull();
	await pause(600);
	const startedAt = performance.now();
	assert.is(Buffer.from((await body.pull())!).toString(), 'cd');
	assert.ok(performance.now() - startedAt < 300);
	assert.is(await rest(body), 'efghij');
});

storing('a body of known length is stored with its last byte', async () => {
	const { body, outcome } = createStoredBody(['ab', 'cd'], '4', true);
	await body.pull();
	assert.is(outcome.stored, undefined);
	await body.pull();
	assert.is(outcome.stored, true);
	assert.is(await body.pull(), null);
});

storing('a failure during read-ahead reaches the client in order, and nothing is stored', async () => {
	const { body, outcome } = createStoredBody(['ab', 'cd', undefined], undefined, true);
	await body.pull();
	await pause(700);
	assert.is(outcome.stored, false);
	assert.is(Buffer.from((await body.pull())!).toString(), 'cd');
	let failed = '';
	try {
		await body.pull();
	} catch (error) {
		failed = (error as Error).message;
	}
	assert.is(failed, 'the origin disconnected');
});

storing('a client that disconnects aborts storing, unless the whole body was read', async () => {
	const early = createStoredBody(['ab', 'cd'], undefined, true);
	await early.body.pull();
	early.body.cancel();
	assert.is(early.outcome.stored, false);
	assert.ok(early.outcome.cancelled);
	const late = createStoredBody(['ab', 'cd'], undefined, true);
	await late.body.pull();
	await pause(700);
	late.body.cancel();
	assert.is(late.outcome.stored, true);
});

storing('the unread bytes of all clients of a step have a common limit', async () => {
	const ahead = { bytes: 64 * 1024 * 1024 };
	const { body, kept } = createStoredBody(['ab', 'cd', 'ef'], undefined, true, 0, ahead);
	await body.pull();
	await pause(700);
	assert.equal(kept, ['ab']);
	ahead.bytes -= 1;
	await pause(700);
	assert.equal(kept, ['ab', 'cd']);
	assert.is(ahead.bytes, 64 * 1024 * 1024 + 1);
	assert.is(await rest(body), 'cdef');
	assert.is(ahead.bytes, 64 * 1024 * 1024 - 1);
	const left = createStoredBody(['ab', 'cd', 'ef'], undefined, true, 0, ahead);
	await left.body.pull();
	await pause(700);
	left.body.cancel();
	assert.is(ahead.bytes, 64 * 1024 * 1024 - 1);
});

cases.run();
