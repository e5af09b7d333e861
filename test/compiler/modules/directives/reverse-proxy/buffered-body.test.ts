/** Bodies that are partly read into memory before they are passed on. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type BodySource, isStream } from '../../../../../compiler/exchange/body.ts';
import { bufferBody } from '../../../../../compiler/modules/directives/reverse-proxy/buffered-body.ts';

const test = suite('buffered bodies');

/** So many that pieces are not joined. */
const PIECE_BYTES = 2000;

/** A body that has this many pieces, each of which consists of its number. */
function numberedPieces(count: number): BodySource {
	let nextNumber = 0;
	return {
		length: undefined,
		pull: () => (nextNumber < count ? Buffer.alloc(PIECE_BYTES, nextNumber++) : null),
		cancel() {},
	};
}

test('what has been buffered leaves memory as it is passed on, in order', async () => {
	setFlagsFromString('--expose-gc');
	const collectGarbage = runInNewContext('gc') as () => void;
	const body = await bufferBody(numberedPieces(80), 50 * PIECE_BYTES);
	assert.ok(isStream(body));
	assert.is(body.heldBytes, 50 * PIECE_BYTES);
	const pulledPieces: WeakRef<Uint8Array>[] = [];
	for (let number = 0; number < 40; number++) {
		const piece = (await body.pull()) as Uint8Array;
		assert.ok(Buffer.alloc(PIECE_BYTES, number).equals(piece));
		pulledPieces.push(new WeakRef(piece));
	}
	assert.is(body.heldBytes, 10 * PIECE_BYTES);
	// Until the next turn, weak references keep their targets alive.
	await new Promise(resolve => setImmediate(resolve));
	collectGarbage();
	const heldCount = pulledPieces.filter(piece => piece.deref() !== undefined).length;
	assert.ok(heldCount < 5, `${heldCount} pieces are still in memory`);
	for (let number = 40; number < 80; number++)
		assert.ok(Buffer.alloc(PIECE_BYTES, number).equals((await body.pull()) as Uint8Array));
	assert.is(await body.pull(), null);
	assert.is(body.heldBytes, 0);
});

test('pieces of one byte are joined, because each would take many times its size', async () => {
	let pulledCount = 0;
	const body = await bufferBody(
		{ length: undefined, pull: () => Buffer.of(pulledCount++ % 251), cancel() {} },
		50 * PIECE_BYTES,
	);
	assert.ok(isStream(body));
	let bufferedCount = 0;
	for (let position = 0; position < 50 * PIECE_BYTES; bufferedCount++) {
		for (const byte of (await body.pull()) as Uint8Array) if (byte !== position++ % 251) assert.unreachable();
	}
	assert.ok(bufferedCount < 50, `${bufferedCount} pieces`);
	assert.is(body.heldBytes, 0);
});

test('a body that fits is passed on in one piece', async () => {
	const body = await bufferBody(numberedPieces(3), 4 * PIECE_BYTES);
	assert.is((body as Uint8Array).byteLength, 3 * PIECE_BYTES);
});

test.run();
