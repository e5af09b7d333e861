/** Tests every HTTP/3 requirement over real QUIC connections. The bytes are sent once in one piece and once byte by byte. */

import * as assert from 'uvu/assert';
import { isStream } from '../../../../compiler/exchange/body.ts';
import { type FrameServer, frame, headers, response, serve, varint } from './frames.ts';
import { http3Suite } from './http3-suite.ts';
import { connect, type QuicClient } from './quic-client.ts';
import { REQUIREMENTS, type Requirement } from './requirements.ts';

const test = http3Suite('RFC 9114 and RFC 9204');
let server: FrameServer;

test.before(async () => {
	server = await serve(async x => {
		const { body } = x.request;
		if (isStream(body)) while ((await body.pull()) !== null);
		x.response.status = 200;
		x.response.body = 'hello';
	});
});

test.after(() => server.stop());

for (const requirement of REQUIREMENTS) {
	test(`${requirement.section}: ${requirement.asks}`, async () => {
		await Promise.all([check(requirement, Number.POSITIVE_INFINITY), check(requirement, 1)]);
	});
}

async function check(requirement: Requirement, size: number): Promise<void> {
	const client = await connect(server.port);
	try {
		const { control, controlEnds = false, uni = [], uniEnds = false, request, open = false, outcome } = requirement;
		const settled = control ?? frame(4);
		write(client, client.open(true), Buffer.concat([varint(0), settled]), controlEnds, size);
		for (const bytes of uni) write(client, client.open(true), bytes, uniEnds, size);
		if (request !== undefined) {
			const stream = client.open();
			write(client, stream, request, !open, size);
			if (outcome !== 'served' && 'stream' in outcome) {
				await client.until('the reset', () => stream.resetCode !== undefined || stream.ended);
				assert.is(stream.resetCode, outcome.stream);
			} else if (outcome !== 'served' && 'status' in outcome) {
				assert.is((await response(client, stream)).status, outcome.status);
			}
		}
		if (outcome !== 'served' && 'connection' in outcome) {
			assert.equal(await client.end(), { code: outcome.connection, transport: false, byServer: true });
			return;
		}
		const next = await response(client, client.open().write(headers(), true));
		assert.is(next.body, 'hello');
	} finally {
		client.close();
	}
}

/** Writes bytes in small pieces; long inputs in larger ones. */
function write(
	client: QuicClient,
	stream: ReturnType<QuicClient['open']>,
	bytes: Uint8Array,
	fin: boolean,
	size: number,
): void {
	if (size === Number.POSITIVE_INFINITY || bytes.length > 300) {
		stream.write(bytes, fin);
		return;
	}
	for (let at = 0; at < bytes.length; at += size) {
		stream.write(bytes.subarray(at, at + size), fin && at + size >= bytes.length);
		client.look();
	}
	if (bytes.length === 0) stream.write(bytes, fin);
}

test.run();
