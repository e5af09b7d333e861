/**
 * Changes to a running server through the Admin API: edits in place, tentative loads, which are rolled back unless they are
 * confirmed, and saved changes, which survive a restart.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, type ServerProcess, SVC, serve, temporaryFolder, until, waitForNothing } from '../harness.ts';

const TOKEN = 'open-sesame';

interface Answer {
	readonly status: number;
	readonly etag: string | null;
	// biome-ignore lint/suspicious/noExplicitAny: any JSON value
	readonly json: any;
}

/** A server with one site and the Admin API, running in its own folders. */
class EditedServer {
	readonly folder = temporaryFolder();
	readonly file = path.join(this.folder, 'Configfile');
	readonly state = path.join(this.folder, 'state');
	port = 0;
	admin = 0;
	server: ServerProcess | undefined;

	async start(more: readonly string[] = []): Promise<void> {
		if (this.port === 0) {
			[this.port, this.admin] = (await freePorts(2)) as [number, number];
			writeFileSync(this.file, this.text('one'));
		}
		const env = { XDG_STATE_HOME: this.state, SVC_ADMIN_TOKEN: TOKEN };
		this.server = await serve([this.file, ...more], this.port, { env });
	}

	text(body: string): string {
		return `{
	admin 127.0.0.1:${this.admin} ${TOKEN}
	threads 1
}
http://127.0.0.1:${this.port} {
	request_header Authorization "Bearer hidden"
	respond "${body}"
}
`;
	}

	async ask(line: string, value?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
		const [method, target] = line.split(' ') as [string, string];
		const isText = typeof value === 'string' && target.startsWith('/load');
		const response = await fetch(`http://127.0.0.1:${this.admin}${target}`, {
			method,
			headers: {
				Authorization: `Bearer ${TOKEN}`,
				...(value !== undefined && { 'Content-Type': isText ? 'text/configfile' : 'application/json' }),
				...headers,
			},
			...(value !== undefined && { body: isText ? value : JSON.stringify(value) }),
		});
		const body = await response.text();
		return {
			status: response.status,
			etag: response.headers.get('etag'),
			json: body === '' ? undefined : JSON.parse(body),
		};
	}

	async body(): Promise<string> {
		return (await fetch(`http://127.0.0.1:${this.port}/`)).text();
	}

	svc(...args: string[]): { status: number | null; text: string } {
		const env = { ...process.env, SVC_ADMIN_TOKEN: TOKEN };
		const result = spawnSync(SVC, args, { cwd: this.folder, env, encoding: 'utf8' });
		return { status: result.status, text: result.stdout + result.stderr };
	}
}

/** The path of the step that answers requests. */
const STEP_PATH = '/config/sites/0/pipeline/1';

const changes = suite('changes in place');
const one = new EditedServer();
changes.before(() => one.start());
changes.after(async () => {
	await one.server!.stop();
});

changes('each method changes one value, and the next request sees the change', async () => {
	assert.is(await one.body(), 'one');
	assert.is((await one.ask(`PATCH ${STEP_PATH}/body`, 'a half')).status, 200);
	assert.is(await one.body(), 'a half');
	assert.is((await one.ask(`PATCH ${STEP_PATH}`, { handler: 'respond', body: 'two' })).status, 200);
	assert.is(await one.body(), 'two');
	assert.is((await one.ask(`PUT ${STEP_PATH}`, { handler: 'respond', body: 'before' })).status, 200);
	assert.is(await one.body(), 'before');
	assert.is((await one.ask(`DELETE ${STEP_PATH}`)).status, 200);
	assert.is(await one.body(), 'two');
	assert.is(
		(await one.ask('POST /config/sites/0/pipeline', { handler: 'respond', body: 'never reached' })).status,
		200,
	);
	assert.is((await one.ask('GET /config/sites/0/pipeline/2/body')).json, 'never reached');
	assert.is(
		(await one.ask('POST /config/sites/0/pipeline/...', [{ handler: 'respond' }, { handler: 'respond' }])).status,
		200,
	);
	assert.is((await one.ask('GET /config/sites/0/pipeline')).json.length, 5);
	assert.is((await one.ask('GET /config/nothing/there')).json, null);
});

