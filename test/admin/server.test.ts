/** The Admin API over real sockets: every endpoint, and every access rule. */

import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { AdminAccess } from '../../admin/access.ts';
import { AdminBindError } from '../../admin/bind.ts';
import type { HandoverRequest } from '../../admin/endpoint.ts';
import { parseAdminAddress } from '../../admin/listen-address.ts';
import { RefusalRate } from '../../admin/refusal-rate.ts';
import { type AdminOptions, type AdminServer, startAdmin } from '../../admin/server.ts';
import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import type { AdminSettings } from '../../compiler/document/document.ts';
import { Exchange, Request } from '../../compiler/exchange/exchange.ts';
import { HeaderList } from '../../compiler/exchange/header-list.ts';
import type { ConfigEdit, EditRefused, LoadPreview } from '../../runtime/compile/load-results.ts';
import type { AdaptOutcome, LoadOutcome, PurgeResult, RuntimeControl } from '../../runtime/main/control.ts';

/** A fake runtime that records its calls. */
class FakeRuntime implements RuntimeControl {
	admin: AdminSettings | undefined = undefined;
	ready = true;
	generation = 1;
	readonly inputs: ConfigInput[] = [];
	readonly edits: ConfigEdit[] = [];
	readonly document = '{}';
	traffic = { requests: 0, serverErrors: 0 };
	editOutcome: EditRefused | undefined = undefined;
	readonly read: (readonly string[])[] = [];
	readonly counted: string[] = [];
	outcome: LoadOutcome = { result: 'applied', generation: 2, unchanged: false, diagnostics: [] };
	adapted: AdaptOutcome = { document: '{"sites":[]}', diagnostics: [] };
	text = '';
	broken = false;

	async load(input: ConfigInput): Promise<LoadOutcome> {
		this.inputs.push(input);
		return this.outcome;
	}

	countRollback(): void {}

	async edit(edit: ConfigEdit): Promise<LoadOutcome | EditRefused> {
		this.edits.push(edit);
		return this.editOutcome ?? this.outcome;
	}

	async preview(input: ConfigInput): Promise<LoadPreview> {
		this.inputs.push(input);
		return { result: 'unchanged', diagnostics: [], changes: [] };
	}

	async adapt(input: ConfigInput): Promise<AdaptOutcome> {
		this.inputs.push(input);
		return this.adapted;
	}

	async readConfig(path: readonly string[]) {
		if (this.broken) throw new Error('secret detail');
		this.read.push(path);
		return { json: path[0] === 'missing' ? 'null' : '{"a":1}', etag: `"/config/${path.join('/')} abc"` };
	}

	async renderMetrics() {
		return { text: Buffer.from(this.text), release: () => {} };
	}

	upstreams() {
		return [];
	}

	caches() {
		const events = { hit: 3, miss: 2, stale: 1, bypass: 0, revalidated: 0, collapsed: 0, store: 2 };
		const store = { bytes: 10, ceiling: 100, entries: 2, evictions: 1, purged: 0, own: false };
		return { stores: [store, { ...store, own: true }], events };
	}

	moduleEvents(): number {
		return 0;
	}

	readonly purged: unknown[] = [];

	async purge(selection: unknown): Promise<PurgeResult> {
		this.purged.push(selection);
		return { purged: 1 };
	}

	countAdminRequest(path: string, method: string, status: number): void {
		this.counted.push(`${method} ${path} ${status}`);
	}

	async stop(): Promise<void> {}

	kill(): void {}
}

interface Reply {
	status: number;
	headers: Map<string, string>;
	body: string;
	// biome-ignore lint/suspicious/noExplicitAny: any JSON value
	json: any;
}

/** Sends raw bytes and reads until the connection closes. */
function raw(where: { port: number } | { path: string }, text: string | Buffer): Promise<Reply> {
	return new Promise((resolve, reject) => {
		const socket = connect({ host: '127.0.0.1', ...where } as never);
		const chunks: Buffer[] = [];
		socket.on('connect', () => socket.write(text));
		socket.on('data', (chunk: Buffer) => chunks.push(chunk));
		socket.on('error', reject);
		socket.on('close', () => {
			const all = Buffer.concat(chunks).toString();
			const [head = '', ...rest] = all.split('\r\n\r\n');
			const [line = '', ...fields] = head.split('\r\n');
			const body = rest.join('\r\n\r\n');
			const headers = new Map(
				fields.map(field => {
					const colon = field.indexOf(':');
					return [field.slice(0, colon).toLowerCase(), field.slice(colon + 1).trim()];
				}),
			);
			let json: unknown;
			try {
				json = JSON.parse(body);
			} catch {}
			resolve({ status: Number(line.split(' ')[1]), headers, body, json });
		});
	});
}

