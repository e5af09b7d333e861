/** The contents of an access log entry. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Document } from '../../../compiler/document/document.ts';
import { isEntryField } from '../../../compiler/modules/providers/log-formats/entry-fields.ts';
import { rawExchange } from '../../harness.ts';
import { eventually, respondingSite, type TestServer, withServer } from '../running-server.ts';

const entries = suite('access entries');

// biome-ignore lint/suspicious/noExplicitAny: parsed JSON of any shape
type Entry = any;

async function entryOf(server: TestServer, request: string): Promise<Entry> {
	const of = (): Entry[] =>
		server.log.entries.filter(({ logger }) => typeof logger === 'string' && logger.startsWith('http.log.access'));
	const before = of().length;
	await rawExchange(server.port, request.replaceAll('\n', '\r\n'));
	await eventually('an entry', () => of().length > before);
	const found = of().at(-1)!;
	for (const path of pathsIn(found)) assert.ok(isEntryField(path, new Set()), `the lint rule knows ${path.join('>')}`);
	return found;
}

/** Returns the paths of the fields of an entry, in lower case. */
function pathsIn(entry: Entry): string[][] {
	return Object.entries(entry).flatMap(([name, value]) => {
		const nested = typeof value === 'object' && !Array.isArray(value) ? pathsIn(value) : [[]];
		return nested.map(path => [name.toLowerCase(), ...path]);
	});
}

const steps = [
	{
		handler: 'edit_headers',
		request: { set: [{ name: 'X-Request-Id', value: '{http.request.uuid}' }] },
		when: { type: 'path', patterns: ['/id'] },
	},
	{ handler: 'fail', status: 503, message: 'gone', when: { type: 'path', patterns: ['/fail'] } },
	{
		handler: 'respond',
		status: 201,
		body: 'five!',
		when: { type: 'not', of: { type: 'path', patterns: ['/none', '/fail'] } },
	},
];
const site = { ...respondingSite('unused'), logs: [{ name: 'main', format: { encoder: 'json' } }], pipeline: steps };

entries('describe the request and contain no credentials', async () => {
	await withServer({ sites: [site] } as unknown as Document, {}, async server => {
		const fields = 'Host: a.example\nCookie: secret\nX-Api-Key: secret\nAccept: a\naccept: "b"\nConnection: close';
		const found = await entryOf(server, `POST /x%20y?q="1" HTTP/1.1\n${fields}\nContent-Length: 3\n\nabc`);
		const { ts, duration, request, resp_headers, ...rest } = found;
		assert.ok(Math.abs(ts - Date.now() / 1000) < 10);
		assert.ok(duration > 0 && duration < 10);
		assert.equal(rest, {
			...{ level: 'info', logger: 'http.log.access.main', msg: 'handled request', bytes_read: 3, user_id: '' },
			...{ size: 5, status: 201, handler: 'respond', at: '/sites/0/pipeline/2' },
		});
		const { remote_port, ...asked } = request;
		assert.match(remote_port, /^\d+$/);
		assert.equal(asked, {
			...{ remote_ip: '127.0.0.1', client_ip: '127.0.0.1', proto: 'HTTP/1.1', method: 'POST', host: 'a.example' },
			uri: '/x%20y?q="1"',
			headers: {
				...{ Cookie: ['REDACTED'], 'X-Api-Key': ['REDACTED'], Accept: ['a', '"b"'] },
				...{ Connection: ['close'], 'Content-Length': ['3'] },
			},
		});
		assert.equal(resp_headers.Server, ['svc']);

		const identified = await entryOf(server, 'GET /id HTTP/1.1\nHost: a\nConnection: close\n\n');
		assert.match(identified.uuid, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-/);
		// The request is logged as the client sent it, without fields added later.
		assert.equal(identified.request.headers, { Connection: ['close'] });

		const failed = await entryOf(server, 'GET /fail HTTP/1.1\nHost: a\nConnection: close\n\n');
		assert.equal([failed.level, failed.status, failed.msg], ['error', 503, 'handled request']);
		assert.is(failed.at, '/sites/0/pipeline/1');
		const unanswered = await entryOf(server, 'GET /none HTTP/1.1\nHost: a\nConnection: close\n\n');
		assert.equal(
			[unanswered.msg, unanswered.handler, unanswered.at, unanswered.status],
			['NOP', undefined, undefined, 200],
		);
	});
});

entries.run();