changes('an invalid edit is refused, and the old configuration keeps serving', async () => {
	const missing = await one.ask('PATCH /config/sites/0/errors/7', {});
	assert.is(missing.status, 404);
	assert.is(missing.json.error.code, 'path_not_found');
	assert.is(missing.json.error.nearest, '/sites/0');
	assert.is((await one.ask('PUT /config/sites/0/pipeline/99', {})).json.error.nearest, '/sites/0/pipeline');
	assert.is((await one.ask('PUT /config/settings/threads', 2)).status, 409);
	const restart = await one.ask('PUT /config/settings/trusted_proxies', ['10.0.0.0/8']);
	assert.is(restart.status, 409);
	assert.is(restart.json.error.code, 'restart_required');
	const invalid = await one.ask('PATCH /config/sites/0/pipeline/1/handler', 'static_response');
	assert.is(invalid.status, 400);
	assert.is(invalid.json.error.code, 'invalid_config');
	for (const line of ['POST /load', 'POST /config/']) {
		const foreign = await one.ask(line, { apps: { http: {} } });
		assert.is(foreign.status, 400);
		assert.match(foreign.json.error.message, 'svc expects the keys');
	}
	assert.is(await one.body(), 'two');
});

changes('a conditional write succeeds only if nothing has changed since it was read', async () => {
	const { etag } = await one.ask(`GET ${STEP_PATH}`);
	assert.ok(etag?.startsWith('"/sites/0/pipeline/1 '));
	const again = { handler: 'respond', body: 'two', status: 201 };
	assert.is((await one.ask(`PATCH ${STEP_PATH}`, again, { 'If-Match': etag! })).status, 200);
	const stale = await one.ask(`PATCH ${STEP_PATH}`, again, { 'If-Match': etag! });
	assert.is(stale.status, 412);
	assert.is(stale.json.error.code, 'precondition_failed');
	const other = (await one.ask('GET /config/sites')).etag!;
	assert.is(
		(await one.ask(`PATCH ${STEP_PATH}`, again, { 'If-Match': other })).status,
		412,
		'an Etag of another path must not match',
	);
	assert.is((await one.ask(`PATCH ${STEP_PATH}`, again, { 'If-Match': '*' })).status, 200);
	assert.is(
		(await one.ask('POST /config/routes', {}, { 'If-Match': '*' })).status,
		412,
		'If-Match needs an existing value',
	);
});

changes(
	'secrets are redacted when read, kept when written back redacted, and cannot be created as redacted values',
	async () => {
		const { json } = await one.ask('GET /config/sites/0/pipeline/0');
		assert.equal(json.request.set, [{ name: 'Authorization', value: '[redacted]' }]);
		assert.is((await one.ask('GET /config/settings/admin')).json.token, '[redacted]');
		json.request.set.push({ name: 'X-More', value: 'yes' });
		assert.is((await one.ask('PATCH /config/sites/0/pipeline/0', json)).status, 200);
		assert.is((await one.ask('PATCH /config/settings/admin/token', TOKEN)).status, 200, 'the token is unchanged');
		const invented = await one.ask('POST /config/sites/0/pipeline', json);
		assert.is(invented.status, 400);
		assert.match(invented.json.error.message, /\[redacted\]/);
		const whole = (await one.ask('GET /config/')).json;
		assert.is((await one.ask('POST /config/', whole)).status, 400);
		assert.is((await one.ask('POST /load', whole)).status, 400);
		const text = one.text('x').replace(TOKEN, '[redacted]');
		assert.is((await one.ask('POST /load', text)).json.error.code, 'invalid_config', 'the same holds for a Configfile');
		assert.not.match(one.server!.output(), /hidden|sesame/);
	},
);

