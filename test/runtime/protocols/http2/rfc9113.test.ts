/** Tests every requirement in the HTTP/2 tables over sockets. The bytes are sent once in one piece and once byte by byte. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { isStream } from '../../../../compiler/exchange/body.ts';
import type { Handler } from '../../../../compiler/exchange/handler.ts';
import { CONNECTION_REQUIREMENTS, type Requirement } from './connection-requirements.ts';
import { type FrameClient, type FrameServer, openFrameClient, request, serve } from './frames.ts';
import { MESSAGE_REQUIREMENTS } from './message-requirements.ts';

const test = suite('RFC 9113');

let server: FrameServer;
let streamed: FrameServer;

/** A handler that reads the body and responds. It responds later to `/slow`, and does not read the body of `/unread`. */
const handler: Handler = async x => {
	if (x.request.path === '/slow') await new Promise(resolve => setTimeout(resolve, 50));
	if (x.request.path === '/unread') await new Promise(resolve => x.onGone(() => resolve(undefined)));
	const { body } = x.request;
	if (isStream(body)) while ((await body.pull()) !== null);
	x.response.status = 200;
	x.response.body = 'hello';
};

/** A handler that responds at once, unless there is a body to read. */
const promptHandler: Handler = x => {
	if (x.request.body !== null || x.request.path !== '/') return handler(x);
	x.response.body = 'hello';
};

test.before(async () => {
	server = await serve(promptHandler);
	streamed = await serve(promptHandler, {}, true);
});

test.after(async () => {
	await server.stop();
	await streamed.stop();
});

for (const requirement of [...CONNECTION_REQUIREMENTS, ...MESSAGE_REQUIREMENTS]) {
	test(`${requirement.section}: ${requirement.asks}`, async () => {
		await check(requirement, server.port, Number.POSITIVE_INFINITY);
		await check(requirement, streamed.port, 7);
	});
}

async function check({ sends, bare, outcome }: Requirement, port: number, size: number): Promise<void> {
	const client = await openFrameClient(port, !bare);
	try {
		const bytes = Buffer.concat(sends as Uint8Array[]);
		if (size === Number.POSITIVE_INFINITY) client.send(bytes);
		else
			for (let at = 0; at < Math.min(bytes.length, 600); at += size) client.socket.write(bytes.subarray(at, at + size));
		if (size !== Number.POSITIVE_INFINITY && bytes.length > 600)
			client.send(bytes.subarray(Math.ceil(600 / size) * size));
		await expect(client, outcome);
	} finally {
		client.socket.destroy();
	}
}

async function expect(client: FrameClient, outcome: Requirement['outcome']): Promise<void> {
	if (outcome !== 'served' && 'connection' in outcome) {
		assert.is((await client.goAway()).code, outcome.connection);
		while (!client.ended) await new Promise(resolve => setTimeout(resolve, 5));
		return;
	}
	if (outcome !== 'served') {
		if ('code' in outcome) assert.is(await client.reset(outcome.stream), outcome.code);
		else assert.is(await client.status(outcome.stream), outcome.status);
	}
	await client.alive();
	client.send(request(101));
	assert.is(await client.status(101), '200');
	assert.is(await client.body(101), 'hello');
}

test("the server's first SETTINGS contain its limits and disable push", async () => {
	const client = await openFrameClient(server.port);
	const { payload } = await client.until(({ type, flags }) => type === 4 && flags === 0);
	const named = new Map<number, number>();
	for (let at = 0; at < payload.length; at += 6) named.set(payload.readUInt16BE(at), payload.readUInt32BE(at + 2));
	assert.is(named.get(3), 128);
	assert.is(named.get(6), 32_768 + 3200);
	assert.is(named.get(8), 1);
	assert.is(named.get(9), 1);
	client.socket.destroy();
});

test.run();
