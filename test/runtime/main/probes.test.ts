/** `live`, `ready` and `metrics` on a site give the same answers as the Admin API. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, serve, temporaryFolder, until } from '../../harness.ts';

/** Response fields that do not matter to these tests. */
const IGNORED_FIELDS = new Set(['date', 'server', 'connection', 'keep-alive', 'x-content-type-options']);

interface Answer {
	readonly status: number;
	readonly fields: { readonly [name: string]: string };
	readonly body: string;
}

async function answerOf(port: number, target: string): Promise<Answer> {
	const response = await fetch(`http://127.0.0.1:${port}${target}`, { headers: { connection: 'close' } });
	const fields = Object.fromEntries([...response.headers].filter(([name]) => !IGNORED_FIELDS.has(name)));
	return { status: response.status, fields, body: await response.text() };
}

const probes = suite('probes');

probes('of a site and of the Admin API get the same answers, before and during a stop', async () => {
	const [site, admin] = (await freePorts(2)) as [number, number];
	const folder = temporaryFolder();
	writeFileSync(
		path.join(folder, 'Configfile'),
		`{
	admin 127.0.0.1:${admin}
	metrics
	threads 2
	shutdown_delay 30s
}
http://127.0.0.1:${site} {
	live /live
	ready /ready
	metrics /metrics
}
`,
	);
	const server = await serve(['Configfile'], site, { cwd: folder });
	try {
		await until('readiness', async () => (await answerOf(admin, '/ready')).status === 200);
		const live = { status: 200, fields: jsonFields(14), body: '{"live":true}\n' };
		assert.equal(await answerOf(admin, '/live'), live);
		assert.equal(await answerOf(site, '/live'), live);
		const ready = await answerOf(admin, '/ready');
		assert.equal(ready, { status: 200, fields: jsonFields(15), body: '{"ready":true}\n' });
		assert.equal(await answerOf(site, '/ready'), ready);
		for (const port of [admin, site]) {
			const { status, fields, body } = await answerOf(port, '/metrics');
			assert.is(status, 200);
			assert.match(fields['content-type']!, 'text/plain; version=0.0.4');
			assert.match(body, /^svc_ready 1$/m);
		}
		server.child.kill('SIGTERM');
		await until('the stop', async () => (await answerOf(admin, '/ready')).status === 503);
		const stopping = await answerOf(site, '/ready');
		assert.equal(stopping, await answerOf(admin, '/ready'));
		assert.is(stopping.status, 503);
		assert.is(JSON.parse(stopping.body).error.code, 'not_ready');
		assert.equal(await answerOf(site, '/live'), live);
	} finally {
		// The first SIGTERM began the shutdown delay, and the second one ends it.
		server.child.kill('SIGTERM');
		await server.stop();
	}
});

/** Returns the expected header fields of an answer whose body is JSON of this length in bytes. */
function jsonFields(length: number): Answer['fields'] {
	return { 'cache-control': 'no-store', 'content-length': String(length), 'content-type': 'application/json' };
}

probes.run();
