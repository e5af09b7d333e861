/**
 * Access log lines of hostile requests, compared with nginx's: in the format `combined`, and in a text format with the same
 * fields.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, rawExchange, serve, temporaryFolder, until } from '../harness.ts';
import { startNginx } from './nginx-process.ts';

const peers = suite('access log lines, beside nginx');

const HEAD = 'Host: a.example\r\nConnection: close\r\n';
/** The target of each request begins with its number, `/N`, so that the log lines of the two servers can be compared one by one. */
const REQUESTS = [
	`GET /0 HTTP/1.1\r\n${HEAD}\r\n`,
	`GET /1?a=%22b%22&c=[] HTTP/1.1\r\n${HEAD}User-Agent: curl/8.0\r\nReferer: http://b.example/?q="x"\r\n\r\n`,
	`HEAD /2 HTTP/1.1\r\n${HEAD}User-Agent: a\\b "quoted" \xc3\xa9\xff\r\n\r\n`,
	`POST /3 HTTP/1.1\r\n${HEAD}Content-Length: 3\r\nUser-Agent: x" 200 5 "-" "-\r\n\r\nabc`,
	`GET /4 HTTP/1.0\r\nHost: a.example\r\nReferer: \x27'\t'\r\n\r\n`,
	`GET /5/%0a%0D?x=%0d%0a HTTP/1.1\r\n${HEAD}Accept: a\\x0A\r\n\r\n`,
];

peers('lines are the same, and so are their escapes', async () => {
	const [port, nginxPort] = (await freePorts(2)) as [number, number];
	const folder = temporaryFolder();
	writeFileSync(
		path.join(folder, 'Configfile'),
		`http://127.0.0.1:${port}, http://a.example:${port} {
	log {
		output file ours-combined.log
		format combined {
			time_local
		}
	}
	log mine {
		output file ours-mine.log
		format text "{remote_host}|{method}|{uri}|{request>proto}|{header.Host}|{header.Accept}|{status}|{size}"
	}
	respond "twelve bytes"
}
`,
	);
	const nginx = await startNginx(
		folder,
		nginxPort,
		`log_format mine '$remote_addr|$request_method|$request_uri|$server_protocol|$http_host|$http_accept|$status|$body_bytes_sent';
	access_log combined.log combined; access_log mine.log mine;
	server { listen 127.0.0.1:${nginxPort}; location / { default_type text/plain; return 200 "twelve bytes"; } }`,
	);
	const server = await serve(['-c', 'Configfile'], port, { cwd: folder });
	const lines = (name: string): string[] => {
		const file = path.join(folder, name);
		const text = existsSync(file) ? readFileSync(file, 'latin1') : '';
		// Replaces the times, which may differ, and leaves out the lines of port probes.
		const dated = text.replace(/\[\d\d\/[A-Z][a-z]{2}\/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\]/g, '[time]').split('\n');
		const wanted = dated.filter(line => /[ |]\/\d/.test(line));
		return wanted.sort((a, b) => numberOf(a) - numberOf(b));
	};
	try {
		for (const request of REQUESTS) {
			for (const to of [port, nginxPort]) await rawExchange(to, Buffer.from(request, 'latin1'));
		}
		for (const name of ['combined.log', 'mine.log']) {
			await until('all lines', () => [name, `ours-${name}`].every(file => lines(file).length === REQUESTS.length));
			assert.equal(lines(`ours-${name}`), lines(name));
		}
	} finally {
		await server.stop();
		await nginx.stop();
	}
});

function numberOf(line: string): number {
	return Number(/[ |]\/(\d)/.exec(line)![1]);
}

peers.run();
