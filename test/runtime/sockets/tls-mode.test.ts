/**
 * The choice of the library that performs the TLS of accepted connections, how the choice is reported, and a server with each
 * library.
 */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { isDirectIo } from '../../../runtime/sockets/io-mode.ts';
import { environmentTlsMode, tlsMode, useDirectTls } from '../../../runtime/sockets/tls-mode.ts';
import { TestAuthority } from '../../certificates.ts';
import { freePorts, runCommand, serve, temporaryFolder } from '../../harness.ts';
import { tlsGet } from '../tls/tls-client.ts';

const modes = suite('TLS modes');

modes('the environment decides, and OpenSSL itself needs direct I/O', () => {
	assert.is(environmentTlsMode({ SVC_TLS: 'node' }), 'node');
	assert.is(environmentTlsMode({ SVC_TLS: 'openssl' }), 'openssl');
	for (const other of ['', 'fast']) assert.is(environmentTlsMode({ SVC_TLS: other }), undefined);
	assert.is(environmentTlsMode({}), undefined);
	useDirectTls(true);
	assert.is(tlsMode(), isDirectIo() ? 'openssl' : 'node');
	useDirectTls(false);
	assert.is(tlsMode(), 'node');
});

for (const [wanted, io, mode] of [
	['', 'direct', 'openssl'],
	['node', 'direct', 'node'],
	['openssl', 'node', 'node'],
] as const) {
	modes(`with SVC_TLS=${wanted} and ${io} I/O, a server reports \`${mode}\` and serves`, async () => {
		if (!isDirectIo() && io === 'direct') return;
		const folder = temporaryFolder();
		const [port, admin] = (await freePorts(2)) as [number, number];
		const { certificate, key } = await (await TestAuthority.make()).issue({ names: ['a.test'] });
		writeFileSync(path.join(folder, 'a.pem'), certificate);
		writeFileSync(path.join(folder, 'a.key'), key, { mode: 0o600 });
		const site = `a.test:${port} {\n\tbind 127.0.0.1\n\ttls a.pem a.key\n\trespond hello\n}\n`;
		const options = `{\n\tadmin 127.0.0.1:${admin}\n\tauto_https disable_redirects\n\tmetrics\n}\n`;
		writeFileSync(path.join(folder, 'Configfile'), options + site);
		const env = { SVC_TLS: wanted, SVC_IO: io, XDG_STATE_HOME: folder };
		const server = await serve(['-c', 'Configfile'], port, { cwd: folder, env });
		try {
			assert.is((await tlsGet(port, { servername: 'a.test' })).body, 'hello');
			const metrics = await (await fetch(`http://127.0.0.1:${admin}/metrics`)).text();
			assert.match(metrics, new RegExp(`^svc_build_info\\{.*tls="${mode}"`, 'm'));
			assert.match((await runCommand(['build-info'], { env })).stdout, `tls: ${mode}`);
		} finally {
			await server.stop();
		}
		assert.match(server.output(), `"tls":"${mode}"`);
	});
}

modes('a server refuses a mode that does not exist', async () => {
	const folder = temporaryFolder();
	const [port] = (await freePorts(1)) as [number];
	writeFileSync(path.join(folder, 'Configfile'), `{\n\tadmin off\n}\nhttp://127.0.0.1:${port} {\n\trespond hello\n}\n`);
	const env = { SVC_TLS: 'fast', XDG_STATE_HOME: folder };
	const { status, stderr } = await runCommand(['run', '-c', 'Configfile'], { cwd: folder, env });
	assert.is.not(status, 0);
	assert.match(stderr, 'SVC_TLS is `fast`: set it to openssl or node, or unset it.');
});

modes.run();
