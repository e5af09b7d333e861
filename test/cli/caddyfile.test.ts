/** An unmodified Caddyfile: it is found in its folder, and served from any working directory. */
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { TestAuthority } from '../certificates.ts';
import { freePorts, rawExchange, runCommand, type ServerProcess, serve, temporaryFolder } from '../harness.ts';

const folders = temporaryFolder();
const servers: ServerProcess[] = [];

function folderWith(files: { readonly [name: string]: string }): string {
	const folder = mkdtempSync(path.join(folders, 'case-'));
	for (const [name, text] of Object.entries(files)) {
		mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
		writeFileSync(path.join(folder, name), text);
	}
	return folder;
}

async function served(...args: Parameters<typeof serve>): Promise<ServerProcess> {
	const server = await serve(...args);
	servers.push(server);
	return server;
}

/** Sends a request. Returns the status and body of the response. */
async function fetchAnswer(port: number, target: string, fields = '', body = ''): Promise<string> {
	const length = body === '' ? '' : `Content-Length: ${body.length}\r\n`;
	const head = `${body === '' ? 'GET' : 'POST'} ${target} HTTP/1.1\r\nHost: a\r\n${fields}${length}`;
	const text = await rawExchange(port, `${head}Connection: close\r\n\r\n${body}`);
	return `${text.slice(9, 12)} ${text.slice(text.indexOf('\r\n\r\n') + 4)}`.trim();
}

const OPTIONS = '{\n\tadmin off\n\tauto_https off\n}\n';

const caddyfile = suite('a Caddyfile');
caddyfile.after.each(async () => {
	await Promise.all(servers.splice(0).map(server => server.stop()));
});

caddyfile('is found in its folder, and parsed as a Caddyfile', async () => {
	const [port] = (await freePorts(1)) as [number];
	// If the file were parsed as a Configfile, the first `respond` would answer, and `skip_log` would be unknown.
	const text = `${OPTIONS}:${port} {\n\trespond "sorted last"\n\trespond /first "sorted first"\n\tskip_log /x\n}\n`;
	const folder = folderWith({ Caddyfile: text });
	await served([], port, { cwd: folder });
	assert.is(await fetchAnswer(port, '/first'), '200 sorted first');
	assert.is(await fetchAnswer(port, '/'), '200 sorted last');
});

caddyfile('is used only if there is no Configfile or Compatfile', async () => {
	const [port] = (await freePorts(1)) as [number];
	const site = (body: string): string => `${OPTIONS}:${port} {\n\trespond ${body}\n}\n`;
	const files = { Caddyfile: site('caddyfile'), Compatfile: site('compatfile') };
	await served([], port, { cwd: folderWith(files) });
	assert.is(await fetchAnswer(port, '/'), '200 compatfile');
	await Promise.all(servers.splice(0).map(server => server.stop()));
	await served([], port, { cwd: folderWith({ ...files, Configfile: site('configfile') }) });
	assert.is(await fetchAnswer(port, '/'), '200 configfile');
});

caddyfile('names files relative to the working directory of the server', async () => {
	const [port] = (await freePorts(1)) as [number];
	const folder = folderWith({
		'etc/Caddyfile': `${OPTIONS}import sites/*\n`,
		// Imports are relative to the importing file.
		'etc/sites/one.caddyfile': [
			`:${port} {`,
			'	root * ./public',
			'	log {',
			'		output file logs/access.log',
			'	}',
			'	@other file {',
			'		root more',
			'		try_files {path}',
			'	}',
			'	handle @other {',
			'		root more',
			'		file_server',
			'	}',
			'	handle_path /own/* {',
			'		file_server {',
			'			root own',
			'			hide own/secret/*',
			'		}',
			'	}',
			'	handle {',
			'		templates',
			'		file_server',
			'	}',
			'}',
			'',
		].join('\n'),
		'etc/public/page.html': 'beside the Caddyfile',
		'public/page.html': 'working directory: {{include "part.html"}}',
		'public/part.html': 'its part',
		'more/other.txt': 'other',
		'own/file.txt': 'own',
		'own/secret/file.txt': 'hidden',
	});
	const server = await served(['etc/Caddyfile'], port, { cwd: folder });
	assert.is(await fetchAnswer(port, '/page.html'), '200 working directory: its part');
	assert.is(await fetchAnswer(port, '/other.txt'), '200 other');
	assert.is(await fetchAnswer(port, '/own/file.txt'), '200 own');
	assert.is((await fetchAnswer(port, '/own/secret/file.txt')).slice(0, 3), '404');
	await server.stop();
	assert.match(readFileSync(path.join(folder, 'logs/access.log'), 'utf8'), '/other.txt');
});

