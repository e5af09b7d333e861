/** If a relay is closed while it transfers a body, ordinary reads transfer the remaining bytes. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { createBodyRelay, MIN_RELAYED_BYTES } from '../../../../runtime/protocols/http1/body-relay.ts';
import { ClientBody } from '../../../../runtime/protocols/http1/client-body.ts';
import type { SocketRelay } from '../../../../runtime/sockets/socket-relay.ts';
import type { UpstreamSocket } from '../../../../runtime/sockets/upstream-socket.ts';

const relays = suite('body relays');

relays('reads are kept short only while the relay can move bytes', async () => {
	const pipe = { closed: false, takenBytes: 0, sentBytes: 0, remainder: undefined, hasMore: () => false, move };
	function move(): boolean {
		pipe.takenBytes = pipe.closed ? 0 : 1000;
		pipe.sentBytes = pipe.takenBytes;
		return true;
	}
	const body = new ClientBody({ resumeBody() {}, cancelBody() {} }, MIN_RELAYED_BYTES, { giveBack() {} }, Infinity);
	const relay = createBodyRelay(
		MIN_RELAYED_BYTES,
		{ descriptor: 1 } as UpstreamSocket,
		body,
		() => pipe as unknown as SocketRelay,
		{
			outstandingBytes: MIN_RELAYED_BYTES,
			bytesRelayed() {},
			relayFailed() {},
		},
	)!;
	assert.ok(relay.wantsShortRead, 'the first read is short, to try the relay');
	assert.not(relay.wantsShortRead);
	body.push(Buffer.from('first'));
	assert.instance(body.pull(), Uint8Array);
	assert.is(body.sendTo!(2), 1000);
	const pulled = body.pull();
	assert.instance(pulled, Promise);
	assert.ok(relay.wantsShortRead);
	pipe.closed = true;
	assert.not(relay.wantsShortRead, 'after the relay has closed, reads are no longer short');
	body.end(undefined);
	assert.is(await pulled, null);
});

relays.run();
