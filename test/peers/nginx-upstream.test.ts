/** nginx as an upstream and as a reference: bodies in both directions, keep-alive, conditional requests and ranges. */
import { spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, rawExchange, type ServerProcess, serve, temporaryFolder } from '../harness.ts';
import { type NginxProcess, startNginx } from './nginx-process.ts';

const peers = suite('nginx behind and beside');

let nginx: NginxProcess | undefined;
let server: ServerProcess;
let port = 0;
let nginxPort = 0;
let folder = '';
const large = randomBytes(5 << 20);

peers.before(async () => {
	[port, nginxPort] = (await freePorts(2)) as [number, number];
	folder = temporaryFolder();
	const site = path.join(folder, 'site');
	mkdirSync(site);
	writeFileSync(path.join(site, 'large.bin'), large);
	writeFileSync(path.join(site, 'digits.txt'), '0123456789');
	utimesSync(path.join(site, 'digits.txt'), 1_700_000_000, 1_700_000_000);
	nginx = await startNginx(
		folder,
		nginxPort,
		`access_log off; client_max_body_size 64m;
	types { text/plain txt; application/octet-stream bin; }
	server {
		listen 127.0.0.1:${nginxPort};
		root site;
		location /chunked/ { alias site/; gzip on; gzip_types text/plain application/octet-stream; gzip_min_length 1; }
		location /seen { default_type text/plain; return 200 "$request_method $request_uri $http_host $http_x_forwarded_for $connection_requests"; }
	}`,
	);
	writeFileSync(
		path.join(folder, 'Configfile'),
		`http://127.0.0.1:${port} {
	handle_path /proxied/* {
		reverse_proxy 127.0.0.1:${nginxPort}
	}
	root site
	file_server
}
`,
	);
	server = await serve(['Configfile'], port, { cwd: folder });
});

peers.after(async () => {
	await server?.stop();
	await nginx?.stop();
});

/** Runs curl and returns its output as bytes. */
function curl(...args: string[]): Buffer {
	const result = spawnSync('curl', ['-sS', '--max-time', '20', ...args], { maxBuffer: 64 << 20 });
	assert.is(result.status, 0, String(result.stderr));
	return result.stdout;
}

peers('curl gets a complete large file through the proxy, chunked or not', () => {
	const digest = createHash('sha256').update(large).digest('hex');
	for (const url of [
		[`http://127.0.0.1:${port}/proxied/large.bin`],
		['--compressed', `http://127.0.0.1:${port}/proxied/chunked/large.bin`],
		[`http://127.0.0.1:${port}/large.bin`],
	]) {
		assert.is(
			createHash('sha256')
				.update(curl(...url))
				.digest('hex'),
			digest,
			url.join(' '),
		);
	}
});

peers('the upstream sees the request, and its connection is reused', () => {
	const seen = curl(
		`http://127.0.0.1:${port}/proxied/seen?a=b`,
		`http://127.0.0.1:${port}/proxied/seen?a=b`,
	).toString();
	const expected = new RegExp(`^GET /seen\\?a=b 127\\.0\\.0\\.1:${port} 127\\.0\\.0\\.1 \\d+GET .* \\d+$`);
	assert.match(seen, expected);
});

peers('ranges and conditions are answered as nginx answers them', async () => {
	const conditions = [
		'',
		'Range: bytes=0-3',
		'Range: bytes=4-',
		'Range: bytes=-2',
		'Range: bytes=20-',
		'Range: lines=1-2',
		'If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT',
		'If-Modified-Since: Tue, 14 Nov 2023 22:13:19 GMT',
		'If-Unmodified-Since: Tue, 14 Nov 2023 22:13:19 GMT',
		'If-None-Match: "none"',
		'If-Match: "none"',
		'Range: bytes=0-3\r\nIf-Range: Tue, 14 Nov 2023 22:13:20 GMT',
		'Range: bytes=0-3\r\nIf-Range: "none"',
	];
	const answers = async (to: number): Promise<string[]> =>
		Promise.all(
			conditions.map(async fields => {
				const answer = await rawExchange(
					to,
					`GET /digits.txt HTTP/1.1\r\nHost: 127.0.0.1:${to}\r\nConnection: close\r\n${fields}${fields && '\r\n'}\r\n`,
				);
				const status = answer.slice(9, 12);
				const range = /^content-range: (.*)\r$/im.exec(answer)?.[1] ?? '';
				const body = status.startsWith('2') ? answer.slice(answer.indexOf('\r\n\r\n') + 4) : '';
				return `${fields} → ${status} ${range} ${body}`;
			}),
		);
	assert.equal(await answers(port), await answers(nginxPort));
});

peers.run();