interface Started {
	runtime: FakeRuntime;
	server: AdminServer;
	port: number;
	logged: string[];
	stops: number;
	ask(line: string, fields?: readonly string[], body?: string | Buffer): Promise<Reply>;
}

const open: AdminServer[] = [];

async function start(
	settings: AdminSettings = {},
	runtime = new FakeRuntime(),
	moreOptions: Partial<AdminOptions> = {},
): Promise<Started> {
	runtime.admin = { listen: '127.0.0.1:0', ...settings };
	const logged: string[] = [];
	const started = { runtime, logged, stops: 0 } as Started;
	const options: AdminOptions = {
		log: (level, message, fields) => logged.push(`${level} ${message} ${JSON.stringify(fields)}`),
		onStop: () => {
			started.stops += 1;
		},
		...moreOptions,
	};
	started.server = await startAdmin(runtime, options);
	open.push(started.server);
	started.port = Number(started.server.address.split(':').pop());
	started.ask = (line, fields = [], body = '') => {
		const own = fields.some(field => /^host:/i.test(field)) ? [] : [`Host: 127.0.0.1:${started.port}`];
		const length = body.length > 0 && !fields.some(field => /^(content-length|transfer-encoding):/i.test(field));
		const head = [`${line} HTTP/1.1`, ...own, 'Connection: close', ...fields];
		if (length) head.push(`Content-Length: ${Buffer.byteLength(body)}`);
		return raw({ port: started.port }, Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), Buffer.from(body)]));
	};
	return started;
}

async function closeAll(): Promise<void> {
	await Promise.all(open.splice(0).map(server => server.close()));
}

function isError(reply: Reply, status: number, code: string): void {
	assert.is(reply.status, status, reply.body);
	assert.is(reply.headers.get('content-type'), 'application/json');
	assert.is(reply.json.error.code, code);
	assert.type(reply.json.error.message, 'string');
	assert.ok(Array.isArray(reply.json.error.diagnostics));
}

const endpoints = suite('admin: endpoints');
endpoints.after.each(closeAll);

endpoints('GET /live returns 200, and HEAD returns no body', async () => {
	const { ask } = await start();
	const reply = await ask('GET /live');
	assert.is(reply.status, 200);
	assert.equal(reply.json, { live: true });
	assert.is(reply.headers.get('content-type'), 'application/json');
	assert.is(reply.headers.get('cache-control'), 'no-store');
	const head = await ask('HEAD /live');
	assert.is(head.status, 200);
	assert.is(head.body, '');
});

endpoints('GET /ready reports whether the runtime is ready', async () => {
	const { ask, runtime } = await start();
	assert.equal((await ask('GET /ready')).json, { ready: true });
	runtime.ready = false;
	isError(await ask('GET /ready'), 503, 'not_ready');
	assert.is((await ask('GET /live')).status, 200);
});

endpoints('GET /metrics returns text, which is empty if metrics are off', async () => {
	const { ask, runtime } = await start();
	const off = await ask('GET /metrics');
	assert.is(off.status, 200);
	assert.is(off.body, '');
	runtime.text = '# HELP a b\na 1\n';
	const on = await ask('GET /metrics');
	assert.is(on.body, '# HELP a b\na 1\n');
	assert.match(on.headers.get('content-type')!, 'text/plain; version=0.0.4');
	assert.is(on.headers.get('vary'), 'Accept');
});

endpoints('GET /config/ decodes each segment of the path', async () => {
	const { ask, runtime } = await start();
	for (const path of ['/config', '/config/', '/config/sites/0/', '/config/a%2Fb/%C3%A4', '/config/x//y']) {
		const reply = await ask(`GET ${path}`);
		assert.is(reply.status, 200);
		assert.equal(reply.json, { a: 1 });
	}
	assert.equal(runtime.read, [[], [], ['sites', '0'], ['a/b', 'ä'], ['x', '', 'y']]);
	const missing = await ask('GET /config/missing/key');
	assert.is(missing.status, 200);
	assert.is(missing.json, null);
	assert.is(missing.headers.get('etag'), '"/config/missing/key abc"');
});

endpoints('GET /config/ answers 304 if the Etag matches', async () => {
	const { ask } = await start();
	const etag = (await ask('GET /config/sites')).headers.get('etag')!;
	for (const field of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
		const reply = await ask('GET /config/sites', [`If-None-Match: ${field}`]);
		assert.is(reply.status, 304);
		assert.is(reply.body, '');
		assert.is(reply.headers.get('etag'), etag);
	}
	assert.is((await ask('GET /config/other', [`If-None-Match: ${etag}`])).status, 200);
});

endpoints('GET /config/ refuses a malformed path', async () => {
	const { ask } = await start();
	isError(await ask('GET /config/%ff'), 400, 'bad_request');
});

