/** Changes of the configuration that a running process applies without a restart. */
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { connect } from 'node:tls';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { TestAuthority } from '../certificates.ts';
import { freePorts, rawExchange, runCommand, serve, temporaryFolder } from '../harness.ts';

const reload = suite('reload at once');

reload('adds names, replaces certificates and changes fields of client addresses without a restart', async () => {
	const folder = temporaryFolder();
	const [plain, tls] = (await freePorts(2)) as [number, number];
	const file = path.join(folder, 'Configfile');
	const authority = await TestAuthority.make();
	const save = async (name: string): Promise<string> => {
		const { certificate, key } = await authority.issue({ names: ['localhost', '*.example.test'] });
		writeFileSync(path.join(folder, `${name}.crt`), certificate);
		writeFileSync(path.join(folder, `${name}.key`), key);
		return new X509Certificate(certificate).serialNumber;
	};
	const serials = [await save('first'), await save('second')];
	const asked = createServer((_, answer) => answer.end()).listen(0, '127.0.0.1');
	await once(asked, 'listening');
	const { port: askedPort } = asked.address() as AddressInfo;
	const site = (address: string, directives: string): string => `${address} {\n${directives}\n}\n`;
	const files = (name: string): string => `\ttls ${folder}/${name}.crt ${folder}/${name}.key\n`;
	const text = (fields: string, ...sites: string[]): string =>
		`{\n\tadmin unix/${folder}/admin.sock\n\tthreads 2\n\tskip_install_trust\n\tauto_https disable_redirects\n\tstorage file_system ${folder}/store\n\ton_demand_tls {\n\t\task http://127.0.0.1:${askedPort}\n\t}\n\tservers {\n\t\ttrusted_proxies static 127.0.0.1\n\t\tclient_ip_headers ${fields}\n\t}\n}\n${sites.join('')}`;
	const first = site(`http://one.test:${plain}`, '\trespond "one {client_ip}"');
	const wild = (name: string) =>
		site(`https://*.example.test:${tls}, https://localhost:${tls}`, `${files(name)}\trespond wild`);
	const demand = site(`https://:${tls}`, '\ttls internal {\n\t\ton_demand\n\t}\n\trespond demand');
	writeFileSync(file, text('X-First', first, wild('first'), demand));
	const server = await serve([file], plain, { env: { XDG_STATE_HOME: folder } });
	const apply = async (what: string, wanted: string): Promise<void> => {
		writeFileSync(file, wanted);
		const { status, stdout, stderr } = await runCommand(['reload', file]);
		assert.is(status, 0, `${what}: ${stderr}`);
		assert.match(stdout, /is now being served \(generation/, what);
	};
	const get = async (host: string): Promise<string> =>
		(
			await rawExchange(
				plain,
				`GET / HTTP/1.1\r\nHost: ${host}\r\nX-First: 192.0.2.1\r\nX-Second: 192.0.2.2\r\nConnection: close\r\n\r\n`,
			)
		).split('\r\n\r\n')[1]!;
	/** Connects over TLS. Returns the serial number of the certificate for a name, and the body of the response. */
	const secure = async (name: string): Promise<readonly [serial: string, body: string]> => {
		const socket = connect({ port: tls, host: '127.0.0.1', servername: name, rejectUnauthorized: false });
		await once(socket, 'secureConnect');
		const serial = socket.getPeerX509Certificate()!.serialNumber;
		socket.write(`GET / HTTP/1.1\r\nHost: ${name}\r\nConnection: close\r\n\r\n`);
		let answer = '';
		socket.setEncoding('latin1').on('data', part => {
			answer += part;
		});
		await once(socket, 'close');
		return [serial, answer.split('\r\n\r\n')[1]!];
	};
	try {
		assert.is(await get('one.test'), 'one 192.0.2.1');
		await apply('client_ip_headers', text('X-Second X-First', first, wild('first'), demand));
		assert.is(await get('one.test'), 'one 192.0.2.2');

		const second = site(`http://two.test:${plain}`, '\trespond two');
		await apply('a plaintext name', text('X-First', first, second, wild('first'), demand));
		assert.equal([await get('one.test'), await get('two.test')], ['one 192.0.2.1', 'two']);

		assert.equal(await secure('a.example.test'), [serials[0], 'wild']);
		await apply('another certificate in files', text('X-First', first, second, wild('second'), demand));
		assert.equal(await secure('a.example.test'), [serials[1], 'wild']);
		assert.equal(await secure('localhost'), [serials[1], 'wild']);

		const under = site(`https://a.example.test:${tls}`, '\trespond under');
		await apply('a name under a wildcard', text('X-First', first, second, wild('second'), demand, under));
		assert.equal(await secure('a.example.test'), [serials[1], 'under']);
		assert.equal(await secure('b.example.test'), [serials[1], 'wild']);

		const named = site(`https://new.test:${tls}`, '\ttls internal {\n\t\ton_demand\n\t}\n\trespond named');
		await apply('a name on demand', text('X-First', first, second, wild('second'), demand, under, named));
		assert.is((await secure('new.test'))[1], 'named');
		assert.is((await secure('other.test'))[1], 'demand');
	} finally {
		asked.closeAllConnections();
		asked.close();
		await server.stop();
	}
});

reload.run();
