/** Handshakes with a running server: names, protocols, resumption, client certificates, and rejections. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Document, Site } from '../../../compiler/document/document.ts';
import type { SiteTls } from '../../../compiler/document/tls-settings.ts';
import { type Runtime, startRuntime } from '../../../runtime/main/runtime.ts';
import { TestAuthority, type TestCertificate } from '../../certificates.ts';
import { freePorts, rawExchange, temporaryFolder } from '../../harness.ts';
import { eventually, jsonInput, recordingLog, withServer } from '../running-server.ts';
import { tlsFailure, tlsGet } from './tls-client.ts';

const folder = temporaryFolder();
const authority = await TestAuthority.make();

function writePair(name: string, { certificate, key }: TestCertificate): { certificate: string; key: string } {
	const files = { certificate: path.join(folder, `${name}.pem`), key: path.join(folder, `${name}.key`) };
	writeFileSync(files.certificate, certificate);
	writeFileSync(files.key, key, { mode: 0o600 });
	return files;
}

const plain = writePair('plain', await authority.issue({ names: ['a.test', 'c.test'] }));
const wild = writePair('wild', await authority.issue({ names: ['*.wild.test'] }));
const address = writePair('address', await authority.issue({ names: ['127.0.0.1'] }));
const trusted = path.join(folder, 'trusted.pem');
writeFileSync(trusted, authority.pem);

let [port = 0, httpPort = 0] = await freePorts(2);

function site(host: string, body: string, tls?: SiteTls): Site {
	return {
		addresses: [`https://${host}:${port}`],
		bind: ['127.0.0.1'],
		...(tls ? { tls } : {}),
		logs: [{ output: { writer: 'stdout' } }],
		pipeline: [{ handler: 'respond', body }],
	};
}

function document(sites: readonly Site[], settings: Document['settings'] = {}): Document {
	return { settings: { http_port: httpPort, https_port: port, auto_https: ['off'], ...settings }, sites };
}

const tls = suite('TLS listeners');

const auth = { mode: 'require_and_verify', trust_pool: { source: 'file', files: [trusted] } } as const;
const bundles = path.join(folder, 'bundles/deep');
mkdirSync(bundles, { recursive: true });
const bundle = await authority.issue({ names: ['bundle.test'] });
writeFileSync(path.join(bundles, 'one.pem'), bundle.certificate + bundle.key);
const stored = writePair('stored', await authority.issue({ names: ['stored.test'] }));
const store = path.join(folder, 'store');
mkdirSync(path.join(store, 'trust'), { recursive: true });
writeFileSync(path.join(store, 'trust/ca.pem'), authority.pem, { mode: 0o600 });
const all = writePair('all', await authority.issue({ names: ['*.auth.test'] }));

const log = recordingLog();
/** The server of the configuration that most tests share. */
let server: Runtime;

tls.before(async () => {
	const sites = [
		site('a.test', '{http.request.tls.proto} {http.request.tls.version} {http.request.tls.resumed}', {
			certificates: [plain],
		}),
		site('*.wild.test', 'wild {http.request.tls.server_name}', { certificates: [wild] }),
		site('old.wild.test', 'old {http.request.tls.version}', { certificates: [wild], max_version: 'tls1.2' }),
		site('127.0.0.1', 'by address', { certificates: [address] }),
		site('bundle.test', 'from a bundle', { load: [path.join(folder, 'bundles')] }),
		site('*.auth.test', 'secret', { certificates: [all], client_auth: auth }),
		site('public.auth.test', 'public'),
		site('stored.test', 'by the store', {
			certificates: [stored],
			client_auth: {
				mode: 'require_and_verify',
				trust_pool: { source: 'storage', keys: ['trust/ca.pem'], storage: { store: 'file_system', root: store } },
			},
		}),
	];
	const servers = [{ strict_sni_host: false }];
	server = await startRuntime({
		input: jsonInput(document(sites, { servers, metrics: {} })),
		threads: 2,
		writers: { stdout: log, stderr: log },
	});
});

tls.after(async () => {
	server.kill();
	await server.stop();
});