endpoints('writes to /config and /id become edits, and each refusal has its status', async () => {
	const { ask, runtime, logged } = await start();
	for (const method of ['POST', 'PUT', 'PATCH']) {
		assert.is((await ask(`${method} /config/sites/0`, ['If-Match: "/x y"'], '{"a":1}')).status, 200);
		assert.equal(runtime.edits.pop(), {
			method,
			id: undefined,
			path: ['sites', '0'],
			text: '{"a":1}',
			ifMatch: '"/x y"',
		});
	}
	assert.is((await ask('DELETE /id/my%2Fid/a', ['Content-Type: text/plain'])).status, 200);
	assert.equal(runtime.edits.pop(), { method: 'DELETE', id: 'my/id', path: ['a'], text: '', ifMatch: undefined });
	assert.match(logged.at(-1)!, /"result":"applied","from":1,"to":2/);
	isError(await ask('POST /config/a', ['Content-Type: text/plain'], '{}'), 415, 'unsupported_media_type');
	isError(await ask('PATCH /id/', [], '1'), 404, 'not_found');
	assert.is(runtime.edits.length, 0);
	for (const [reason, status, code] of [
		['missing', 404, 'path_not_found'],
		['exists', 409, 'already_exists'],
		['value', 400, 'bad_value'],
		['changed', 412, 'precondition_failed'],
	] as const) {
		runtime.editOutcome = { result: 'edit_refused', reason, message: 'No.', nearest: '/sites' };
		const reply = await ask('PATCH /config/sites/0', [], '1');
		isError(reply, status, code);
		assert.is(reply.json.error.nearest, reason === 'missing' ? '/sites' : undefined);
	}
});

endpoints('POST /load accepts JSON and both configuration languages, by media type', async () => {
	const { ask, runtime } = await start();
	const table: [field: string | undefined, format: string][] = [
		[undefined, 'json'],
		['application/json', 'json'],
		['Application/JSON; charset=utf-8', 'json'],
		['application/vnd.svc+json', 'json'],
		['text/compatfile', 'compatfile'],
		['text/compatfile; charset=utf-8', 'compatfile'],
		['text/caddyfile', 'compatfile'],
		['Text/Caddyfile; charset=utf-8', 'compatfile'],
		['text/configfile', 'configfile'],
	];
	for (const [type, format] of table) {
		const reply = await ask('POST /load', type === undefined ? [] : [`Content-Type: ${type}`], ':80 ä');
		assert.is(reply.status, 200);
		assert.equal(reply.json, { generation: 2, diagnostics: [] });
		assert.equal(runtime.inputs.pop(), { format, text: ':80 ä', name: '<request>', remote: true });
	}
});

endpoints('POST /load reports unchanged configurations and warnings', async () => {
	const { ask, runtime } = await start();
	const warning = { code: 'a/b', severity: 'warning', message: 'hm', text: 'hm' } as const;
	runtime.outcome = { result: 'applied', generation: 7, unchanged: true, diagnostics: [warning] };
	assert.equal((await ask('POST /load', [], '{}')).json, { generation: 7, unchanged: true, diagnostics: [warning] });
});

endpoints('POST /load refuses a configuration with errors and returns every diagnostic', async () => {
	const { ask, runtime } = await start();
	const error = {
		code: 'a/b',
		severity: 'error',
		message: 'Wrong.',
		file: 'F',
		line: 2,
		column: 3,
		text: 'x',
	} as const;
	runtime.outcome = { result: 'refused', diagnostics: [error, error] };
	const reply = await ask('POST /load', ['Content-Type: text/configfile'], 'x');
	isError(reply, 400, 'invalid_config');
	assert.is(reply.json.error.message, 'F:2:3: Wrong. (and 1 more)');
	assert.equal(reply.json.error.diagnostics, [error, error]);
});

endpoints('POST /load answers 409 with the reasons if a restart is needed', async () => {
	const { ask, runtime } = await start();
	const reasons = [{ code: 'listener_added', subject: ':8443', message: ':8443 is new.' }];
	runtime.outcome = { result: 'restart_required', reasons, diagnostics: [] };
	const reply = await ask('POST /load', [], '{}');
	isError(reply, 409, 'restart_required');
	assert.equal(reply.json.error.reasons, reasons);
});

endpoints(
	'a machine that is configured by its cluster refuses every change, and shows what a load would do',
	async () => {
		const handovers: HandoverRequest[] = [];
		const { ask, runtime } = await start({}, new FakeRuntime(), {
			isConfiguredByCluster: true,
			handOver: async request => {
				handovers.push(request);
				return { result: 'done', pid: 7, generation: 1, warnings: [] };
			},
		});
		for (const target of [
			'/load',
			'/load?force',
			'/load?handover',
			'/load?confirm=1m',
			'/load?handover=30s&confirm=1m',
		]) {
			const reply = await ask(`POST ${target}`, [], '{}');
			isError(reply, 409, 'configured_by_cluster');
			assert.match(reply.json.error.message, '`svc publish`');
		}
		for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
			for (const target of ['/config/sites', '/id/site'])
				isError(await ask(`${method} ${target}`, [], '{}'), 409, 'configured_by_cluster');
		}
		assert.equal(runtime.edits, []);
		assert.equal(runtime.inputs, []);
		assert.equal(handovers, []);
		assert.is((await ask('POST /load?dry_run', [], '{}')).status, 200);
		// A machine of a cluster may be upgraded, because the new process serves the same configuration.
		assert.is((await ask('POST /upgrade')).status, 200);
		assert.is(handovers.length, 1);
		assert.is(handovers[0]!.input, undefined);
	},
);

