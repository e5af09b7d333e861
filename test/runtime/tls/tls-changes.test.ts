/** Changes to files, configurations, threads and internal certificates while TLS is served. */
import { rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Document, Site } from '../../../compiler/document/document.ts';
import type { SiteTls } from '../../../compiler/document/tls-settings.ts';
import { TestAuthority, type TestCertificate } from '../../certificates.ts';
import { freePorts, rawExchange, temporaryFolder } from '../../harness.ts';
import { eventually, jsonInput, withServer } from '../running-server.ts';
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

const [port, httpPort, oldPort, newPort, anyPort] = (await freePorts(5)) as [number, number, number, number, number];

function site(host: string, body: string, tls?: SiteTls): Site {
	return {
		addresses: [`https://${host}:${port}`],
		bind: ['127.0.0.1'],
		...(tls ? { tls } : {}),
		pipeline: [{ handler: 'respond', body }],
	};
}

function document(sites: readonly Site[], settings: Document['settings'] = {}): Document {
	return { settings: { http_port: httpPort, https_port: port, auto_https: ['off'], ...settings }, sites };
}

const tls = suite('TLS changes');

tls('a changed certificate file is served without a restart; a broken one is not', async () => {
	const files = writePair('changing', await authority.issue({ names: ['a.test', 'first.test'] }));
	await withServer(document([site('a.test', 'a', { certificates: [files] })]), { threads: 1 }, async ({ log }) => {
		assert.match((await tlsGet(port, { servername: 'a.test' })).names, 'first.test');
		writePair('changing', await authority.issue({ names: ['a.test', 'second.test'] }));
		await eventually('the new certificate is served', async () =>
			(await tlsGet(port, { servername: 'a.test' })).names.includes('second.test'),
		);
		writeFileSync(files.certificate, 'nonsense');
		await eventually('the broken file is logged', () => log.text().includes('cannot be used'));
		assert.match((await tlsGet(port, { servername: 'a.test' })).names, 'second.test');
		rmSync(files.certificate);
		await eventually('the removed file is logged, too', () =>
			log.text().includes(`The file \`${files.certificate}\` cannot be read: it does not exist (ENOENT).`),
		);
		assert.match((await tlsGet(port, { servername: 'a.test' })).names, 'second.test');
		assert.not.match(log.text(), 'PRIVATE KEY');
	});
});

tls('a load that adds a TLS hostname, or client certificates, needs a restart; other certificates do not', async () => {
	const sites = [site('a.test', 'a', { certificates: [plain] })];
	await withServer(document(sites), { threads: 1 }, async ({ runtime, log }) => {
		const codes = async (wanted: readonly Site[]) => {
			const outcome = await runtime.load(jsonInput(document(wanted)));
			return outcome.result === 'restart_required' ? outcome.reasons.map(({ code }) => code) : outcome.result;
		};
		const auth = { mode: 'require' } as const;
		assert.equal(await codes([...sites, site('c.test', 'c')]), ['tls_hostname_added']);
		assert.equal(await codes([site('a.test', 'a', { certificates: [plain], client_auth: auth })]), [
			'mutual_tls_with_resumption',
		]);
		const other = writePair('other', await authority.issue({ names: ['a.test', 'other.test'] }));
		assert.equal(await codes([site('a.test', 'changed', { certificates: [other], min_version: 'tls1.3' })]), 'applied');
		const answer = await tlsGet(port, { servername: 'a.test' });
		assert.is(answer.body, 'changed');
		assert.match(answer.names, 'other.test');
		assert.match(await tlsFailure(port, { servername: 'a.test', maxVersion: 'TLSv1.2' }), /VERSION|PROTOCOL/);
		const { session } = await tlsGet(port, { servername: 'a.test' });
		await runtime.terminateWorker(0);
		await eventually('the thread is replaced', () => log.text().includes('was replaced'));
		const after = await tlsGet(port, { servername: 'a.test', session: session! });
		assert.is(after.reused, true, 'the replacement of a thread has the same certificates and ticket keys');
		writeFileSync(other.key, 'gone');
		assert.equal(await codes([site('a.test', 'worse', { certificates: [other] })]), 'refused');
		assert.is((await tlsGet(port, { servername: 'a.test' })).body, 'changed');
	});
});

tls(
	'the internal CA signs at start and on demand; HTTP is redirected; listeners speak the configured protocols',
	async () => {
		const store = path.join(folder, 'store');
		const servers = [
			{ listener: `127.0.0.1:${oldPort}`, protocols: ['h1'] },
			{ listener: `127.0.0.1:${newPort}`, protocols: ['h2'] },
		];
		const settings = { auto_https: [], storage: { store: 'file_system', root: store }, servers };
		const said = '{http.request.tls.proto} {http.request.proto}';
		const internal = { issuers: [{ issuer: 'internal' }] };
		const sites = [
			{ ...site('localhost', 'at home'), addresses: ['localhost'] },
			{ ...site('localhost', said), addresses: [`localhost:${oldPort}`] },
			{ ...site('localhost', said), addresses: [`localhost:${newPort}`] },
			{
				...site('', 'for {http.request.tls.server_name}', { ...internal, on_demand: true }),
				addresses: [`:${anyPort}`],
			},
		];
		await withServer(document(sites, settings), { threads: 1 }, async ({ runtime }) => {
			assert.equal(
				runtime.listeners.map(listener => listener.port).sort(),
				[port, httpPort, oldPort, newPort, anyPort].sort(),
			);
			const answer = await tlsGet(port, { servername: 'localhost' });
			assert.is(answer.body, 'at home');
			assert.is(answer.names, 'DNS:localhost');
			const redirect = await rawExchange(httpPort, 'GET /a?b HTTP/1.1\r\nHost: localhost\r\n\r\n');
			assert.match(redirect, /^HTTP\/1\.1 308 /);
			assert.match(redirect, 'Location: https://localhost/a?b\r\n');
			assert.match(redirect, 'Connection: close\r\n');
			const http1 = { servername: 'localhost', ALPNProtocols: ['http/1.1'] };
			const http2 = { servername: 'localhost', ALPNProtocols: ['h2'] };
			assert.is((await tlsGet(oldPort, http1)).body, 'http/1.1 HTTP/1.1');
			assert.match(await tlsFailure(oldPort, http2), 'NO_APPLICATION_PROTOCOL');
			assert.match(await tlsFailure(newPort, http1), 'NO_APPLICATION_PROTOCOL');
			assert.match(await tlsFailure(newPort, { servername: 'localhost' }), /^(?!answered)/);
			for (const servername of ['one.test', 'two.test', 'one.test']) {
				const made = await tlsGet(anyPort, { servername });
				assert.is(made.body, `for ${servername}`);
				assert.is(made.names, `DNS:${servername}`);
			}
		});
	},
);

tls.run();
