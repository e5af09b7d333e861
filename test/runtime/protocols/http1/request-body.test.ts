/** Request bodies, as handlers read them. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { CHUNKED_BODY } from '../../../../runtime/protocols/http1/head-parser.ts';
import { DEFAULT_LIMITS } from '../../../../runtime/protocols/http1/limits.ts';
import { RequestBody } from '../../../../runtime/protocols/http1/request-body.ts';

const test = suite('request body');

test('unread chunks of one byte are merged, not stored one by one', () => {
	const feeder = { bodyAwaited() {}, bodyCompleted() {}, bodyHasRoom() {} };
	const body = new RequestBody(feeder, CHUNKED_BODY, DEFAULT_LIMITS, undefined);
	const content = Buffer.from(Array.from({ length: 60_000 }, (_, at) => at % 251));
	const chunk = Buffer.from('1\r\n?\r\n');
	let first: Uint8Array | undefined;
	for (const byte of content) {
		chunk[3] = byte;
		body.feed(Buffer.from(chunk), 0);
		if (body.receivedBytes === 2000) first = body.pull() as Uint8Array;
	}
	body.feed(Buffer.from('0\r\n\r\n'), 0);
	const pieces = [first!];
	// Pieces that have already been returned do not change.
	assert.equal(first, content.subarray(0, 2000));
	for (let piece = body.pull(); piece !== null; piece = body.pull()) pieces.push(piece as Uint8Array);
	assert.ok(pieces.length < 20, `${pieces.length} pieces`);
	assert.ok(Buffer.concat(pieces).equals(content));
	assert.is(body.receivedBytes, content.length);
});

test.run();