changes('values compared with a credential are also redacted, and kept when written back redacted', async () => {
	const step = {
		handler: 'respond',
		status: 200,
		body: 'known',
		when: {
			type: 'any',
			of: [
				{ type: 'header_regexp', field: 'X-Api-Key', pattern: '^hidden-1$' },
				{ type: 'expression', expression: "path('/in') && {http.request.header.X-Token} == 'hidden-2'" },
			],
		},
	};
	const before = (await one.ask('GET /config/sites/0/pipeline')).json;
	assert.is((await one.ask('PUT /config/sites/0/pipeline/0', step)).status, 200);
	const { json } = await one.ask('GET /config/sites/0/pipeline/0');
	assert.equal(json.when.of, [
		{ type: 'header_regexp', field: 'X-Api-Key', pattern: '[redacted]' },
		{ type: 'expression', expression: "path('/in') && {http.request.header.X-Token} == '[redacted]'" },
	]);
	assert.is((await one.ask('PATCH /config/sites/0/pipeline/0', { ...json, body: 'still known' })).status, 200);
	const [, { expression }] = json.when.of;
	assert.is((await one.ask('PATCH /config/sites/0/pipeline/0/when/of/1/expression', expression)).status, 200);
	const body = async (target: string, headers: Record<string, string>): Promise<string> =>
		(await fetch(`http://127.0.0.1:${one.port}${target}`, { headers })).text();
	assert.is(await body('/', { 'X-Api-Key': 'hidden-1' }), 'still known');
	assert.is(await body('/in', { 'X-Token': 'hidden-2' }), 'still known');
	assert.is.not(await body('/in', { 'X-Token': '[redacted]' }), 'still known');
	const changed = { ...json.when.of[1], expression: expression.replace('/in', '/out') };
	const refused = await one.ask('PATCH /config/sites/0/pipeline/0/when/of/1', changed);
	assert.is(refused.status, 400);
	assert.match(refused.json.error.message, /\[redacted\]/);
	assert.is((await one.ask('DELETE /config/sites/0/pipeline/0')).status, 200);
	assert.equal((await one.ask('GET /config/sites/0/pipeline')).json, before);
	assert.not.match(one.server!.output(), /hidden/);
});

changes('objects can be addressed by their @id', async () => {
	const step = { '@id': 'my/answer', handler: 'respond', body: 'by id' };
	assert.is((await one.ask(`PATCH ${STEP_PATH}`, step)).status, 200);
	assert.is((await one.ask('GET /id/my%2Fanswer/body')).json, 'by id');
	assert.is((await one.ask('PATCH /id/my%2Fanswer', { ...step, body: 'by its id' })).status, 200);
	assert.is(await one.body(), 'by its id');
	// Any object of the document may have an @id, not only steps and sites.
	const field = { '@id': 'one field', name: 'X-Named', value: 'here' };
	assert.is((await one.ask('POST /config/sites/0/pipeline/0/request/set', field)).status, 200);
	assert.is((await one.ask('PATCH /id/one%20field/value', 'there')).status, 200);
	assert.equal((await one.ask('GET /id/one%20field')).json, { ...field, value: 'there' });
	assert.is((await one.ask('GET /id/nobody')).json, null);
	assert.is((await one.ask('DELETE /id/nobody')).status, 404);
});

changes('a dry run reports what a load would do, without applying it', async () => {
	const swap = await one.ask('POST /load?dry_run', one.text('three'));
	assert.is(swap.status, 200);
	assert.is(swap.json.result, 'swap');
	assert.ok(swap.json.changes.some((change: { to?: unknown }) => JSON.stringify(change.to)?.includes('three')));
	assert.not.match(JSON.stringify(swap.json.changes), /hidden|sesame/);
	const refused = await one.ask('POST /load?dry_run=true', 'respond');
	assert.is(refused.json.result, 'refused');
	const restart = await one.ask('POST /load?dry_run', one.text('x').replace('threads 1', 'metrics'));
	assert.is(restart.json.result, 'restart_required');
	assert.is(restart.json.reasons[0].subject, 'metrics');
	assert.is(await one.body(), 'by its id');
	assert.is((await one.ask('POST /load?dry_run=perhaps', 'x')).status, 400);
	// A dry run reports the requests whose answers would differ, and reveals no secret of either configuration.
	const { diff } = swap.json;
	assert.is(diff.same, false);
	assert.equal(diff.changes[0].aspects[0], { name: 'body', before: '"by its id"', after: '"three"' });
	const secrets = one
		.text('one')
		.replace('Bearer hidden', 'Bearer other')
		.replace('respond "one"', 'reverse_proxy localhost:1');
	const told = await one.ask('POST /load?dry_run', secrets);
	assert.is(told.json.diff.same, false);
	assert.not.match(JSON.stringify(told.json), /hidden|other/);
});

