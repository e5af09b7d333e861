/** HTTP/2 request bodies: frames are collected in blocks of memory, readers get pieces of a whole block, and blocks are reused. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { PieceMemory } from '../../../../runtime/protocols/http1/piece-memory.ts';
import { StreamBody } from '../../../../runtime/protocols/http2/request-body.ts';

const test = suite('HTTP/2: request bodies');

const BLOCK_BYTES = 65_536;
const FRAME_BYTES = 16_384;

interface Feed {
	readonly body: StreamBody;
	/** Number of bytes by which the client's window may be raised again. */
	windowIncrease: number;
	/** Number of times that the reader had consumed all data. */
	caughtUpCount: number;
	/** Feeds `count` frames with varied content to the body. Returns the content. */
	frames(count: number, size?: number): Buffer;
}

function createFeed(memory: PieceMemory | undefined): Feed {
	let seed = 1;
	const state: Feed = {
		body: new StreamBody(
			{
				bodyAwaited() {},
				bodyConsumed(bytes, keepsUp) {
					state.windowIncrease += bytes;
					if (keepsUp) state.caughtUpCount++;
				},
			},
			undefined,
			memory,
		),
		windowIncrease: 0,
		caughtUpCount: 0,
		frames(count, size = FRAME_BYTES) {
			const content = Buffer.alloc(count * size);
			for (let at = 0; at < content.length; at++) {
				seed = (seed * 1_103_515_245 + 12_345) & 0x7fffffff;
				content[at] = seed >> 16;
			}
			// The frames are in memory that the next read overwrites.
			const read = Buffer.alloc(size + 9);
			for (let frame = 0; frame < count; frame++) {
				content.copy(read, 9, frame * size, (frame + 1) * size);
				state.body.feed(read, 9, 9 + size);
				read.fill(0);
			}
			return content;
		},
	};
	return state;
}

/** Pulls all data that is available. Returns the promise of the pull that waits for further data. */
function drain(body: StreamBody): Promise<Uint8Array | null> {
	for (;;) {
		const piece = body.pull();
		if (piece instanceof Promise) return piece;
		assert.ok(piece !== null);
	}
}

test('frames of a large body become pieces of a whole block', () => {
	const { body, frames } = createFeed(new PieceMemory());
	const content = frames(40);
	body.end();
	const pieces: Buffer[] = [];
	for (let piece = body.pull(); piece !== null; piece = body.pull()) pieces.push(Buffer.from(piece as Uint8Array));
	assert.ok(Buffer.concat(pieces).equals(content));
	const sizes = pieces.map(({ length }) => length);
	assert.ok(sizes.filter(size => size === BLOCK_BYTES).length >= 8, sizes.join(' '));
});

test('a piece stays unchanged until the next pull, after which its memory is reused', async () => {
	const { body, frames } = createFeed(new PieceMemory());
	frames(8);
	let waiting = drain(body);
	const seen = new Set<ArrayBufferLike>();
	for (let round = 0; round < 50; round++) {
		const content = frames(4);
		body.deliver();
		const piece = (await waiting)!;
		seen.add(piece.buffer);
		// Later frames must not overwrite the piece.
		frames(8);
		assert.ok(content.equals(piece));
		waiting = drain(body);
	}
	assert.ok(seen.size <= 4, `${seen.size} blocks`);
});

test("a waiting reader gets all frames of one read at once, and the client's window is raised", async () => {
	const state = createFeed(new PieceMemory());
	const { body, frames } = state;
	frames(8);
	const waiting = drain(body);
	const before = state.windowIncrease;
	const content = frames(4);
	assert.is(state.windowIncrease, before);
	body.deliver();
	assert.is(state.windowIncrease, before + BLOCK_BYTES);
	assert.ok(content.equals((await waiting)!));
});

test('data received before a failure or the end can still be read', async () => {
	for (const ending of ['end', 'fail'] as const) {
		const { body, frames } = createFeed(new PieceMemory());
		const first = body.pull() as Promise<Uint8Array | null>;
		const content = frames(1);
		if (ending === 'end') body.end();
		else body.fail(Object.assign(new Error('cut short'), { status: 400 }) as never);
		assert.ok(Buffer.from((await first)!).equals(content));
		if (ending === 'end') assert.is(body.pull(), null);
		else assert.throws(() => body.pull(), /cut short/);
	}
});

test('frames of a canceled body are not kept', () => {
	const state = createFeed(new PieceMemory());
	state.frames(10);
	state.body.cancel();
	assert.is(state.windowIncrease, 10 * FRAME_BYTES);
	state.frames(10);
	assert.is(state.windowIncrease, 20 * FRAME_BYTES);
});

test('pieces of a tunnel stay valid', () => {
	const { body, frames } = createFeed(new PieceMemory());
	body.keepPieces();
	const content = frames(40);
	const pieces: Uint8Array[] = [];
	for (let piece = body.pull(); !(piece instanceof Promise); piece = body.pull()) pieces.push(piece!);
	frames(40);
	assert.ok(Buffer.concat(pieces).equals(content));
});

test.run();
