/** Files that become shorter while they are sent: the response does not look complete, and the logs say why. */
import { once } from 'node:events';
import { truncateSync, writeFileSync } from 'node:fs';
import { connect } from 'node:http2';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Document } from '../../../compiler/document/document.ts';
import { temporaryFolder } from '../../harness.ts';
import { openWire, statusOf } from '../protocols/http1/wire.ts';
import { eventually, type TestServer, withServer } from '../running-server.ts';

const test = suite('truncated files');

/** More than what the kernel buffers for a client that does not read. */
const FILE_BYTES = 64 * 1024 * 1024;
const CAUSE = 'the file was truncated while it was being sent';

const root = temporaryFolder();
const file = path.join(root, 'large.bin');

function createFile(): void {
	writeFileSync(file, '');
	truncateSync(file, FILE_BYTES);
}

const DOCUMENT = {
	settings: { servers: [{ protocols: ['h1', 'h2c'] }] },
	sites: [
		{
			addresses: ['http://:0'],
			bind: ['127.0.0.1'],
			logs: [{}],
			pipeline: [{ handler: 'files', root }],
		},
	],
} as unknown as Document;

/** Waits for both log entries about the response, and checks them. */
async function expectEntries({ log }: TestServer): Promise<void> {
	const find = (message: string) => log.entries.find(({ msg }) => msg === message);
	await eventually('both entries are logged', () => !!find('handled request') && !!find('a response was cut short'));
	const access = find('handled request')!;
	assert.equal([access.status, access.error, access.level], [200, CAUSE, 'info']);
	assert.ok((access.size as number) < FILE_BYTES);
	const warning = find('a response was cut short')!;
	assert.equal(
		[warning.level, warning.logger, warning.status, warning.method, warning.path, warning.at, warning.cause],
		['warn', 'http.log.error', 200, 'GET', '/large.bin', '/sites/0/pipeline/0', CAUSE],
	);
}

test('a file that is truncated while it is sent over HTTP/1.1', async () => {
	createFile();
	await withServer(DOCUMENT, { threads: 1 }, async server => {
		const client = await openWire(server.port);
		client.send('GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n');
		await client.until(text => text.includes('\r\n\r\n'));
		client.socket.pause();
		truncateSync(file, 0);
		client.socket.resume();
		const text = await client.whole();
		assert.is(statusOf(text), 200);
		assert.match(text, `Content-Length: ${FILE_BYTES}\r\n`);
		assert.ok(text.length < FILE_BYTES);
		await expectEntries(server);
	});
});

test('a file that is truncated while it is sent over HTTP/2', async () => {
	createFile();
	await withServer(DOCUMENT, { threads: 1 }, async server => {
		const session = connect(`http://127.0.0.1:${server.port}`);
		try {
			const stream = session.request({ ':path': '/large.bin' });
			const [headers] = (await once(stream, 'response')) as [{ ':status': number }];
			assert.is(headers[':status'], 200);
			truncateSync(file, 0);
			stream.resume();
			await once(stream, 'close').catch(() => {});
			// INTERNAL_ERROR
			assert.is(stream.rstCode, 2);
			await expectEntries(server);
		} finally {
			session.destroy();
		}
	});
});

test('a client that leaves in the middle of a file is not such a response', async () => {
	createFile();
	await withServer(DOCUMENT, { threads: 1 }, async server => {
		const client = await openWire(server.port);
		client.send('GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n');
		await client.until(text => text.includes('\r\n\r\n'));
		client.socket.destroy();
		await eventually('the request is logged', () => server.log.text().includes('handled request'));
		assert.is(server.log.entries.find(({ msg }) => msg === 'handled request')!.error, undefined);
		assert.not.match(server.log.text(), 'cut short');
	});
});

test.run();