tls(
	'certificates are selected by exact name, then by wildcard; without one the handshake fails with an alert',
	async () => {
		const a = await tlsGet(port, { servername: 'a.test' });
		assert.match(a.body, 'tls1.3 false');
		assert.match(a.names, 'DNS:a.test');
		const other = await tlsGet(port, { servername: 'X.wild.test' });
		assert.is(other.body, 'wild x.wild.test');
		assert.is(other.names, 'DNS:*.wild.test');
		assert.is(await tlsFailure(port, { servername: 'x.y.wild.test' }), 'ERR_SSL_TLSV1_UNRECOGNIZED_NAME');
		assert.is(await tlsFailure(port, { servername: 'nobody.test' }), 'ERR_SSL_TLSV1_UNRECOGNIZED_NAME');
		// The certificate covers this name, but no site has the name. The handshake succeeds, and nothing is served.
		assert.is((await tlsGet(port, { servername: 'c.test' })).body, '');
		// Bundles of certificates are loaded from folders and their subfolders. If there is no server name, the address selects
		// the certificate.
		assert.is((await tlsGet(port, { servername: 'bundle.test' })).body, 'from a bundle');
		assert.is((await tlsGet(port, {})).body, 'by address');
	},
);

tls('ALPN offers what the listener speaks, and versions are those of the policy', async () => {
	const one = await tlsGet(port, { servername: 'a.test', ALPNProtocols: ['http/1.1'] });
	assert.is(one.body, 'http/1.1 tls1.3 false');
	assert.is((await tlsGet(port, { servername: 'old.wild.test' })).body, 'old tls1.2');
	assert.match(await tlsFailure(port, { servername: 'old.wild.test', minVersion: 'TLSv1.3' }), /VERSION|PROTOCOL/);
	assert.match(await tlsFailure(port, { servername: 'a.test', maxVersion: 'TLSv1.1' }), /PROTOCOL|VERSION/);
	const strange = await tlsFailure(port, { servername: 'a.test', ALPNProtocols: ['spdy/3'] });
	assert.match(strange, /NO_APPLICATION_PROTOCOL/);
});

tls('sessions are resumed whichever thread answers', async () => {
	for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
		let { session } = await tlsGet(port, { servername: 'a.test', maxVersion });
		let resumed = 0;
		const tries = 20;
		for (let at = 0; at < tries; at++) {
			const next = await tlsGet(port, { servername: 'a.test', maxVersion, session: session! });
			if (next.reused && next.body.endsWith('true')) resumed++;
			session = next.session ?? session;
		}
		assert.ok(resumed / tries >= 0.95, `${maxVersion}: ${resumed} of ${tries}`);
	}
});

tls('garbage and incomplete or oversized ClientHellos close only their own connection', async () => {
	const ends = (bytes: Buffer) =>
		new Promise<Buffer>(resolve => {
			const pieces: Uint8Array[] = [];
			const socket = connect(port, '127.0.0.1', () => socket.end(bytes));
			socket.on('data', (piece: Buffer) => void pieces.push(piece));
			socket.on('error', () => {});
			socket.on('close', () => resolve(Buffer.concat(pieces)));
		});
	await ends(Buffer.from('\0\0\0\0garbage'));
	await ends(Buffer.from([22, 3, 1]));
	assert.equal([...(await ends(Buffer.from([22, 3, 1, 0, 4, 2, 0, 0, 0])))], [21, 3, 3, 0, 2, 2, 50]);
	const huge = Buffer.alloc(70_000);
	for (let at = 0; at + 16_389 <= huge.length; at += 16_389) huge.set([22, 3, 1, 0x40, 0], at);
	huge.set([1, 0xff, 0xff, 0xff], 5);
	assert.equal([...(await ends(huge))], [21, 3, 3, 0, 2, 2, 50]);
	const answer = await rawExchange(port, 'GET / HTTP/1.1\r\nHost: a.test\r\n\r\n');
	assert.match(answer, /^HTTP\/1\.1 400 Bad Request\r\n/);
	assert.match(answer, 'Client sent an HTTP request to an HTTPS server.');
	assert.is((await tlsGet(port, { servername: 'a.test' })).status, 200);
});

