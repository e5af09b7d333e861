/** A fake API of a DNS provider: answers as the test's script determines, and records the requests. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A recorded request. */
export interface ApiCall {
	readonly method: string;
	readonly path: string;
	readonly headers: { readonly [name: string]: string | string[] | undefined };
	readonly body: string;
}

export interface FakeApi {
	readonly url: string;
	readonly calls: readonly ApiCall[];
	close(): Promise<void>;
}

/** Starts a fake API. It answers with the result of `answer`: a body that is an object is sent as JSON, and a string unchanged. */
export async function fakeApi(
	answer: (call: ApiCall) => { readonly status?: number; readonly body?: object | string },
): Promise<FakeApi> {
	const calls: ApiCall[] = [];
	const server = createServer(async (request, response) => {
		const chunks: Buffer[] = [];
		for await (const chunk of request) chunks.push(chunk as Buffer);
		const call = {
			method: request.method!,
			path: request.url!,
			headers: request.headers,
			body: Buffer.concat(chunks).toString('utf8'),
		};
		calls.push(call);
		const { status = 200, body = '' } = answer(call);
		response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body));
	});
	server.listen(0, '127.0.0.1');
	await once(server, 'listening');
	return {
		url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
		calls,
		async close() {
			server.closeAllConnections();
			await new Promise(resolve => server.close(resolve));
		},
	};
}
