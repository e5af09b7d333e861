/** Responses of upstreams that fail while a directive is reading them, so that the client has not received a head yet. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { withServer } from '../running-server.ts';
import { onRequestHead, scriptedUpstream } from './scripted-upstream.ts';

const test = suite('broken responses');

const READERS = [
	{ name: 'encode', directive: 'encode gzip', subdirective: '' },
	{ name: 'templates', directive: 'templates', subdirective: '' },
	{ name: 'response_buffers', directive: '', subdirective: 'response_buffers 8KiB' },
];

for (const { name, directive, subdirective } of READERS) {
	test(`with ${name}, an upstream that fails within its response is a bad gateway`, async () => {
		const upstream = await scriptedUpstream(socket =>
			onRequestHead(socket, head => {
				socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5000\r\n\r\nonly these');
				if (!head.startsWith('GET /slow ')) socket.end();
			}),
		);
		const proxyWith = (more: string): string => `reverse_proxy ${upstream.address} {\n${subdirective}\n${more}\n}`;
		// The limit applies to this path alone: a busy thread may exceed it although the upstream has closed the connection in time.
		const slow = `handle /slow {\n${proxyWith('transport http {\nread_timeout 200ms\n}')}\n}`;
		const errors = 'handle_errors {\n@page path /page\nrespond @page "status {err.status_code}" 200\n}';
		const text = `{\nadmin off\n}\nhttp://:0 {\nbind 127.0.0.1\n${directive}\n${slow}\n${proxyWith('')}\n${errors}\n}\n`;
		const input = { format: 'configfile' as const, text, name: 'Configfile' };
		try {
			await withServer(undefined, { input, threads: 1 }, async ({ get, log }) => {
				const headers = { 'accept-encoding': 'gzip' };
				assert.is((await get('/', headers)).status, 502);
				assert.is((await get('/slow', headers)).status, 504);
				assert.is((await get('/page', headers)).body, 'status 502');
				assert.not.match(log.text(), 'panic');
			});
		} finally {
			await upstream.close();
		}
	});
}

test.run();