tls('a public site under a wildcard that requires client certificates does not give access to the others', async () => {
	assert.is((await tlsGet(port, { servername: 'public.auth.test' })).body, 'public');
	assert.match(await tlsFailure(port, { servername: 'private.auth.test' }), /^(?!answered)/);
	// A session of the public site must not be resumed on the site that requires client certificates.
	const { session } = await tlsGet(port, { servername: 'public.auth.test', maxVersion: 'TLSv1.2' });
	const base = { servername: 'private.auth.test', maxVersion: 'TLSv1.2', session: session! } as const;
	assert.match(await tlsFailure(port, base), /^(?!answered)/);
});

tls('client CAs can be kept in a store; a missing key fails the load', async () => {
	const { certificate: cert, key } = await authority.issue({ names: ['client.test'] });
	assert.is((await tlsGet(port, { servername: 'stored.test', cert, key })).body, 'by the store');
	assert.match(await tlsFailure(port, { servername: 'stored.test' }), /^(?!answered)/);
	const stranger = await (await TestAuthority.make()).issue({ names: ['client.test'] });
	const refused = await tlsFailure(port, { servername: 'stored.test', cert: stranger.certificate, key: stranger.key });
	assert.match(refused, /^(?!answered)/);
	const pool = { source: 'storage', keys: ['trust/gone.pem'], storage: { store: 'file_system', root: store } } as const;
	const [one = 0] = await freePorts(1);
	const gone = site('stored.test', '', {
		certificates: [stored],
		client_auth: { mode: 'require_and_verify', trust_pool: pool },
	});
	const input = jsonInput({
		settings: { auto_https: ['off'] },
		sites: [{ ...gone, addresses: [`https://stored.test:${one}`] }],
	});
	const failed = await startRuntime({
		input,
		threads: 1,
		writers: { stdout: recordingLog(), stderr: recordingLog() },
	}).then(
		started => {
			started.kill();
			return 'started';
		},
		(error: unknown) => JSON.stringify(error, Object.getOwnPropertyNames(error)),
	);
	assert.match(failed, /has no key `trust\/gone\.pem`/);
});

tls('metrics and access log entries describe handshakes', async () => {
	const text = await server.metrics();
	const value = (series: string) => Number(new RegExp(`^${RegExp.escape(series)} (\\S+)$`, 'm').exec(text)?.[1]);
	assert.ok(value('svc_tls_handshakes_total{version="tls1.3",result="ok"}') > 5);
	assert.ok(value('svc_tls_handshakes_total{version="tls1.2",result="ok"}') > 5);
	assert.ok(value('svc_tls_sessions_resumed_total{version="tls1.3"}') >= 19);
	assert.ok(value('svc_tls_handshakes_total{version="",result="no_certificate"}') >= 2);
	assert.ok(value('svc_tls_handshakes_total{version="",result="client_certificate_missing"}') >= 1);
	const expiry = value('svc_tls_certificate_expiry_timestamp_seconds{subject="a.test",issuer="file"}');
	assert.ok(Math.abs(expiry - Date.now() / 1000 - 86_400) < 600, text);
	await tlsGet(port, { servername: 'a.test', path: '/logged' });
	await eventually('the entry is written', () => log.text().includes('/logged'));
	const entry = log.entries.find(({ request }) => (request as { uri?: string })?.uri === '/logged') as {
		request: { tls: object };
	};
	assert.equal(entry.request.tls, {
		resumed: false,
		version: 'tls1.3',
		cipher_suite: 'TLS_AES_128_GCM_SHA256',
		proto: '',
		server_name: 'a.test',
		ech: false,
	});
});