changes('concurrent writes are all kept', async () => {
	assert.is((await one.ask('POST /load', one.text('many'))).status, 200);
	const before = (await one.ask('GET /config/sites/0/pipeline')).json.length;
	const added = await Promise.all(
		Array.from({ length: 20 }, (_, at) =>
			one.ask('POST /config/sites/0/pipeline', { handler: 'respond', body: `client ${at}` }),
		),
	);
	assert.ok(added.every(({ status }) => status === 200));
	assert.is((await one.ask('GET /config/sites/0/pipeline')).json.length, before + 20);
});

const tentative = suite('tentative loads');
const two = new EditedServer();
tentative.before(() => two.start());
tentative.after(async () => {
	await two.server!.stop();
});

/** Waits until `holds` resolves to true. If that takes too long, the error message shows the source text of `holds`. */
const eventually = (holds: () => Promise<boolean>): Promise<void> => until(String(holds), holds);

tentative('an unconfirmed load is rolled back', async () => {
	const answer = await two.ask('POST /load?confirm=1s', two.text('tentative'));
	assert.is(answer.status, 200);
	assert.ok(answer.json.confirm.until > Date.now());
	assert.is(await two.body(), 'tentative');
	const meanwhile = await two.ask('PATCH /config/settings/debug', true);
	assert.is(meanwhile.json.error.code, 'confirmation_pending');
	await eventually(async () => (await two.body()) === 'one');
	await eventually(async () => two.server!.output().includes('configuration rolled back'));
	assert.is((await two.ask('POST /load/confirm')).status, 404);
});

tentative('a confirmed load stays, and a reverted one is rolled back at once', async () => {
	assert.is((await two.ask('POST /load?confirm=1s', two.text('kept'))).status, 200);
	const file = path.join(two.state, 'svc', 'autosave.json');
	const saved = (): string => (existsSync(file) ? readFileSync(file, 'utf8') : '');
	assert.not.match(saved(), /"kept"/, 'an unconfirmed load is not saved');
	assert.is((await two.ask('POST /load/confirm')).status, 200);
	await eventually(async () => /"kept"/.test(saved()));
	assert.is((await two.ask('POST /load?confirm=1m', two.text('unwanted'))).status, 200);
	assert.is(await two.body(), 'unwanted');
	assert.not.match(saved(), /unwanted/);
	assert.is((await two.ask('POST /load/revert')).status, 200);
	assert.is(await two.body(), 'kept');
	await waitForNothing(1100);
	assert.is(await two.body(), 'kept');
});

tentative('a load with too many error responses is rolled back at once', async () => {
	const broken = two.text('broken').replace('respond "broken"', 'error "broken" 500');
	assert.is((await two.ask('POST /load?confirm=1m&max_error_rate=0.5', broken)).status, 200);
	for (let count = 0; count < 25; count++) await two.body();
	await eventually(async () => (await two.body()) === 'kept');
	assert.is((await two.ask('POST /load?max_error_rate=0.5', broken)).status, 400);
	assert.is((await two.ask('POST /load?confirm=soon', broken)).status, 400);
	assert.is((await two.ask('POST /load?confirm=1m&max_error_rate=2', broken)).status, 400);
	assert.is(await two.body(), 'kept');
});

tentative('svc reload can load tentatively, accept and revert', async () => {
	writeFileSync(two.file, two.text('from the command line'));
	const address = ['--address', `127.0.0.1:${two.admin}`];
	const loaded = two.svc('reload', '--confirm', '30s', ...address);
	assert.is(loaded.status, 0, loaded.text);
	assert.match(loaded.text, /Rolling back in (30|29) s\. To keep this configuration, run: svc reload --accept/);
	assert.match(two.svc('reload', '--accept', ...address).text, /^Generation \d+ is confirmed\.\n$/);
	assert.is(await two.body(), 'from the command line');
	const again = ['reload', '-c', two.file];
	assert.match(two.svc(...again).text, 'has not changed');
	assert.match(two.svc(...again, '--force').text, /is now being served \(generation \d+\)\.\n/);
	assert.is((await two.ask('POST /load?force&dry_run', two.text('from the command line'))).json.result, 'swap');
	assert.is(two.svc('reload', '--accept', '--force').status, 1);
	// Repeats the test with the Admin API's address taken from the file instead of a flag.
	writeFileSync(two.file, two.text('once more'));
	assert.is(two.svc('reload', '--confirm', '30s', '-c', two.file).status, 0);
	assert.match(two.svc('reload', '--revert', '-c', two.file).text, /^Rolled back to the previous configuration/);
	assert.is(await two.body(), 'from the command line');
	const nothing = two.svc('reload', '--revert', ...address);
	assert.is(nothing.status, 1);
	assert.match(nothing.text, /The configuration was not rolled back: No load is pending/);
	assert.is(two.svc('reload', '--accept', '--revert').status, 1);
	assert.is(two.svc('reload', '--max-error-rate', '0.1').status, 1);
});