endpoints(
	'a process of a cluster that awaits its confirmation is confirmed with the publication that it serves by then',
	async () => {
		const { ask, runtime, server } = await start({}, new FakeRuntime(), { isConfiguredByCluster: true });
		let kept = 0;
		const load = {
			generation: runtime.generation,
			shouldSave: false,
			rollBack: async () => runtime.outcome,
			onKept: () => {
				kept++;
			},
		};
		server.awaitConfirmation(load, { within: 60_000, maxErrorRate: undefined });
		runtime.generation = 3;
		assert.is(server.unconfirmedGeneration, 3);
		assert.is(kept, 0);
		const reply = await ask('POST /load/confirm');
		assert.is(reply.status, 200);
		assert.equal(reply.json, { generation: 3, diagnostics: [] });
		assert.is(kept, 1);
		assert.is(server.unconfirmedGeneration, undefined);
	},
);

endpoints('POST /load answers 503 if the threads could not apply the configuration', async () => {
	const { ask, runtime } = await start();
	runtime.outcome = { result: 'failed', message: 'A thread died.' };
	isError(await ask('POST /load', [], '{}'), 503, 'load_failed');
});

endpoints('POST /load accepts a chunked body', async () => {
	const { ask, runtime } = await start();
	const reply = await ask('POST /load', ['Transfer-Encoding: chunked'], '2\r\n{"\r\n3\r\na":\r\n2\r\n1}\r\n0\r\n\r\n');
	assert.is(reply.status, 200);
	assert.is(runtime.inputs[0]!.text, '{"a":1}');
});

endpoints('POST /load refuses invalid UTF-8 and strips a byte order mark', async () => {
	const { ask, runtime } = await start();
	isError(await ask('POST /load', ['Content-Length: 2'], Buffer.from([0xff, 0xfe])), 400, 'bad_request');
	await ask('POST /load', ['Content-Length: 5'], Buffer.from('\ufeff{}'));
	assert.is(runtime.inputs[0]!.text, '{}');
	assert.is(runtime.inputs.length, 1);
});

endpoints('POST /load refuses oversized bodies, with and without Content-Length, and content codings', async () => {
	const { ask, runtime } = await start();
	isError(await ask('POST /load', ['Content-Length: 67108865', 'Expect: 100-continue']), 413, 'body_too_large');
	isError(await ask('POST /load', ['Content-Encoding: gzip'], 'xx'), 415, 'unsupported_media_type');
	assert.is(runtime.inputs.length, 0);
});

endpoints('POST /load stops reading an endless chunked body', async () => {
	const { port, runtime } = await start();
	const chunk = Buffer.concat([Buffer.from('100000\r\n'), Buffer.alloc(0x100000, 'x'), Buffer.from('\r\n')]);
	const status = await new Promise<string>((resolve, reject) => {
		const socket = connect(port, '127.0.0.1');
		let sent = 0;
		const more = (): void => {
			while (sent < 80) {
				sent += 1;
				if (!socket.write(chunk)) {
					socket.once('drain', more);
					return;
				}
			}
		};
		socket.write(`POST /load HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nTransfer-Encoding: chunked\r\n\r\n`);
		more();
		socket.once('data', data => {
			resolve(data.toString().split('\r\n')[0]!);
			socket.destroy();
		});
		socket.on('error', reject);
	});
	assert.is(status.split(' ')[1], '413');
	assert.is(runtime.inputs.length, 0);
});

endpoints('POST /adapt returns the document; the default input is a Configfile', async () => {
	const { ask, runtime } = await start();
	for (const [type, format] of [
		[undefined, 'configfile'],
		['text/compatfile', 'compatfile'],
		['text/caddyfile', 'compatfile'],
		['application/json', 'json'],
	]) {
		const reply = await ask('POST /adapt', type === undefined ? [] : [`Content-Type: ${type}`], 'x');
		assert.equal(reply.json, { document: { sites: [] }, diagnostics: [] });
		assert.is(runtime.inputs.pop()!.format, format);
	}
	const error = { code: 'a/b', severity: 'error', message: 'Wrong.', text: 'x' } as const;
	runtime.adapted = { document: undefined, diagnostics: [error] };
	const refused = await ask('POST /adapt', [], 'x');
	isError(refused, 400, 'invalid_config');
	assert.equal(refused.json.error.diagnostics, [error]);
});

