/** Response bodies of upstreams, as their consumers pull them. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ClientBody } from '../../../../runtime/protocols/http1/client-body.ts';

const test = suite('response body of an upstream');

function createBody(): ClientBody {
	return new ClientBody({ resumeBody() {}, cancelBody() {} }, undefined, { giveBack() {} }, Infinity);
}

test('chunks that have been pulled are released although others are always waiting', async () => {
	setFlagsFromString('--expose-gc');
	const collectGarbage = runInNewContext('gc') as () => void;
	const body = createBody();
	const pulledChunks: WeakRef<Uint8Array>[] = [];
	body.push(Buffer.alloc(2048));
	for (let i = 0; i < 1000; i++) {
		body.push(Buffer.alloc(2048));
		pulledChunks.push(new WeakRef(body.pull() as Uint8Array));
	}
	// Until the next turn, weak references keep their targets alive.
	await new Promise(resolve => setImmediate(resolve));
	collectGarbage();
	const heldCount = pulledChunks.filter(chunk => chunk.deref() !== undefined).length;
	assert.ok(heldCount < 10, `${heldCount} chunks are still in memory`);
	assert.is(body.heldBytes, 2048);
});

test('waiting chunks of one byte are merged, not stored one by one', () => {
	const body = createBody();
	const content = Buffer.from(Array.from({ length: 60_000 }, (_, at) => at % 251));
	let first: Uint8Array | undefined;
	for (let at = 0; at < content.length; at++) {
		body.push(Buffer.from([content[at]!]));
		if (at === 1999) first = body.pull() as Uint8Array;
	}
	body.end(undefined);
	const pieces = [first!];
	// Pieces that have already been returned do not change.
	assert.equal(first, content.subarray(0, 2000));
	for (let piece = body.pull(); piece !== null; piece = body.pull()) pieces.push(piece as Uint8Array);
	assert.ok(pieces.length < 20, `${pieces.length} pieces`);
	assert.ok(Buffer.concat(pieces).equals(content));
	assert.is(body.heldBytes, 0);
});

test.run();
