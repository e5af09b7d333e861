/**
 * Rollback of tentative configuration loads, including loads that remove TLS names. If a rollback would not be possible, the load
 * is refused.
 */
import { renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Site } from '../../compiler/document/document.ts';
import type { SiteTls } from '../../compiler/document/tls-settings.ts';
import { TestAuthority, type TestCertificate } from '../certificates.ts';
import { freePorts, type ServerProcess, serve, temporaryFolder, waitForPort } from '../harness.ts';
import { eventually, jsonInput, respondingSite, withServer } from '../runtime/running-server.ts';
import { tlsFailure, tlsGet } from '../runtime/tls/tls-client.ts';

const folder = temporaryFolder();
const authority = await TestAuthority.make();
const [port, admin] = (await freePorts(2)) as [number, number];

function keep(name: string, { certificate, key }: TestCertificate): { certificate: string; key: string } {
	const files = { certificate: path.join(folder, `${name}.pem`), key: path.join(folder, `${name}.key`) };
	writeFileSync(files.certificate, certificate);
	writeFileSync(files.key, key, { mode: 0o600 });
	return files;
}

const a = keep('a', await authority.issue({ names: ['a.test'] }));
const b = keep('b', await authority.issue({ names: ['b.test'] }));

function site(host: string, tls: SiteTls): Site {
	return {
		addresses: [`https://${host}:${port}`],
		bind: ['127.0.0.1'],
		tls,
		pipeline: [{ handler: 'respond', body: host }],
	};
}

const SETTINGS = {
	threads: 1,
	metrics: {},
	admin: { listen: `127.0.0.1:${admin}` },
	auto_https: ['off'],
	persist_config: false,
};
const siteA = site('a.test', { certificates: [a] });
const siteB = site('b.test', { certificates: [b] });
const both = { settings: SETTINGS, sites: [siteA, siteB] };
const onlyA = { settings: SETTINGS, sites: [siteA] };

interface Answer {
	readonly status: number;
	// biome-ignore lint/suspicious/noExplicitAny: any JSON value
	readonly json: any;
}

async function ask(line: string, value?: unknown): Promise<Answer> {
	const [method, target] = line.split(' ') as [string, string];
	const response = await fetch(`http://127.0.0.1:${admin}${target}`, {
		method,
		...(value === undefined ? {} : { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(value) }),
	});
	const text = await response.text();
	return { status: response.status, json: text === '' ? undefined : JSON.parse(text) };
}

async function scraped(): Promise<string> {
	return (await fetch(`http://127.0.0.1:${admin}/metrics`)).text();
}

async function body(host: string): Promise<string> {
	return (await tlsGet(port, { servername: host })).body;
}

const rollback = suite('rollback');
let server: ServerProcess | undefined;

rollback.before(async () => {
	const file = path.join(folder, 'config.json');
	writeFileSync(file, JSON.stringify(both));
	server = await serve([file], port, { env: { XDG_STATE_HOME: folder } });
	await waitForPort(admin);
});
rollback.after(async () => {
	await server?.stop();
});

rollback('the unconfirmed removal of an HTTPS site is rolled back automatically', async () => {
	assert.is(await body('b.test'), 'b.test');
	assert.is((await ask('POST /load?confirm=1s', onlyA)).status, 200);
	assert.match(await tlsFailure(port, { servername: 'b.test' }), /UNRECOGNIZED|closed/);
	await eventually('b.test is served again', async () =>
		(await tlsFailure(port, { servername: 'b.test' })).includes('200'),
	);
	await eventually('the log says so', () => server!.output().includes('configuration rolled back'));
	assert.match(await scraped(), 'svc_config_rollbacks_total{result="success"} 1\n');
});

rollback('the unconfirmed removal of an HTTPS site is rolled back on request', async () => {
	assert.is((await ask('POST /load?confirm=1m', onlyA)).status, 200);
	const reverted = await ask('POST /load/revert');
	assert.is(reverted.status, 200, JSON.stringify(reverted.json));
	assert.is(await body('b.test'), 'b.test');
});

rollback('a deleted site can be posted again, but not one with a name that was never served', async () => {
	assert.is((await ask('DELETE /config/sites/1')).status, 200);
	assert.match(await tlsFailure(port, { servername: 'b.test' }), /UNRECOGNIZED|closed/);
	const posted = await ask('POST /config/sites', siteB);
	assert.is(posted.status, 200, JSON.stringify(posted.json));
	assert.is(await body('b.test'), 'b.test');
	const added = await ask('POST /config/sites', site('c.test', { certificates: [b] }));
	assert.is(added.status, 409);
	assert.equal(
		added.json.error.reasons.map(({ code, subject }: { code: string; subject: string }) => `${code} ${subject}`),
		['tls_hostname_added c.test'],
	);
});