endpoints('POST /stop answers, then stops the server once', async () => {
	const started = await start();
	const reply = await started.ask('POST /stop');
	assert.is(reply.status, 200);
	assert.equal(reply.json, { stopping: true });
	await started.ask('POST /stop');
	assert.is(started.stops, 1);
	const get = await started.ask('GET /stop');
	isError(get, 405, 'method_not_allowed');
	assert.is(get.headers.get('allow'), 'POST');
});

endpoints('unknown paths are 404, even if they resemble known ones', async () => {
	const { ask } = await start();
	for (const path of ['/', '/live/', '/LIVE', '/configs', '/load/x', '/ids/x', '//live', '/%6cive', '/__proto__']) {
		isError(await ask(`GET ${path}`), 404, 'not_found');
	}
});

endpoints('unknown methods are 405, even those named like object properties', async () => {
	const { ask } = await start();
	for (const method of ['OPTIONS', 'PATCH', 'constructor', 'BREW']) {
		isError(await ask(`${method} /live`), 405, 'method_not_allowed');
	}
});

endpoints('an unexpected exception is a 500 that reveals nothing', async () => {
	const { ask, runtime, logged } = await start();
	runtime.broken = true;
	const reply = await ask('GET /config/');
	isError(reply, 500, 'internal');
	assert.not.ok(reply.body.includes('secret detail'));
	assert.ok(logged.some(line => line.includes('secret detail')));
});

endpoints('requests are counted by endpoint; text from the client never becomes a label', async () => {
	const { ask, runtime } = await start();
	await ask('GET /live?x=1');
	await ask('GET /config/a/b');
	await ask('GET /nothing/here');
	await ask('BREW /live');
	await ask('POST /load', ['Host: evil.example'], '{}');
	assert.equal(runtime.counted, [
		'GET /live 200',
		'GET /config/ 200',
		'GET other 404',
		'OTHER /live 405',
		'POST /load 403',
	]);
});

endpoints('writes and refusals are logged, and reads are not', async () => {
	const { ask, logged } = await start();
	logged.length = 0;
	await ask('GET /live');
	assert.equal(logged, []);
	await ask('POST /load', [], '{}');
	assert.match(
		logged[0]!,
		/^info admin API request .*"method":"POST","path":"\/load","status":200,"remote":"127\.0\.0\.1"/,
	);
	await ask('GET /live', ['Host: evil.example']);
	assert.match(logged[1]!, /^warn .*403/);
});
endpoints.run();

const access = suite('admin: access');
access.after.each(closeAll);
const TOKEN = 's3cret-töken';

access('every endpoint requires the token', async () => {
	const { ask, runtime } = await start({ token: TOKEN });
	for (const line of [
		'GET /live',
		'GET /ready',
		'GET /metrics',
		'GET /config/',
		'POST /load',
		'POST /adapt',
		'POST /stop',
		'GET /x',
	]) {
		const reply = await ask(line);
		isError(reply, 401, 'unauthorized');
		assert.is(reply.headers.get('www-authenticate'), 'Bearer');
	}
	assert.is(runtime.inputs.length, 0);
});

access('only the exact token is accepted', async () => {
	const { ask } = await start({ token: TOKEN });
	for (const value of [`Bearer ${TOKEN}`, `bearer   ${TOKEN}`]) {
		assert.is((await ask('GET /live', [`Authorization: ${value}`])).status, 200);
	}
	const wrong = ['', 'Bearer', 'Bearer ', TOKEN, `Basic ${TOKEN}`, `Bearer ${TOKEN.slice(0, -1)}`, `Bearer ${TOKEN}x`];
	wrong.push(`Bearer ${TOKEN.toUpperCase()}`, `Bearer ${TOKEN}, Bearer ${TOKEN}`, `Bearer ${'x'.repeat(8000)}`);
	for (const value of wrong) isError(await ask('GET /live', [`Authorization: ${value}`]), 401, 'unauthorized');
	isError(await ask(`GET /live?access_token=${encodeURIComponent(TOKEN)}`), 401, 'unauthorized');
	const twice = [`Authorization: Bearer ${TOKEN}`, 'Authorization: Bearer x'];
	isError(await ask('GET /live', twice), 401, 'unauthorized');
});

access('repeated refusals of a client get the same answer, do not fill the log, and lock out nobody', async () => {
	const { ask, logged } = await start({ token: 'sesame' });
	logged.length = 0;
	for (let asked = 0; asked < 60; asked++) {
		const reply = await ask('GET /live', asked % 2 === 0 ? [] : [`Authorization: Bearer guess${asked}`]);
		isError(reply, 401, 'unauthorized');
		assert.is(reply.headers.get('www-authenticate'), 'Bearer');
	}
	assert.ok(logged.length >= 20 && logged.length < 50, String(logged.length));
	assert.is((await ask('GET /live', ['Authorization: Bearer sesame'])).status, 200);
});