tls('default_sni, fallback_sni, redirects of plain HTTP on the TLS port, and a limit on handshakes', async () => {
	[port = 0, httpPort = 0] = await freePorts(2);
	const sites = [site('a.test', 'a', { certificates: [plain] })];
	const limits = { handshakes_per_client: 8 };
	const servers = [{ listener_wrappers: [{ wrapper: 'http_redirect' }, { wrapper: 'tls' }], limits }];
	const settings = { default_sni: 'a.test', fallback_sni: 'a.test', servers, metrics: {} };
	await withServer(document(sites, settings), { threads: 2 }, async ({ runtime }) => {
		assert.match((await tlsGet(port, { hostHeader: 'a.test' })).names, 'DNS:a.test');
		assert.match((await tlsGet(port, { servername: 'unknown.test', hostHeader: 'a.test' })).names, 'DNS:a.test');
		const answer = await rawExchange(port, 'GET /x?y=1 HTTP/1.1\r\nHost: a.test:1\r\n\r\n');
		assert.match(answer, /^HTTP\/1\.1 308 Permanent Redirect\r\n/);
		assert.match(answer, `Location: https://a.test:${port}/x?y=1\r\n`);
		assert.match(await rawExchange(port, 'GET / HTTP/1.1\r\nHost: a b\r\n\r\n'), /^HTTP\/1\.1 400 /);
		// Opens more connections than the limit allows, within two seconds.
		const many = Array.from({ length: 24 }, () => tlsFailure(port, { servername: 'a.test' }));
		const closed = (await Promise.all(many)).filter(outcome => !outcome.startsWith('answered')).length;
		assert.ok(closed >= 8, `${closed}`);
		assert.match(await runtime.metrics(), `svc_tls_handshakes_total{version="",result="rate_limited"} ${closed}`);
	});
});

tls('client certificates are requested, required and verified; untrusted ones are rejected', async () => {
	const client = await authority.issue({
		subject: 'CN=Ada,O=Here',
		names: ['ada.test'],
		emails: ['ada@a.test'],
		serial: '0a',
	});
	const stranger = await (await TestAuthority.make('CN=Other')).issue({ subject: 'CN=Eve' });
	const expired = await authority.issue({ subject: 'CN=Old', until: -10 });
	const pair = ({ certificate, key }: TestCertificate) => ({ cert: certificate, key });
	const body =
		'{http.request.tls.client.subject}|{http.request.tls.client.serial}|{http.request.tls.client.san.emails.0}';
	const pool = { source: 'file', files: [trusted] } as const;
	const leaf = path.join(folder, 'leaf.pem');
	writeFileSync(leaf, client.certificate);
	const ways: readonly [SiteTls['client_auth'], none: boolean, ada: boolean, eve: boolean][] = [
		[{ mode: 'request' }, true, true, true],
		[{ mode: 'require' }, false, true, true],
		[{ mode: 'verify_if_given', trust_pool: pool }, true, true, false],
		[{ mode: 'require_and_verify', trust_pool: pool }, false, true, false],
		[{ mode: 'require_and_verify', trusted_leaves: { files: [leaf] } }, false, true, false],
		[{ mode: 'require_and_verify', trust_pool: { source: 'combined', of: [] } }, false, false, false],
	];
	const names = ways.map((_, at) => `m${at}.test`);
	const all = writePair('all-modes', await authority.issue({ names }));
	const sites = ways.map(([clientAuth], at) =>
		site(names[at]!, body, { certificates: [all], client_auth: clientAuth! }),
	);
	await withServer(document(sites), { threads: 1 }, async () => {
		for (const [at, [clientAuth, none, ada, eve]] of ways.entries()) {
			const mode = JSON.stringify(clientAuth);
			const maxVersion = at % 2 === 0 ? 'TLSv1.3' : 'TLSv1.2';
			const letIn = async (more: object) =>
				(await tlsFailure(port, { servername: names[at]!, maxVersion, ...more })).startsWith('answered');
			assert.is(await letIn({}), none, `${mode} without`);
			assert.is(await letIn(pair(client)), ada, `${mode} trusted`);
			assert.is(await letIn(pair(stranger)), eve, `${mode} stranger`);
			if (clientAuth!.trust_pool) assert.is(await letIn(pair(expired)), false, `${mode} expired`);
			if (!ada) continue;
			const answer = await tlsGet(port, { servername: names[at]!, ...pair(client) });
			assert.is(answer.body, 'O=Here,CN=Ada|10|ada@a.test');
			// If client certificates are required, the host must match the server name of the handshake.
			const other = await tlsGet(port, { servername: names[at]!, hostHeader: 'm0.test', ...pair(client) });
			assert.is(other.status, at === 0 ? 200 : 421);
		}
	});
});

tls.run();