caddyfile('without a root serves files of the working directory', async () => {
	const [port] = (await freePorts(1)) as [number];
	const folder = folderWith({
		'etc/Caddyfile': `${OPTIONS}:${port}\nfile_server\n`,
		'etc/page.txt': 'beside the Caddyfile',
		'page.txt': 'working directory',
	});
	await served(['etc/Caddyfile'], port, { cwd: folder });
	assert.is(await fetchAnswer(port, '/page.txt'), '200 working directory');
});

caddyfile('keeps its relative paths when it is adapted for another server', async () => {
	const folder = folderWith({ 'etc/Caddyfile': ':80 {\n\troot * public\n\tfile_server\n}\n' });
	const { stdout } = await runCommand(['adapt', '-c', 'etc/Caddyfile'], { cwd: folder });
	assert.match(stdout, '{"root":"public"}');
});

caddyfile('names certificates relative to the working directory of the server', async () => {
	const [port] = (await freePorts(1)) as [number];
	const authority = await TestAuthority.make();
	const own = await authority.issue({ names: ['localhost'] });
	const client = await authority.issue({ subject: 'CN=client' });
	const folder = folderWith({
		'etc/Caddyfile': [
			'{\n\tadmin off\n\tauto_https disable_redirects\n}',
			`https://localhost:${port} {`,
			'	tls tls/site.pem ./tls/site.key {',
			'		client_auth {',
			'			trust_pool file tls/ca.pem',
			'		}',
			'	}',
			'	respond "hello {tls_client_subject}"',
			'}',
			'',
		].join('\n'),
		'tls/site.pem': own.certificate,
		'tls/site.key': own.key,
		'tls/ca.pem': authority.pem,
	});
	await served(['etc/Caddyfile'], port, { cwd: folder });
	const body = await new Promise<string>((resolve, reject) => {
		const options = { host: '127.0.0.1', port, servername: 'localhost', headers: { Host: `localhost:${port}` } };
		const credentials = { ca: authority.pem, cert: client.certificate, key: client.key, agent: false };
		const sent = request({ ...options, ...credentials }, response => {
			response.setEncoding('utf8');
			let text = '';
			response.on('data', chunk => {
				text += chunk;
			});
			response.on('end', () => resolve(text));
		});
		sent.on('error', reject).end();
	});
	assert.is(body, 'hello CN=client');
});

caddyfile('accepts sizes without a final B', async () => {
	const [port] = (await freePorts(1)) as [number];
	const limited = (path: string, size: string): string =>
		`\thandle ${path} {\n\t\trequest_body {\n\t\t\tmax_size ${size}\n\t\t}\n\t\trespond "{http.request.body}"\n\t}\n`;
	const sites = `${limited('/decimal', '1K')}${limited('/binary', '1ki')}`;
	await served([], port, { cwd: folderWith({ Caddyfile: `${OPTIONS}:${port} {\n${sites}}\n` }) });
	const status = async (target: string, length: number): Promise<string> =>
		(await fetchAnswer(port, target, '', 'x'.repeat(length))).slice(0, 3);
	assert.equal([await status('/decimal', 1000), await status('/decimal', 1001)], ['200', '413']);
	assert.equal([await status('/binary', 1024), await status('/binary', 1025)], ['200', '413']);
});

caddyfile('is refused, and nothing is served, if an unclosed quote swallows the end of a block', async () => {
	const site = ':8080 {\n\trespond "hello\n}\n';
	const { status, stderr } = await runCommand(['run'], { cwd: folderWith({ Caddyfile: OPTIONS + site }) });
	assert.is(status, 1);
	assert.match(stderr, /syntax error: unexpected token 'hello.*', expecting '}', at Caddyfile:6/);
	const validated = await runCommand(['validate'], { cwd: folderWith({ Caddyfile: site.replace('"', '`') }) });
	assert.is(validated.status, 1);
	assert.match(validated.stderr, "expecting '}', at Caddyfile:2");
});

caddyfile('replaces the placeholder of a missing cookie with an empty string', async () => {
	const [port] = (await freePorts(1)) as [number];
	const site = `:${port} {\n\theader X-Cookie "{cookie.session}|"\n\trespond "[{cookie.session}]"\n}\n`;
	await served([], port, { cwd: folderWith({ Caddyfile: OPTIONS + site }) });
	assert.is(await fetchAnswer(port, '/'), '200 []');
	assert.is(await fetchAnswer(port, '/', 'Cookie: session=x\r\n'), '200 [x]');
});

caddyfile.run();