access('refusals are counted per client, and one is forgiven each second', () => {
	const rate = new RefusalRate();
	for (let count = 0; count < 20; count++) assert.not.ok(rate.countRefusal('a', 0));
	assert.ok(rate.countRefusal('a', 0));
	assert.not.ok(rate.countRefusal('b', 0));
	assert.not.ok(rate.countRefusal('a', 1000));
	assert.ok(rate.countRefusal('a', 1000));
	for (let client = 0; client < 5000; client++) rate.countRefusal(`client ${client}`, 1000);
	assert.not.ok(rate.countRefusal('a', 1000), 'the oldest clients are dropped');
});

access('a token changed by a load takes effect at once', async () => {
	const { ask, runtime } = await start({ token: 'one' });
	runtime.admin = { token: 'two' };
	isError(await ask('GET /live', ['Authorization: Bearer one']), 401, 'unauthorized');
	assert.is((await ask('GET /live', ['Authorization: Bearer two'])).status, 200);
});

access('a missing token is logged as a warning', async () => {
	assert.ok((await start()).logged.some(line => line.startsWith('warn') && line.includes('no token')));
	const { ask, runtime, logged } = await start({ token: 'x' });
	assert.not.ok(logged.some(line => line.startsWith('warn')));
	runtime.admin = {};
	await ask('GET /live');
	assert.ok(
		logged.some(line => line.startsWith('warn') && line.includes('no token')),
		'a load that removes the token',
	);
});

access("a host name that is not the server's is refused (DNS rebinding)", async () => {
	const { ask, port } = await start({ origins: ['https://ops.example.com'] });
	for (const host of [
		'evil.example',
		`evil.example:${port}`,
		'127.0.0.1.evil.example',
		'localhost.evil.example',
		'10.0.0.1',
		'[::2]',
	]) {
		isError(await ask('GET /live', [`Host: ${host}`]), 403, 'host_not_allowed');
	}
	for (const host of [
		'localhost',
		`LOCALHOST:${port}`,
		'127.0.0.1',
		`127.0.0.1:${port}`,
		'127.9.9.9',
		'[::1]:99',
		'ops.example.com',
	]) {
		assert.is((await ask('GET /live', [`Host: ${host}`])).status, 200, host);
	}
	assert.is((await raw({ port }, 'GET /live HTTP/1.0\r\n\r\n')).status, 200);
});

access('the host name is checked on loopback even with a token', async () => {
	const { ask } = await start({ token: 'x' });
	isError(await ask('GET /live', ['Host: evil.example', 'Authorization: Bearer x']), 403, 'host_not_allowed');
});

access('a foreign origin is refused whatever credentials it sends', async () => {
	const { ask, runtime, port } = await start();
	for (const origin of [
		'https://evil.example',
		'null',
		`http://evil.example:${port}`,
		'http://127.0.0.1',
		'http://localhost:1',
		'',
		'x',
	]) {
		isError(
			await ask('POST /load', [`Origin: ${origin}`, 'Content-Type: application/json'], '{}'),
			403,
			'origin_not_allowed',
		);
		isError(await ask('POST /stop', [`Origin: ${origin}`]), 403, 'origin_not_allowed');
	}
	assert.is(runtime.inputs.length, 0);
	assert.is((await ask('POST /load', [`Origin: http://127.0.0.1:${port}`], '{}')).status, 200);
});

access('a browser request without an Origin is refused by its Sec-Fetch-Site', async () => {
	const { ask } = await start();
	for (const site of ['cross-site', 'same-site']) {
		isError(await ask('POST /stop', [`Sec-Fetch-Site: ${site}`]), 403, 'origin_not_allowed');
	}
	assert.is((await ask('GET /live', ['Sec-Fetch-Site: none'])).status, 200);
});

access('requests that an HTML form could send are refused', async () => {
	const started = await start();
	for (const type of [
		'application/x-www-form-urlencoded',
		'multipart/form-data; boundary=x',
		'text/plain',
		'TEXT/PLAIN;charset=utf-8',
	]) {
		for (const path of ['/load', '/adapt', '/stop']) {
			isError(await started.ask(`POST ${path}`, [`Content-Type: ${type}`], '{}'), 415, 'unsupported_media_type');
		}
	}
	isError(
		await started.ask('POST /load', ['Content-Type: application/json', 'Content-Type: text/plain'], '{}'),
		400,
		'bad_request',
	);
	assert.is(started.runtime.inputs.length, 0);
	assert.is(started.stops, 0);
});

