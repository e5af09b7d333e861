/**
 * TLS to upstreams with certificates that are not files: internal authorities, CAs fetched from a URL, and managed
 * certificates.
 */
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import path from 'node:path';
import type { TLSSocket } from 'node:tls';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type Runtime, startRuntime } from '../../../runtime/main/runtime.ts';
import { freePorts, temporaryFolder } from '../../harness.ts';
import { eventually, recordingLog } from '../running-server.ts';
import { testAuthority } from './transports/certificates.ts';

const test = suite('TLS with provided certificates');

const folder = temporaryFolder();
const log = recordingLog();
const servers: Server[] = [];
let runtime: Runtime | undefined;
let port = 0;
let fetches = 0;

async function listen(server: Server): Promise<number> {
	servers.push(server);
	server.listen(0, '127.0.0.1');
	await once(server, 'listening');
	return (server.address() as AddressInfo).port;
}

test.before(async () => {
	const authority = await testAuthority();
	const { cert, key } = await authority.issue(['localhost']);
	const upstream = await listen(
		createSecureServer({ cert, key, requestCert: true, rejectUnauthorized: false }, (request, response) => {
			const shown = (request.socket as TLSSocket).getPeerX509Certificate();
			response.end(shown?.subjectAltName ?? 'nobody');
		}),
	);
	const publisher = await listen(
		createHttpServer((_request, response) => {
			fetches++;
			response.end(authority.cert);
		}),
	);
	const [site, app] = (await freePorts(2)) as [number, number];
	port = site;
	const proxied = (at: string, to: string, lines: string) =>
		`reverse_proxy ${at} https://${to} {\n transport http {\n ${lines}\n }\n}\n`;
	const text = `{
	admin off
	skip_install_trust
	auto_https disable_redirects
	storage file_system ${path.join(folder, 'store')}
}
https://app.localhost:${app} {
	tls internal
	respond "from the app"
}
http://localhost:${site} {
	${proxied('/own', `localhost:${app}`, 'tls_server_name app.localhost\n tls_trust_pool pki_root local')}
	${proxied('/system', `localhost:${app}`, 'tls_server_name app.localhost')}
	${proxied('/fetched', `localhost:${upstream}`, `tls_trust_pool http http://127.0.0.1:${publisher}/ca.pem`)}
	${proxied('/shown', `localhost:${upstream}`, 'tls_insecure_skip_verify\n tls_client_auth app.localhost')}
	${proxied('/missing', `localhost:${upstream}`, 'tls_insecure_skip_verify\n tls_client_auth nobody.test')}
	${proxied('/unreachable', `localhost:${upstream}`, 'tls_trust_pool http http://127.0.0.1:1/ca.pem')}
	reverse_proxy /checked https://localhost:${app} {
		health_uri /
		health_interval 20ms
		health_headers {
			Host app.localhost
		}
		transport http {
			tls_server_name app.localhost
			tls_trust_pool pki_root
		}
	}
}
`;
	runtime = await startRuntime({
		input: { format: 'compatfile', text, name: 'Compatfile' },
		threads: 1,
		writers: { stdout: log, stderr: log },
	});
});

test.after(async () => {
	runtime?.kill();
	await runtime?.stop();
	for (const server of servers) server.close();
	rmSync(folder, { recursive: true });
});

async function get(target: string): Promise<string> {
	const response = await fetch(`http://localhost:${port}${target}`, { headers: { connection: 'close' } });
	return `${response.status} ${await response.text()}`;
}

test('an internal authority of this server is trusted only where configured', async () => {
	// Upstreams over TLS get their own address as Host, which no site has. The test only checks that the upstream has responded.
	assert.match(await get('/own'), /^200/);
	assert.match(await get('/system'), /^502/);
});

test('certificate authorities are fetched from a URL, once', async () => {
	assert.is(await get('/fetched'), '200 nobody');
	assert.is(await get('/fetched'), '200 nobody');
	assert.is(fetches, 1);
	assert.match(await get('/unreachable'), /^502/);
	assert.match(log.text(), /Cannot load trusted certificates from `http:\/\/127\.0\.0\.1:1\/ca\.pem`/);
});

test('a managed client certificate is presented, and a missing one is a clear error', async () => {
	assert.is(await get('/shown'), '200 DNS:app.localhost');
	assert.match(await get('/missing'), /^502/);
	assert.match(log.text(), /this server has no certificate for nobody\.test/);
});

test('health checks use the same TLS settings', async () => {
	await eventually('the health checks pass', () => runtime!.upstreams().every(({ healthy }) => healthy));
	assert.match(await get('/checked'), /^200/);
});

test.run();
