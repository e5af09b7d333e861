/** PROXY headers as sent by curl, with and without TLS. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, type ServerProcess, serve, temporaryFolder } from '../harness.ts';

const peers = suite('PROXY protocol, from curl');

let server: ServerProcess;
let plain = 0;
let secure = 0;

peers.before(async () => {
	[plain, secure] = (await freePorts(2)) as [number, number];
	const folder = temporaryFolder();
	const result = spawnSync('openssl', [
		...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'],
		...['-keyout', path.join(folder, 'key.pem'), '-out', path.join(folder, 'cert.pem')],
		...['-subj', '/CN=a.example', '-addext', 'subjectAltName=DNS:a.example'],
	]);
	assert.is(result.status, 0, String(result.stderr));
	writeFileSync(
		path.join(folder, 'Configfile'),
		`{
	admin off
	auto_https off
	servers {
		listener_wrappers {
			proxy_protocol {
				fallback_policy require
			}
			tls
		}
	}
}
http://a.example:${plain} {
	respond "plain {http.request.remote}"
}
https://a.example:${secure} {
	tls cert.pem key.pem
	respond "{http.request.proto} {http.request.remote}"
}
`,
	);
	server = await serve(['Configfile'], plain, { cwd: folder });
});

peers.after(() => server?.stop().then(() => {}));

/** Runs curl. Returns its output and its exit status. */
function curl(url: string, ...args: string[]): { text: string; status: number | null } {
	const port = url.includes('https') ? secure : plain;
	const to = ['--connect-to', `a.example:${port}:127.0.0.1:${port}`];
	const { stdout, status } = spawnSync('curl', ['-sk', '-m', '10', ...to, ...args, url], { encoding: 'utf8' });
	return { text: stdout, status };
}

peers('it is read before HTTP/1.1, before TLS, and before HTTP/2', () => {
	const header = '--haproxy-protocol';
	assert.match(curl(`http://a.example:${plain}/`, header).text, /^plain 127\.0\.0\.1:\d+$/);
	assert.match(curl(`https://a.example:${secure}/`, header, '--http1.1').text, /^HTTP\/1\.1 127\.0\.0\.1:\d+$/);
	assert.match(curl(`https://a.example:${secure}/`, header, '--http2').text, /^HTTP\/2\.0 127\.0\.0\.1:\d+$/);
});

peers('connections without one are closed', () => {
	assert.not.equal(curl(`http://a.example:${plain}/`).status, 0);
	assert.not.equal(curl(`https://a.example:${secure}/`).status, 0);
});

peers.run();