access('configured origins may send requests and read responses, others may not', async () => {
	const origins = ['https://ops.example.com', 'plain.example:8080', '//any.example'];
	const { ask, port } = await start({ origins });
	for (const origin of [
		'https://ops.example.com',
		'http://plain.example:8080',
		'https://plain.example:8080',
		'http://any.example',
	]) {
		const reply = await ask('GET /live', [`Origin: ${origin}`]);
		assert.is(reply.status, 200, origin);
		assert.is(reply.headers.get('access-control-allow-origin'), origin);
		assert.is(reply.headers.get('vary'), 'Origin');
	}
	const others = ['http://ops.example.com', 'https://ops.example.com:8443', 'https://ops.example.com.evil.example'];
	others.push('https://plain.example', `http://127.0.0.1:${port}`, 'https://x@ops.example.com');
	for (const origin of others) {
		const reply = await ask('GET /live', [`Origin: ${origin}`]);
		isError(reply, 403, 'origin_not_allowed');
		assert.not.ok(reply.headers.has('access-control-allow-origin'));
	}
	assert.is((await ask('GET /live')).status, 200);
});

access('a request without an Origin is refused if enforce_origin is set', async () => {
	const { ask } = await start({ origins: ['https://ops.example.com'], enforce_origin: true });
	isError(await ask('GET /live'), 403, 'origin_not_allowed');
	assert.is((await ask('GET /live', ['Origin: https://ops.example.com'])).status, 200);
});

access('a preflight from a configured origin is answered, and others are refused', async () => {
	const { ask } = await start({ origins: ['https://ops.example.com'], token: 'x' });
	const preflight = ['Access-Control-Request-Method: POST', 'Access-Control-Request-Headers: authorization'];
	const reply = await ask('OPTIONS /load', ['Origin: https://ops.example.com', ...preflight]);
	assert.is(reply.status, 204);
	assert.is(reply.headers.get('access-control-allow-methods'), 'POST');
	isError(await ask('OPTIONS /load', ['Origin: https://evil.example', ...preflight]), 401, 'unauthorized');
	isError(await ask('OPTIONS /load', preflight), 401, 'unauthorized');
	isError(await ask('OPTIONS /load', ['Origin: https://ops.example.com']), 401, 'unauthorized');
	assert.not.ok((await start()).runtime.counted.length);
});

access('the token is checked before the origin', async () => {
	const { ask } = await start({ token: 'x' });
	isError(await ask('GET /live', ['Origin: https://evil.example']), 401, 'unauthorized');
	isError(
		await ask('GET /live', ['Origin: https://evil.example', 'Authorization: Bearer x']),
		403,
		'origin_not_allowed',
	);
});

access('an address reachable from other machines is refused without a token', () => {
	const address = { kind: 'tcp', host: '', port: 2019, text: ':2019' } as const;
	const from = (remoteAddress: string, settings: AdminSettings, authorization?: string): number => {
		const received = { method: 'GET', path: '/live', query: undefined, authority: 'localhost' };
		const headers = new HeaderList(authorization === undefined ? [] : ['Authorization', authorization]);
		const connection = { remoteAddress, remotePort: 1, localAddress: '10.0.0.1', localPort: 2019, tls: undefined };
		const request = new Request(received, 'http', 'localhost', headers, null);
		const x = new Exchange('HTTP/1.1', connection, received, request, { sendInterim() {}, watch() {} }, 0);
		try {
			new AdminAccess(settings, address).check(x);
			return 200;
		} catch (error) {
			return (error as { status: number }).status;
		}
	};
	for (const own of ['127.0.0.1', '127.1.2.3', '::1', '::ffff:127.0.0.1']) assert.is(from(own, {}), 200);
	for (const other of [
		'10.0.0.2',
		'::ffff:10.0.0.2',
		'fe80::1',
		'',
		'::',
		'0.0.0.0',
		'1127.0.0.1',
		'127.0.0.1.example',
	]) {
		assert.is(from(other, {}), 403);
		assert.is(from(other, { token: 'x' }), 401);
		assert.is(from(other, { token: 'x' }, 'Bearer x'), 200);
	}
});
access.run();

const listening = suite('admin: listening');
listening.after.each(closeAll);

listening('`off`, or no settings at all, opens no listener', async () => {
	for (const admin of [undefined, { off: true }]) {
		const runtime = new FakeRuntime();
		runtime.admin = admin;
		const server = await startAdmin(runtime, { log: () => {}, onStop: () => {} });
		assert.is(server.address, '');
		await server.close();
	}
});

listening('an occupied port causes an error that names the address', async () => {
	const occupyingServer: Server = createServer().listen(0, '127.0.0.1');
	await new Promise(resolve => occupyingServer.once('listening', resolve));
	const { port } = occupyingServer.address() as { port: number };
	try {
		await start({ listen: `127.0.0.1:${port}` });
		assert.unreachable('the port was bound twice');
	} catch (error) {
		assert.instance(error, AdminBindError);
		assert.is((error as AdminBindError).message, `failed to bind admin API on 127.0.0.1:${port}`);
		assert.is((error as AdminBindError).code, 'EADDRINUSE');
	} finally {
		await new Promise(resolve => occupyingServer.close(resolve));
	}
});