rollback('a tentative load that could not be rolled back is refused', async () => {
	renameSync(b.key, `${b.key}.away`);
	try {
		const refused = await ask('POST /load?confirm=1m', onlyA);
		assert.is(refused.status, 409);
		assert.is(refused.json.error.code, 'irreversible');
		assert.match(refused.json.error.diagnostics[0].message, 'b.key');
		assert.match(refused.json.error.message, /^Nothing was applied, because this load could not be rolled back: /);
		const preview = await ask('POST /load?confirm=1m&dry_run', onlyA);
		assert.is(preview.json.result, 'irreversible');
		assert.is((await ask('POST /load/confirm')).json.error.code, 'nothing_to_confirm');
		assert.is(await body('b.test'), 'b.test');
		assert.is((await ask('GET /config/sites')).json.length, 2);
		assert.is((await ask('POST /load?dry_run', onlyA)).json.result, 'swap', 'without confirm, the load is possible');
	} finally {
		renameSync(`${b.key}.away`, b.key);
	}
	const fine = await ask('POST /load?confirm=1m&dry_run', onlyA);
	assert.is(fine.json.result, 'swap');
});

rollback('a failed rollback is logged as an error, is counted, and can be retried', async () => {
	assert.is((await ask('POST /load?confirm=1s', onlyA)).status, 200);
	renameSync(b.key, `${b.key}.away`);
	const entry = () =>
		server!
			.output()
			.split('\n')
			.find(line => line.includes('the configuration could not be rolled back'));
	await eventually('the log says so', () => entry() !== undefined);
	assert.match(entry()!, '"level":"error"');
	assert.match(entry()!, 'b.key');
	assert.match(await scraped(), 'svc_config_rollbacks_total{result="failure"} 1\n');
	assert.match(await scraped(), 'svc_config_rollback_failed 1\n');
	const still = await ask('POST /load/revert');
	assert.is(still.status, 400);
	renameSync(`${b.key}.away`, b.key);
	assert.is((await ask('POST /load/revert')).status, 200);
	assert.is(await body('b.test'), 'b.test');
	const text = await scraped();
	assert.match(text, 'svc_config_rollbacks_total{result="failure"} 2\n');
	assert.match(text, 'svc_config_rollback_failed 0\n');
	assert.is((await ask('POST /load/revert')).status, 404);
});

rollback('another load after a failed rollback clears the alert', async () => {
	assert.is((await ask('POST /load?confirm=1m', onlyA)).status, 200);
	renameSync(b.key, `${b.key}.away`);
	assert.is((await ask('POST /load/revert')).status, 400);
	renameSync(`${b.key}.away`, b.key);
	assert.match(await scraped(), 'svc_config_rollback_failed 1\n');
	assert.is((await ask('POST /load', both)).status, 200);
	assert.match(await scraped(), 'svc_config_rollback_failed 0\n');
	assert.is((await ask('POST /load/revert')).status, 404, 'the newer load must not be undone');
});

rollback(
	'a tentative load that stops requesting client certificates is refused, because it could not be rolled back',
	async () => {
		const ca = path.join(folder, 'ca.pem');
		writeFileSync(ca, authority.pem);
		const ownPorts = (await freePorts(2)) as [number, number];
		const auth = { mode: 'require_and_verify' as const, trust_pool: { source: 'file' as const, files: [ca] } };
		const document = (tls: SiteTls) => ({
			settings: { ...SETTINGS, admin: { listen: `127.0.0.1:${ownPorts[1]}` } },
			sites: [{ ...site('a.test', tls), addresses: [`https://a.test:${ownPorts[0]}`] }],
		});
		const file = path.join(folder, 'mutual.json');
		writeFileSync(file, JSON.stringify(document({ certificates: [a], client_auth: auth })));
		const mutual = await serve([file], ownPorts[0], { env: { XDG_STATE_HOME: folder } });
		try {
			await waitForPort(ownPorts[1]);
			const response = await fetch(`http://127.0.0.1:${ownPorts[1]}/load?confirm=1m`, {
				method: 'POST',
				headers: { 'Content-Type': 'application/json' },
				body: JSON.stringify(document({ certificates: [a] })),
			});
			assert.is(response.status, 409);
			const { error } = (await response.json()) as Answer['json'];
			assert.is(error.code, 'irreversible');
			assert.is(error.reasons[0].code, 'mutual_tls_with_resumption');
			assert.match(await tlsFailure(ownPorts[0], { servername: 'a.test' }), /^(?!answered)/);
		} finally {
			await mutual.stop();
		}
	},
);

rollback(
	'listeners opened after a start without a configuration stay open, so a tentative load of them is refused',
	async () => {
		await withServer(undefined, {}, async ({ runtime, get }) => {
			const document = jsonInput({ sites: [respondingSite('taken')] });
			const refused = await runtime.load(document, { reversible: true });
			assert.is(refused.result, 'irreversible');
			assert.equal(refused.result === 'irreversible' && refused.reasons.map(({ code }) => code), ['listener_removed']);
			assert.is((await runtime.load(document)).result, 'applied');
			assert.is((await get()).body, 'taken');
		});
	},
);

rollback.run();