const resumed = suite('saved changes');

resumed('changes through the API are saved, and --resume serves them again', async () => {
	const three = new EditedServer();
	await three.start(['--resume']);
	assert.is(await three.body(), 'one', 'nothing is saved yet');
	const { json } = await three.ask(`GET ${STEP_PATH}`);
	assert.is((await three.ask(`PATCH ${STEP_PATH}`, { ...json, body: 'saved' })).status, 200);
	await three.server!.stop();
	const saved = path.join(three.state, 'svc', 'autosave.json');
	assert.is(statSync(saved).mode & 0o777, 0o600);
	assert.is(JSON.parse(readFileSync(saved, 'utf8')).settings.admin.token, TOKEN);
	await three.start(['--resume']);
	assert.is(await three.body(), 'saved');
	const off = await three.ask('POST /config/settings/persist_config', false);
	assert.is(off.status, 200, JSON.stringify(off.json));
	assert.is((await three.ask(`PATCH ${STEP_PATH}`, { ...json, body: 'not saved' })).status, 200);
	await three.server!.stop();
	assert.not.match(readFileSync(saved, 'utf8'), /not saved/);
	await three.start();
	assert.is(await three.body(), 'one', 'without --resume, the file is served');
	await three.server!.stop();
	const env = { ...process.env, XDG_STATE_HOME: three.state };
	const twice = ['run', '--resume', three.file, '-c', three.file];
	const { status, stderr } = spawnSync(SVC, twice, { env, encoding: 'utf8', timeout: 10_000 });
	assert.is(status, 1, 'naming two files is an error even if --resume would ignore both');
	assert.match(stderr, 'name a configuration; give only one of them.');
});

resumed('a change that cannot be saved is applied, and the response and the log say so', async () => {
	const three = new EditedServer();
	mkdirSync(three.state, { recursive: true });
	const inTheWay = path.join(three.state, 'svc');
	writeFileSync(inTheWay, 'a file where the folder should be');
	await three.start();
	const { json } = await three.ask(`GET ${STEP_PATH}`);
	const patched = await three.ask(`PATCH ${STEP_PATH}`, { ...json, body: 'not saved' });
	assert.is(patched.status, 200);
	assert.equal(
		patched.json.diagnostics.map(({ code, severity }: { code: string; severity: string }) => [code, severity]),
		[['admin/not-saved', 'warning']],
	);
	const reason = '`autosave.json` in the store cannot be written: a part of its path is not a folder.';
	const message = `The configuration was applied, but could not be saved: ${reason}`;
	assert.is(patched.json.diagnostics[0].message, message);
	assert.is(await three.body(), 'not saved');
	await eventually(async () => three.server!.output().includes('the configuration could not be saved'));
	writeFileSync(three.file, three.text('by command'));
	const reloaded = three.svc('reload', '-c', three.file);
	assert.is(reloaded.status, 0, reloaded.text);
	assert.match(reloaded.text, `warning[admin/not-saved]: ${message}`);
	const tentatively = await three.ask('POST /load?confirm=30s', three.text('tentative'));
	const codes = ({ json: { diagnostics } }: Answer): string[] => diagnostics.map((one: { code: string }) => one.code);
	assert.not.ok(codes(tentatively).includes('admin/not-saved'));
	assert.equal(codes(await three.ask('POST /load/confirm')), ['admin/not-saved']);
	// After the cause is removed, the same load succeeds.
	rmSync(inTheWay);
	const again = await three.ask('POST /load', three.text('tentative'));
	assert.is(again.json.unchanged, true);
	assert.not.ok(codes(again).includes('admin/not-saved'));
	assert.match(readFileSync(path.join(inTheWay, 'autosave.json'), 'utf8'), 'tentative');
	await three.server!.stop();
});

changes.run();
tentative.run();
resumed.run();