listening('idle connections are closed to make room for others', async () => {
	const { port, ask } = await start();
	const openSockets: Socket[] = [];
	try {
		for (let i = 0; i < 300; i++) {
			const socket = connect(port, '127.0.0.1');
			socket.on('error', () => {});
			socket.write(`GET /live HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
			const [answer] = await once(socket, 'data');
			assert.match(String(answer), /^HTTP\/1\.1 200 /);
			openSockets.push(socket.resume());
		}
		assert.is((await ask('GET /live')).status, 200);
	} finally {
		for (const socket of openSockets) socket.destroy();
	}
});

listening('the caller’s settings apply if the document has none', async () => {
	const runtime = new FakeRuntime();
	const settings = { listen: 'localhost:0' };
	const server = await startAdmin(runtime, { settings, log: () => {}, onStop: () => {} });
	open.push(server);
	assert.match(server.address, /^127\.0\.0\.1:\d+$/);
	const reply = await raw({ port: Number(server.address.split(':')[1]) }, 'GET /live HTTP/1.0\r\n\r\n');
	assert.is(reply.status, 200);
});

listening('a Unix socket accepts any host name, and is removed when the server closes', async () => {
	const folder = mkdtempSync(join(tmpdir(), 'svc-admin-'));
	const path = join(folder, 'admin.sock');
	try {
		// Leaves a stale socket file behind, as a killed process does.
		const stale = createServer().listen(path);
		await new Promise(resolve => stale.once('listening', resolve));
		const { renameSync } = await import('node:fs');
		renameSync(path, `${path}.kept`);
		await new Promise(resolve => stale.close(resolve));
		renameSync(`${path}.kept`, path);

		const { server, logged } = await start({ listen: `unix/${path}` });
		assert.is(statSync(path).mode & 0o777, 0o600);
		assert.ok(logged.some(line => line.includes('no token: it admits every process that may open its socket')));
		const reply = await raw({ path }, 'POST /stop HTTP/1.1\r\nHost: svc\r\nConnection: close\r\n\r\n');
		assert.is(reply.status, 200);
		assert.ok(logged.some(line => line.includes('unix socket')));
		try {
			await start({ listen: `unix/${path}` });
			assert.unreachable('a socket in use was taken over');
		} catch (error) {
			assert.is((error as Error).message, `failed to bind admin API on unix/${path}`);
		}
		await server.close();
		assert.not.ok(existsSync(path));
		// A regular file refuses connections just like a stale socket, but must not be deleted.
		writeFileSync(path, 'mine');
		try {
			await start({ listen: `unix/${path}` });
			assert.unreachable('a regular file was replaced by a socket');
		} catch (error) {
			assert.is((error as Error).message, `failed to bind admin API on unix/${path}`);
		}
		assert.is(statSync(path).size, 4);
	} finally {
		rmSync(folder, { recursive: true, force: true });
	}
});

listening('valid addresses are parsed, and invalid ones refused', () => {
	const tcp = (text: string): string | undefined => {
		const address = parseAdminAddress(text);
		if (address?.kind === 'tcp') return `${address.host} ${address.port}`;
		if (address?.kind === 'fd') return `descriptor ${address.descriptor}`;
		return address && `${address.path} ${address.mode.toString(8)}`;
	};
	assert.is(tcp('127.0.0.1:2019'), '127.0.0.1 2019');
	assert.is(tcp('tcp/LOCALHOST:1'), '127.0.0.1 1');
	assert.is(tcp(':2019'), ' 2019');
	assert.is(tcp('[::1]:2019'), '::1 2019');
	assert.is(tcp('unix//run/x.sock'), '/run/x.sock 600');
	assert.is(tcp('unix//run/x.sock|0660'), '/run/x.sock 660');
	assert.is(tcp('fd/3'), 'descriptor 3');
	for (const text of [
		'',
		'2019',
		'a:',
		'a:65536',
		'a:b',
		'::1:2019',
		'unix/x',
		'unix//x|9',
		'http://a:1',
		'a:1/x',
		'fd/x',
	]) {
		assert.is(tcp(text), undefined, text);
	}
});

listening('close ends idle connections and is idempotent', async () => {
	const { server, port } = await start();
	const socket = connect(port, '127.0.0.1');
	await new Promise(resolve => socket.once('connect', resolve));
	const whenGone = new Promise(resolve => socket.once('close', resolve));
	socket.on('error', () => {});
	socket.resume();
	const first = server.close();
	await Promise.all([first, server.close(), whenGone]);
});
listening.run();
