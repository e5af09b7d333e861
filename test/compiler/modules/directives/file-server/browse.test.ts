/** Folder listings and precompressed sidecar files, over real sockets. */
import { mkdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { type IncomingHttpHeaders, request } from 'node:http';
import path from 'node:path';
import { brotliCompressSync, gunzipSync, gzipSync } from 'node:zlib';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, type ServerProcess, serve, temporaryFolder } from '../../../../harness.ts';

interface Answer {
	readonly status: number;
	readonly headers: IncomingHttpHeaders;
	readonly body: Buffer;
	readonly text: string;
}

const HOSTILE = [
	'<script>alert(1).txt',
	'<img src=x onerror=alert(1)>.txt',
	'"quoted" & \'single\'.txt',
	'100%.txt',
	'new\nline.txt',
	'\u202Etxt.exe',
	'a:b.txt',
	'?query#hash.txt',
];

const folder = temporaryFolder();
const root = path.join(folder, 'site');
let port = 0;
let server: ServerProcess | undefined;

function ask(target: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> {
	return new Promise((resolve, reject) => {
		const sent = request({ host: '127.0.0.1', port, path: target, headers, method, agent: false }, response => {
			const pieces: Buffer[] = [];
			response.on('data', piece => pieces.push(piece));
			response.on('end', () => {
				const body = Buffer.concat(pieces);
				resolve({ status: response.statusCode!, headers: response.headers, body, text: body.toString() });
			});
		});
		sent.on('error', reject);
		sent.end();
	});
}

async function names(target: string, headers: Record<string, string> = {}): Promise<string[]> {
	const { text } = await ask(target, { Accept: 'application/json', ...headers });
	return JSON.parse(text).map(({ name }: { name: string }) => name);
}

const browse = suite('listings and sidecars');

browse.before(async () => {
	mkdirSync(path.join(root, 'docs/deep'), { recursive: true });
	mkdirSync(path.join(root, 'hostile'));
	mkdirSync(path.join(root, 'indexed'));
	mkdirSync(path.join(root, '.git'));
	for (const [name, size] of [
		['b10.txt', 10],
		['b9.txt', 900],
		['A.txt', 50],
		['secret.bak', 1],
	] as const) {
		writeFileSync(path.join(root, 'docs', name), 'x'.repeat(size));
	}
	utimesSync(path.join(root, 'docs/A.txt'), 1_700_000_000, 1_700_000_000);
	for (const name of HOSTILE) writeFileSync(path.join(root, 'hostile', name), name);
	writeFileSync(path.join(root, 'indexed/index.html'), 'the index');
	writeFileSync(path.join(folder, 'outside.txt'), 'outside');
	symlinkSync(path.join(folder, 'outside.txt'), path.join(root, 'docs/leads-out'));
	symlinkSync('A.txt', path.join(root, 'docs/link'));
	symlinkSync('secret.bak', path.join(root, 'docs/link-to-hidden'));
	writeFileSync(path.join(root, 'app.js'), 'plain');
	writeFileSync(path.join(root, 'app.js.gz'), gzipSync('zipped'));
	writeFileSync(path.join(root, 'app.js.br'), brotliCompressSync('brotli'));
	writeFileSync(path.join(root, 'app.js.etag'), '"of-its-own"\n');
	writeFileSync(path.join(root, 'only.css'), 'plain css');
	writeFileSync(
		path.join(folder, 'list.tpl'),
		'{{.Path}}|{{.NumFiles}}|{{range .Items}}{{.Name}}:{{.HumanSize}} {{end}}|{{.Host}}',
	);
	[port] = (await freePorts(1)) as [number];
	const file = path.join(folder, 'Configfile');
	writeFileSync(
		file,
		`{\n\tthreads 1\n}\nhttp://127.0.0.1:${port} {
	root ${root}
	handle_path /custom/* {
		file_server {
			browse ../list.tpl {
				sort size desc
			}
		}
	}
	handle_path /links/* {
		file_server {
			browse {
				reveal_symlinks
				file_limit 2
			}
		}
	}
	handle {
		file_server browse {
			hide .git *.bak
			precompressed
			etag_file_extensions .sha256 .etag
		}
	}
}
`.replace('../list.tpl', path.join(folder, 'list.tpl')),
	);
	server = await serve([file], port);
});
browse.after(async () => {
	await server?.stop();
});

browse(
	'a folder with an index serves the index; one without is listed, after a redirect to add the slash',
	async () => {
		assert.is((await ask('/indexed/')).text, 'the index');
		const redirect = await ask('/docs?sort=size');
		assert.is(redirect.status, 308);
		assert.is(redirect.headers.location, '/docs/?sort=size');
		const page = await ask('/docs/');
		assert.is(page.status, 200);
		assert.is(page.headers['content-type'], 'text/html; charset=utf-8');
		assert.match(page.headers['content-security-policy'] as string, /default-src 'none'/);
		assert.is(page.headers.vary, 'Accept, Accept-Encoding');
		assert.match(page.text, /<a href="\.\/deep\/"><bdi>deep<\/bdi>\/<\/a>/);
		assert.is((await ask('/none/')).status, 404);
		assert.is((await ask('/docs/', {}, 'POST')).status, 405);
	},
);

browse(
	'names are sorted naturally with folders first; hidden entries and links that leave the root are omitted',
	async () => {
		assert.equal(await names('/docs/'), ['deep/', 'A.txt', 'b9.txt', 'b10.txt', 'link']);
		assert.not((await names('/')).some(name => name.startsWith('.git')));
		assert.is((await ask('/.git/')).status, 404);
		assert.is((await ask('/.git')).status, 404);
		assert.equal(await names('/docs/?sort=size&order=desc'), ['b9.txt', 'link', 'A.txt', 'b10.txt', 'deep/']);
		assert.is((await names('/docs/?sort=time'))[0], 'A.txt');
		assert.equal(await names('/docs/?sort=name&limit=2&offset=1'), ['b9.txt', 'b10.txt']);
		assert.equal(await names('/docs/?filter=B1'), ['b10.txt']);
		assert.equal(
			await names('/docs/', { Cookie: 'sort=size; order=desc' }),
			await names('/docs/?sort=size&order=desc'),
		);
		assert.equal(await names('/docs/?sort=nonsense'), await names('/docs/'));
		assert.is((await ask('/docs/?limit=x')).status, 400);
		const remembered = (await ask('/docs/?sort=size&order=asc')).headers['set-cookie']!;
		assert.is(remembered.length, 2);
		assert.match(remembered[0]!, /^sort=size; Path=\/; Max-Age=\d+; SameSite=Lax; HttpOnly$/);
	},
);

browse('programs get JSON and terminals get plain text, with the same entries as the page', async () => {
	const { text } = await ask('/docs/', { Accept: 'application/json' });
	const [deep, a] = JSON.parse(text);
	assert.is(deep.is_dir, true);
	assert.is(a.size, 50);
	assert.is(a.url, './A.txt');
	assert.is(a.mod_time, '2023-11-14T22:13:20.000Z');
	const plain = await ask('/docs/', { Accept: 'text/plain' });
	assert.match(plain.text, /^Name +Size +Modified +Mode\n/);
	assert.match(plain.text, /A\.txt +50 +2023-11-14T22:13:20\.000Z +-rw/);
});

browse('names with markup, quotes, escapes or right-to-left text are harmless, and link to their files', async () => {
	const page = await ask('/hostile/');
	assert.not.match(page.text, /<script|<img/i);
	const links = [...page.text.matchAll(/<td><a href="([^"]+)"/g)].map(match => match[1]!.replaceAll('&#39;', "'"));
	assert.is(links.length, HOSTILE.length + 1);
	for (const link of links.filter(one => one !== '../')) {
		const answer = await ask(`/hostile/${link.slice(2)}`);
		assert.is(answer.status, 200, link);
		assert.ok(HOSTILE.includes(answer.text), link);
	}
	const plain = await ask('/hostile/', { Accept: 'text/plain' });
	assert.not.match(plain.text, /\u202E/);
	assert.is(plain.text.trim().split('\n').length, HOSTILE.length + 2);
	const filtered = await ask('/hostile/?filter=%22%3E%3Cscript%3E');
	assert.not.match(filtered.text, /"><script>/);
});

browse('a listing supports conditional requests, and HEAD has the same fields', async () => {
	const { headers, body } = await ask('/docs/');
	const again = await ask('/docs/', { 'If-Modified-Since': headers['last-modified']! });
	assert.is(again.status, 304);
	// A visitor who has chosen another order after the first request must not get a 304 for the old page.
	const chosen = await ask('/docs/', { 'If-Modified-Since': headers['last-modified']!, Cookie: 'sort=size' });
	assert.is(chosen.status, 200);
	assert.is(chosen.headers['last-modified'], undefined);
	assert.is(chosen.headers['cache-control'], 'private, no-cache');
	const head = await ask('/docs/', {}, 'HEAD');
	assert.is(Number(head.headers['content-length']), body.length);
});

browse('a listing can use a template of the site, with all page functions', async () => {
	const { text } = await ask('/custom/docs/');
	assert.match(text, /^\/custom\/docs\/\|\d\|b9\.txt:900 B /);
	assert.match(text, /\|127\.0\.0\.1$/);
});

browse('link targets and entry limits apply only if configured', async () => {
	assert.is((await names('/links/docs/')).length, 2);
	const { text } = await ask('/docs/');
	assert.not.match(text, /→/);
});

browse(
	'a client gets a sidecar in a coding that it accepts, under the type and name of the original file',
	async () => {
		for (const [accepted, coding] of [
			['gzip', 'gzip'],
			['gzip, br', 'br'],
			['zstd', undefined],
			['zstd, gzip', 'gzip'],
			['br;q=0.1, gzip', 'gzip'],
		] as const) {
			const answer = await ask('/app.js', { 'Accept-Encoding': accepted });
			assert.is(answer.headers['content-encoding'], coding, accepted);
			assert.is(answer.headers['content-type'], 'text/javascript; charset=utf-8');
			assert.is(answer.headers.vary, 'Accept-Encoding');
			if (coding === 'gzip') assert.is(gunzipSync(answer.body).toString(), 'zipped');
		}
		assert.is((await ask('/only.css', { 'Accept-Encoding': 'gzip' })).text, 'plain css');
		assert.is((await ask('/app.js.gz')).headers['content-encoding'], undefined);
	},
);

browse('each coding has its own entity tag, and the original file uses its sidecar tag file', async () => {
	const plain = await ask('/app.js');
	assert.is(plain.headers.etag, '"of-its-own"');
	const zipped = await ask('/app.js', { 'Accept-Encoding': 'gzip' });
	assert.is.not(zipped.headers.etag, plain.headers.etag);
	const again = await ask('/app.js', { 'Accept-Encoding': 'gzip', 'If-None-Match': zipped.headers.etag! });
	assert.is(again.status, 304);
	assert.is((await ask('/app.js', { 'If-None-Match': '"of-its-own"' })).status, 304);
});

browse.run();
