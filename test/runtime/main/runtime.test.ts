/** Starting a server and loading configurations: what changes, what is refused, and what can be read. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Document } from '../../../compiler/document/document.ts';
import { StartError, startRuntime } from '../../../runtime/main/runtime.ts';
import { jsonInput, recordingLog, respondingSite, withServer } from '../running-server.ts';

const start = suite('runtime: start');

start('serves on a free port', async () => {
	await withServer({ sites: [respondingSite('hello')] }, {}, async ({ runtime, get }) => {
		assert.is(runtime.ready, true);
		assert.is(runtime.generation, 1);
		assert.is(runtime.threads, 2);
		const { status, body } = await get();
		assert.equal([status, body], [200, 'hello']);
	});
});

start(
	'logs how many connections are still open when the grace period ends, and nothing if there are none',
	async () => {
		for (const isHanging of [true, false]) {
			const whenRequested = Promise.withResolvers<void>();
			const upstream = createServer(socket => {
				socket.on('error', () => {});
				socket.once('data', () => {
					whenRequested.resolve();
					if (!isHanging) socket.end('HTTP/1.1 204 No Content\r\n\r\n');
				});
			}).listen(0, '127.0.0.1');
			await once(upstream, 'listening');
			const to = [`127.0.0.1:${(upstream.address() as { port: number }).port}`];
			const pipeline = [{ handler: 'proxy', upstreams: { to } }];
			const document = {
				settings: { grace_period: isHanging ? 50 : 60_000 },
				sites: [{ addresses: ['http://:0'], bind: ['127.0.0.1'], pipeline }],
			} as unknown as Document;
			try {
				await withServer(document, {}, async ({ runtime, get, log }) => {
					const whenAnswered = get().catch(() => undefined);
					await whenRequested.promise;
					if (!isHanging) await whenAnswered;
					await runtime.stop();
					await whenAnswered;
					const entry = log.entries.find(
						({ msg }) => msg === 'the grace period has ended: open connections are closed',
					);
					assert.equal(
						entry && [entry.level, entry.grace_period_ms, entry.connections, entry.requests],
						isHanging ? ['warn', 50, 1, 1] : undefined,
					);
				});
			} finally {
				upstream.close();
			}
		}
	},
);

start('refuses a configuration with its diagnostics', async () => {
	const error = await startRuntime({
		input: jsonInput('{"sites":[{"addresses":[]'),
		writers: { stderr: recordingLog() },
	}).then(
		() => undefined,
		error => error as unknown,
	);
	assert.instance(error, StartError);
	const { failure } = error as StartError;
	assert.is(failure.reason, 'refused');
	assert.ok(failure.reason === 'refused' && failure.diagnostics[0]!.severity === 'error');
});

start('reports which address is in use', async () => {
	const occupyingServer = createServer().listen(0, '127.0.0.1');
	await once(occupyingServer, 'listening');
	const { port } = occupyingServer.address() as { port: number };
	try {
		const site = respondingSite('x', { addresses: [`http://:${port}`] });
		const error = await startRuntime({ input: jsonInput({ sites: [site] }), writers: { stderr: recordingLog() } }).then(
			() => undefined,
			error => error as unknown,
		);
		assert.instance(error, StartError);
		assert.equal((error as StartError).failure, {
			reason: 'listen',
			code: 'EADDRINUSE',
			address: `127.0.0.1:${port}`,
		});
		assert.match((error as StartError).message, `127.0.0.1:${port}`);
	} finally {
		occupyingServer.close();
	}
});

start('without a configuration, accepts plaintext listeners with the first load only', async () => {
	await withServer(undefined, {}, async ({ runtime, get }) => {
		assert.is(runtime.generation, 0);
		assert.equal(runtime.admin, {});
		assert.equal(await runtime.readConfig([]).then(read => read.json), '{}');
		const first = await runtime.load(jsonInput({ sites: [respondingSite('first')] }));
		assert.is(first.result, 'applied');
		assert.is((await get()).body, 'first');
		assert.equal(runtime.admin, {});
		const more = respondingSite('second', { addresses: ['http://second.example:1'] });
		const second = await runtime.load(jsonInput({ sites: [respondingSite('first'), more] }));
		assert.is(second.result, 'restart_required');
	});
});

start('without a configuration, a load onto a port in use is refused, and a later load can succeed', async () => {
	const occupyingServer = createServer().listen(0, '127.0.0.1');
	await once(occupyingServer, 'listening');
	const { port } = occupyingServer.address() as { port: number };
	try {
		await withServer(undefined, {}, async ({ runtime, get }) => {
			const outcome = await runtime.load(
				jsonInput({ sites: [respondingSite('x', { addresses: [`http://:${port}`] })] }),
			);
			assert.is(outcome.result, 'refused');
			assert.match(JSON.stringify(outcome), `127.0.0.1:${port}: the address is in use`);
			assert.is(runtime.generation, 0);
			assert.is((await runtime.load(jsonInput({ sites: [respondingSite('better')] }))).result, 'applied');
			assert.is((await get()).body, 'better');
		});
	} finally {
		occupyingServer.close();
	}
});

start('a successor that is killed while its threads begin to accept does not serve', async () => {
	const inheritance = { sockets: { listeners: [], held: [], passed: [] }, ticketKeys: [] };
	for (const input of [undefined, jsonInput({ sites: [respondingSite('x')] })]) {
		const log = recordingLog();
		const runtime = await startRuntime({
			...(input && { input }),
			inheritance,
			threads: 2,
			writers: { stdout: log, stderr: log },
		});
		const failure = runtime.accept().then(
			() => undefined,
			error => error as unknown,
		);
		runtime.kill();
		assert.is(((await failure) as Error | undefined)?.message, 'The server is stopping.');
		assert.is(runtime.ready, false);
		assert.not(log.text().includes('"serving"'));
		assert.is(await runtime.threadsEnded, true);
	}
});

start.run();

const load = suite('runtime: load');

load('applies a load, and reports when nothing changed', async () => {
	await withServer({ sites: [respondingSite('one')] }, {}, async ({ runtime, get }) => {
		const changed = await runtime.load(jsonInput({ sites: [respondingSite('two')] }));
		assert.equal(changed, { result: 'applied', generation: 2, unchanged: false, diagnostics: [] });
		assert.is((await get()).body, 'two');
		const again = await runtime.load(jsonInput({ sites: [respondingSite('two')] }));
		assert.equal(again, { result: 'applied', generation: 2, unchanged: true, diagnostics: [] });
	});
});

load('a refused load leaves the old document in use and readable byte for byte', async () => {
	await withServer({ sites: [respondingSite('one')] }, {}, async ({ runtime, get, log }) => {
		const before = await runtime.readConfig([]);
		for (const bad of [
			'{',
			'{"apps":{}}',
			'{"sites":[{"addresses":["http://:0"],"pipeline":[{"handler":"nothing"}]}]}',
		]) {
			const outcome = await runtime.load(jsonInput(bad));
			assert.is(outcome.result, 'refused', bad);
			assert.ok(outcome.result === 'refused' && outcome.diagnostics.some(({ severity }) => severity === 'error'));
		}
		assert.equal(await runtime.readConfig([]), before);
		assert.is((await get()).body, 'one');
		assert.is(runtime.generation, 1);
		assert.ok(log.entries.some(entry => entry.msg === 'configuration refused; the previous one stays in use'));
	});
});

load('a load is refused if a log file cannot be opened', async () => {
	await withServer({ sites: [respondingSite('one')] }, {}, async ({ runtime, get }) => {
		const logs = [{ name: 'a', output: { writer: 'file', path: '/proc/none/access.log' } }];
		const outcome = await runtime.load(jsonInput({ sites: [respondingSite('two', { logs })] }));
		assert.is(outcome.result, 'refused');
		assert.match(JSON.stringify(outcome), '/proc/none/access.log');
		assert.is((await get()).body, 'one');
		assert.is((await runtime.load(jsonInput({ sites: [respondingSite('three')] }))).result, 'applied');
		assert.is((await get()).body, 'three');
	});
});

load('reports what needs a restart and applies nothing', async () => {
	await withServer({ sites: [respondingSite('one')] }, {}, async ({ runtime, get }) => {
		const document: Document = {
			settings: { metrics: {} },
			sites: [respondingSite('two', { addresses: ['http://:1'] })],
		};
		const outcome = await runtime.load(jsonInput(document));
		assert.is(outcome.result, 'restart_required');
		const reasons = outcome.result === 'restart_required' ? outcome.reasons : [];
		assert.equal(reasons.map(({ code, subject }) => `${code} ${subject}`).sort(), [
			'listener_added 127.0.0.1:1',
			'listener_removed 127.0.0.1:0',
			'setting_changed metrics',
		]);
		assert.is((await get()).body, 'one');
	});
});

load('concurrent loads are serialized', async () => {
	await withServer({ sites: [respondingSite('0')] }, {}, async ({ runtime, get }) => {
		const outcomes = await Promise.all(
			['1', '2', '3', '4'].map(body => runtime.load(jsonInput({ sites: [respondingSite(body)] }))),
		);
		assert.equal(
			outcomes.map(outcome => outcome.result === 'applied' && outcome.generation),
			[2, 3, 4, 5],
		);
		assert.is((await get()).body, '4');
	});
});

load(
	'errors in a text configuration are reported with their positions, and valid text is applied like JSON',
	async () => {
		await withServer({ sites: [respondingSite('one')] }, {}, async ({ runtime, get }) => {
			const text = (body: string) => `http://:0 {\n\tbind 127.0.0.1\n\t${body}\n}\n`;
			const wrong = await runtime.load({ format: 'configfile', text: text('respnd x'), name: 'Configfile' });
			assert.is(wrong.result, 'refused');
			const [report] = wrong.result === 'refused' ? wrong.diagnostics : [];
			assert.equal([report?.file, report?.line, report?.column], ['Configfile', 3, 2]);
			assert.match(report!.text, 'Configfile:3:2');
			const right = await runtime.load({ format: 'compatfile', text: text('respond two'), name: 'Compatfile' });
			assert.is(right.result, 'applied');
			assert.is((await get()).body, 'two');
		});
	},
);

load('adapting applies nothing', async () => {
	await withServer({ sites: [respondingSite('one')] }, {}, async ({ runtime }) => {
		const adapted = await runtime.adapt(jsonInput({ sites: [respondingSite('two')] }));
		assert.is(JSON.parse(adapted.document!).sites[0].pipeline[0].body, 'two');
		assert.is((await runtime.adapt(jsonInput('{'))).document, undefined);
		assert.is(runtime.generation, 1);
	});
});

load('the configuration can be read by path, with secrets hidden and an ETag for each path', async () => {
	const settings = { admin: { token: 'correct-horse', listen: '127.0.0.1:0' } };
	await withServer({ settings, sites: [respondingSite('one')] }, {}, async ({ runtime }) => {
		const read = (...path: string[]) => runtime.readConfig(path);
		assert.is((await read('sites', '0', 'pipeline', '0', 'body')).json, '"one"');
		assert.is((await read('sites', '7')).json, 'null');
		assert.is((await read('settings', 'admin', 'token')).json, '"[redacted]"');
		assert.not.match(String((await read()).json), 'correct-horse');
		assert.is(runtime.admin?.token, 'correct-horse');
		const etag = (await read('sites')).etag;
		assert.match(etag, /^"\/sites [0-9a-f]+"$/);
		const token = (await read('settings', 'admin', 'token')).etag;
		await runtime.load(
			jsonInput({ settings: { admin: { ...settings.admin, token: 'other' } }, sites: [respondingSite('one')] }),
		);
		assert.is((await read('sites')).etag, etag);
		assert.is.not((await read('settings', 'admin', 'token')).etag, token);
		assert.is(runtime.admin?.token, 'other');
	});
});

load.run();
