/** The `files` handler on real files: responses, redirects, conditions, ranges and path safety. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { bodyLength, isStream } from '../../../../../compiler/exchange/body.ts';
import { Exchange, Request } from '../../../../../compiler/exchange/exchange.ts';
import { HeaderList } from '../../../../../compiler/exchange/header-list.ts';
import { HttpError } from '../../../../../compiler/exchange/http-error.ts';
import type { FileReader } from '../../../../../compiler/exchange/leases.ts';
import { FileError } from '../../../../../compiler/exchange/leases.ts';
import type { CompileContext } from '../../../../../compiler/modules/contract/compile-context.ts';
import { type FilesStep, fileServer } from '../../../../../compiler/modules/directives/file-server/file-server.ts';
import { compileFilesStep } from '../../../../../compiler/modules/directives/file-server/files-handler.ts';
import { createFileReader } from '../../../../../runtime/files/file-reader.ts';

const scratch = mkdtempSync(join(tmpdir(), 'svc-file-server-'));
const root = join(scratch, 'www');
const config = join(root, 'Configfile');
mkdirSync(join(root, 'docs'), { recursive: true });
mkdirSync(join(root, 'text'));
mkdirSync(join(root, 'bare'));
mkdirSync(join(root, '.git'));
mkdirSync(join(scratch, 'private'));
writeFileSync(join(root, 'index.html'), '<h1>home</h1>');
writeFileSync(join(root, 'docs/index.html'), '<h1>docs</h1>');
writeFileSync(join(root, 'text/index.txt'), 'text');
writeFileSync(join(root, 'hello.txt'), 'hello, world');
writeFileSync(join(root, 'empty.txt'), '');
writeFileSync(join(root, 'noext'), 'bytes');
writeFileSync(join(root, 'big.bin'), Buffer.alloc(200_000, 'x'));
writeFileSync(join(root, 'old.txt'), 'old');
writeFileSync(join(root, '.git/config'), 'secret');
writeFileSync(join(root, 'späte grüße.txt'), 'unicode');
writeFileSync(config, 'example.com');
writeFileSync(join(scratch, 'private/secret.txt'), 'secret');
symlinkSync(join(scratch, 'private/secret.txt'), join(root, 'out.txt'));
symlinkSync('hello.txt', join(root, 'inside.txt'));
symlinkSync('Configfile', join(root, 'config-link.txt'));
symlinkSync('.git', join(root, 'git-link'));
symlinkSync('www', join(scratch, 'alias'));
utimesSync(join(root, 'hello.txt'), 1_700_000_000, 1_700_000_000);
utimesSync(join(root, 'old.txt'), 1, 1);
const ETAG = `"${(1_700_000_000n * 1_000_000_000n).toString(36)}-${(12).toString(36)}"`;
const DATE = 'Tue, 14 Nov 2023 22:13:20 GMT';

/** Returns a compile context with only the members that the handler uses. The placeholder `{name}` is the variable `name`. */
function compileContext(reader: FileReader): CompileContext {
	return {
		lease: () => reader,
		template: (text: string) => {
			const name = /\{(.+)\}/.exec(text)?.[1];
			if (name === undefined) return { constant: text, render: () => text };
			return {
				constant: undefined,
				render: (x: Exchange) => text.replace(`{${name}}`, String(x.variable(name) ?? '')),
			};
		},
		refuse: (message: string) => {
			throw new Error(message);
		},
	} as unknown as CompileContext;
}

interface Asked {
	method?: string;
	headers?: string[];
	/** The path as the client sent it, if it was rewritten to the path under test. */
	received?: string;
	query?: string;
	variables?: Record<string, string>;
	error?: number;
	preset?: string[];
}

interface Answer {
	status: number;
	headers: HeaderList;
	text: string;
	length: number | undefined;
	passed: boolean;
	/** The error that the handler threw, if any. */
	error: HttpError | undefined;
}

async function ask(
	step: Partial<FilesStep>,
	path: string,
	asked: Asked = {},
	reader = createFileReader(),
): Promise<Answer> {
	let passed = false;
	const handler = compileFilesStep({ handler: 'files', root, ...step }, compileContext(reader), () => {
		passed = true;
	});
	const received = {
		method: asked.method ?? 'GET',
		path: asked.received ?? path,
		query: asked.query,
		authority: 'example.com',
	};
	const request = new Request(received, 'http', 'example.com', new HeaderList(asked.headers ?? []), null);
	request.path = path;
	const connection = {
		remoteAddress: '127.0.0.1',
		remotePort: 1,
		localAddress: '127.0.0.1',
		localPort: 80,
		tls: undefined,
	};
	const x = new Exchange('HTTP/1.1', connection, received, request, { sendInterim() {}, watch() {} }, 0);
	for (const [name, value] of Object.entries(asked.variables ?? {})) x.variables.set(name, value);
	if (asked.error !== undefined) x.error = { status: asked.error, message: '' };
	const preset = asked.preset ?? [];
	for (let i = 0; i < preset.length; i += 2) x.response.headers.add(preset[i]!, preset[i + 1]!);
	let error: HttpError | undefined;
	try {
		await handler(x);
	} catch (thrown) {
		assert.instance(thrown, HttpError, String(thrown));
		error = thrown as HttpError;
	}
	const { status, headers, body } = x.response;
	let text = '';
	if (isStream(body)) {
		for (let piece = await body.pull(); piece !== null; piece = await body.pull())
			text += Buffer.from(piece).toString();
	} else if (body !== null) text = Buffer.from(body).toString();
	return { status: error?.status ?? status, headers, text, length: bodyLength(body), passed, error };
}

const serving = suite('file_server: serving');

serving('a file is served with its type, validators and length', async () => {
	const answer = await ask({}, '/hello.txt');
	assert.is(answer.status, 200);
	assert.is(answer.text, 'hello, world');
	assert.equal(
		[...answer.headers],
		[
			['Vary', 'Accept-Encoding'],
			['Etag', ETAG],
			['Last-Modified', DATE],
			['Accept-Ranges', 'bytes'],
			['Content-Type', 'text/plain; charset=utf-8'],
		],
	);
});

serving('a large file is served completely', async () => {
	const answer = await ask({}, '/big.bin');
	assert.is(answer.length, 200_000);
	assert.is(answer.text.length, 200_000);
});

serving('an empty file is served', async () => {
	const answer = await ask({}, '/empty.txt');
	assert.is(answer.status, 200);
	assert.is(answer.length, 0);
});

serving('an unknown extension has no content type', async () => {
	assert.is((await ask({}, '/noext')).headers.get('content-type'), undefined);
});

serving('fields set earlier are kept', async () => {
	const preset = ['Content-Type', 'text/x-mine', 'Etag', '"mine"', 'Vary', 'Origin'];
	const answer = await ask({}, '/hello.txt', { preset });
	assert.is(answer.headers.get('content-type'), 'text/x-mine');
	assert.equal(answer.headers.getAll('etag'), ['"mine"']);
	assert.equal(answer.headers.getAll('vary'), ['Origin', 'Accept-Encoding']);
	assert.is((await ask({}, '/hello.txt', { preset, headers: ['If-None-Match', '"mine"'] })).status, 304);
});

serving('a file modified at Unix time 1 has no validators', async () => {
	const answer = await ask({}, '/old.txt');
	assert.not.ok(answer.headers.has('etag'));
	assert.not.ok(answer.headers.has('last-modified'));
});

serving('HEAD has the length and no body', async () => {
	for (const path of ['/hello.txt', '/big.bin']) {
		const answer = await ask({}, path, { method: 'HEAD', headers: ['Range', 'bytes=0-1'] });
		assert.is(answer.status, 200);
		assert.is(answer.text, '');
		assert.is(answer.length, path === '/big.bin' ? 200_000 : 12);
	}
});

serving('the root is that of the block, or the variable, or the working directory', async () => {
	assert.is((await ask({ root: `${root}/` }, '/hello.txt')).text, 'hello, world');
	const step = { handler: 'files' as const };
	const handlerOnly = { ...step, root: undefined } as unknown as Partial<FilesStep>;
	assert.is((await ask(handlerOnly, '/hello.txt', { variables: { root: `${root}/` } })).text, 'hello, world');
	assert.is((await ask(handlerOnly, '/package.json')).status, 200);
	assert.is(
		(await ask({ root: `${scratch}/{site}` }, '/hello.txt', { variables: { site: 'www' } })).text,
		'hello, world',
	);
});

serving('a root made from the request cannot leave its folder', async () => {
	for (const site of ['..', '../..', 'x/../../private']) {
		assert.is((await ask({ root: `${root}/{site}` }, '/www/hello.txt', { variables: { site } })).status, 400);
		const variables = { root: `${root}/${site}` };
		assert.is((await ask({ root: undefined } as never, '/www/hello.txt', { variables })).status, 400);
	}
});

serving('POST and OPTIONS are not allowed, but a missing file is still a 404', async () => {
	for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'get']) {
		const answer = await ask({}, '/hello.txt', { method });
		assert.is(answer.status, 405);
		assert.equal(answer.error?.headers, [['Allow', 'GET, HEAD']]);
		assert.is((await ask({}, '/docs', { method })).status, 405);
	}
	assert.is((await ask({}, '/nothing', { method: 'POST' })).status, 404);
});

serving('a configured status disables conditions and ranges', async () => {
	const headers = ['If-None-Match', '*', 'Range', 'bytes=0-1'];
	for (const status of [410, '410', '{code}']) {
		const answer = await ask({ status }, '/hello.txt', { headers, variables: { code: '410' } });
		assert.is(answer.status, 410);
		assert.is(answer.text, 'hello, world');
		assert.not.ok(answer.headers.has('accept-ranges'));
	}
	assert.is((await ask({ status: '{code}' }, '/hello.txt', { variables: { code: 'x' } })).status, 500);
	assert.throws(() =>
		compileFilesStep({ handler: 'files', status: 'abc' }, compileContext(createFileReader()), () => {}),
	);
});

serving('in error routes, the response has the status of the error, and any method is accepted', async () => {
	const answer = await ask({}, '/hello.txt', { error: 404, method: 'POST', headers: ['If-None-Match', '*'] });
	assert.is(answer.status, 404);
	assert.is(answer.text, 'hello, world');
	assert.is((await ask({ status: 200 }, '/hello.txt', { error: 404 })).status, 200);
});

serving('a missing file passes through only if configured', async () => {
	assert.is((await ask({}, '/nothing')).status, 404);
	for (const path of ['/nothing', '/bare/', '/.git/config', '/out.txt', '/a%2fb']) {
		assert.ok((await ask({ pass_thru: true, hide: ['.git'] }, path)).passed, path);
	}
	assert.not.ok((await ask({ pass_thru: true }, '/hello.txt')).passed);
});

/** The methods of a reader that the handler does not use in these tests. */
const UNUSED_METHODS = {
	stat: () => undefined,
	list: () => [],
	entries: () => Promise.reject(new Error('no folders here')),
	readStart: () => undefined,
};

serving('each error of the reader has its status', async () => {
	const table = { not_found: 404, directory: 404, forbidden: 403, invalid: 400, unavailable: 503 } as const;
	for (const [reason, status] of Object.entries(table)) {
		for (const later of [false, true]) {
			const failing: FileReader = {
				open: () => {
					const error = new FileError(reason as keyof typeof table, 'no');
					if (later) return Promise.reject(error);
					throw error;
				},
				kind: () => undefined,
				...UNUSED_METHODS,
			};
			const answer = await ask({}, '/x', {}, failing);
			assert.is(answer.status, status);
			if (status === 503) assert.match(answer.error!.headers[0]!.join(': '), /^Retry-After: [234]$/);
		}
	}
});

serving("a file that shrinks before it is read is a 503 without the file's fields", async () => {
	const closed: string[] = [];
	const shrinking: FileReader = {
		open: () => ({
			path: '/x',
			source: 'disk',
			relativePath: '/x',
			size: 10,
			modified: { seconds: 5, nanoseconds: 0 },
			body: () => {
				throw new FileError('unavailable', 'shorter');
			},
			close: () => closed.push('closed'),
		}),
		kind: () => 'file',
		...UNUSED_METHODS,
	};
	const answer = await ask({}, '/x', {}, shrinking);
	assert.is(answer.status, 503);
	assert.is(answer.headers.size, 0);
	assert.equal(closed, ['closed']);
});

serving.run();

const folders = suite('file_server: folders and slashes');
const REDIRECTS: readonly [path: string, location: string, query?: string][] = [
	['/docs', '/docs/'],
	['/docs', '/docs/?a=1&b', 'a=1&b'],
	['/docs', '/docs/', ''],
	['//docs', '/docs/'],
	['/hello.txt/', '/hello.txt'],
	['///hello.txt//', '/hello.txt'],
	['/x/../docs', '/x/../docs/'],
	['/%64ocs', '/%64ocs/'],
];
for (const [path, location, query] of REDIRECTS) {
	folders(`${path} redirects to ${location}`, async () => {
		for (const method of ['GET', 'HEAD']) {
			const answer = await ask({}, path, { method, ...(query === undefined ? {} : { query }) });
			assert.is(answer.status, 308);
			assert.is(answer.headers.get('location'), location);
		}
	});
}

folders('a redirect stays on the same host', async () => {
	mkdirSync(join(root, '\\evil.example'), { recursive: true });
	writeFileSync(join(root, '\\evil.example/index.html'), 'x');
	for (const path of ['/\\evil.example', '//\\evil.example', '/%5Cevil.example']) {
		assert.is((await ask({}, path)).headers.get('location')?.toLowerCase(), '/%5cevil.example/');
	}
	const answer = await ask({}, '//evil.example/../docs');
	assert.is(answer.headers.get('location'), '/evil.example/../docs/');
});

folders('an index file is served for its folder', async () => {
	assert.is((await ask({}, '/')).text, '<h1>home</h1>');
	assert.is((await ask({}, '/docs/')).text, '<h1>docs</h1>');
	assert.is((await ask({}, '/docs/.')).text, '<h1>docs</h1>');
	assert.is((await ask({}, '/text/')).text, 'text');
	assert.is((await ask({ index: ['none', '{name}'] }, '/', { variables: { name: 'hello.txt' } })).text, 'hello, world');
	assert.is((await ask({ index: ['{name}'] }, '/', { variables: { name: '../private/secret.txt' } })).status, 400);
});

folders('a folder without an index is a 404', async () => {
	for (const path of ['/bare', '/bare/', '/']) assert.is((await ask({ index: ['none'] }, path)).status, 404);
});

folders('a path whose last element was rewritten is not redirected', async () => {
	assert.is((await ask({}, '/docs', { received: '/old' })).text, '<h1>docs</h1>');
	assert.is((await ask({}, '/docs', { received: '/app/docs' })).headers.get('location'), '/app/docs/');
	assert.is((await ask({}, '/hello.txt/', { received: '/old/' })).status, 404);
	assert.is((await ask({}, '/hello.txt', { received: '/old/' })).status, 200);
});

folders('the slash in the original request decides, because relative links depend on it', async () => {
	// The tested paths are those to which `try_files {path} {path}/` would have rewritten the received paths.
	assert.is((await ask({}, '/docs/', { received: '/docs' })).headers.get('location'), '/docs/');
	assert.is((await ask({}, '/hello.txt', { received: '/hello.txt/' })).headers.get('location'), '/hello.txt');
	assert.is((await ask({}, '/docs/', { received: '/app/docs' })).headers.get('location'), '/app/docs/');
	assert.is((await ask({}, '/docs', { received: '/docs/' })).text, '<h1>docs</h1>');
	assert.is((await ask({ canonical_uris: false }, '/docs/', { received: '/docs' })).text, '<h1>docs</h1>');
});

folders('with canonical URIs disabled, nothing is redirected', async () => {
	assert.is((await ask({ canonical_uris: false }, '/docs')).text, '<h1>docs</h1>');
	assert.is((await ask({ canonical_uris: false }, '/hello.txt/')).status, 404);
	const ignored = { canonical_uris: false, trailing_slash: 'ignored' } as const;
	assert.is((await ask(ignored, '/hello.txt/')).text, 'hello, world');
	assert.is((await ask(ignored, '/hello.txt//')).text, 'hello, world');
	assert.is((await ask(ignored, '/nothing/')).status, 404);
});

folders('a file below a dot segment is a 404, not an endless redirect', async () => {
	for (const path of ['/hello.txt/.', '/hello.txt/%2e']) assert.is((await ask({}, path)).status, 404);
});
folders.run();

const conditions = suite('file_server: conditions and ranges');
const TABLE: readonly [name: string, headers: string[], status: number, body?: string, contentRange?: string][] = [
	['same tag', ['If-None-Match', ETAG], 304],
	['other tag', ['If-None-Match', '"x"'], 200, 'hello, world'],
	['same date', ['If-Modified-Since', DATE], 304],
	['tag wins over date', ['If-None-Match', '"x"', 'If-Modified-Since', DATE], 200, 'hello, world'],
	['If-Match fails', ['If-Match', '"x"'], 412],
	['If-Unmodified-Since fails', ['If-Unmodified-Since', 'Mon, 13 Nov 2023 22:13:20 GMT'], 412],
	['If-Match fails before the range', ['If-Match', '"x"', 'Range', 'bytes=0-1'], 412],
	['304 wins over the range', ['If-None-Match', ETAG, 'Range', 'bytes=0-1'], 304],
	['first bytes', ['Range', 'bytes=0-4'], 206, 'hello', 'bytes 0-4/12'],
	['last bytes', ['Range', 'bytes=-5'], 206, 'world', 'bytes 7-11/12'],
	['beyond the end', ['Range', 'bytes=12-'], 416, '', 'bytes */12'],
	['two that touch', ['Range', 'bytes=0-1,2-4'], 206, 'hello', 'bytes 0-4/12'],
	['If-Range tag', ['Range', 'bytes=0-4', 'If-Range', ETAG], 206, 'hello', 'bytes 0-4/12'],
	['If-Range other tag', ['Range', 'bytes=0-4', 'If-Range', '"x"'], 200, 'hello, world'],
	['If-Range date', ['Range', 'bytes=0-4', 'If-Range', DATE], 206, 'hello', 'bytes 0-4/12'],
	['If-Range and beyond the end', ['Range', 'bytes=99-', 'If-Range', '"x"'], 200, 'hello, world'],
	['malformed', ['Range', 'bytes=z'], 200, 'hello, world'],
	['other unit', ['Range', 'lines=1-2'], 200, 'hello, world'],
];
for (const [name, headers, status, body = '', contentRange] of TABLE) {
	conditions(name, async () => {
		const answer = await ask({}, '/hello.txt', { headers });
		assert.is(answer.status, status);
		assert.is(answer.text, body);
		assert.is(answer.headers.get('content-range'), contentRange);
		assert.is(answer.headers.has('content-type'), status === 200 || status === 206);
		if (status === 304) assert.is(answer.headers.get('etag'), ETAG);
	});
}

conditions('several ranges are sent as multipart with the correct length', async () => {
	const answer = await ask({}, '/big.bin', { headers: ['Range', 'bytes=0-9,1000-80999,-5'] });
	assert.is(answer.status, 206);
	const boundary = /^multipart\/byteranges; boundary=([0-9a-f]{32})$/.exec(
		answer.headers.get('content-type') ?? '',
	)?.[1];
	assert.ok(boundary);
	assert.is(answer.text.length, answer.length);
	assert.is(answer.text.split(`--${boundary}`).length, 5);
	assert.match(answer.text, /Content-Range: bytes 1000-80999\/200000\r\n/);
	assert.not.ok(answer.headers.has('content-range'));
});

conditions('an abusive set of ranges gets the whole file', async () => {
	const answer = await ask({}, '/big.bin', { headers: ['Range', `bytes=${'0-199999,'.repeat(20)}0-`] });
	assert.is(answer.status, 200);
	assert.is(answer.length, 200_000);
});
conditions.run();

const safety = suite('file_server: path safety');
const PATHS: readonly [path: string, plain: number, following: number][] = [
	['/inside.txt', 200, 200],
	['/out.txt', 404, 200],
	['/sp%C3%A4te%20gr%C3%BC%C3%9Fe.txt', 200, 200],
	['/%2e%2e/private/secret.txt', 404, 404],
	['/../private/secret.txt', 404, 404],
	['/docs/../../private/secret.txt', 404, 404],
	['/..%2fprivate%2fsecret.txt', 404, 404],
	['/docs%2findex.html', 404, 404],
	['/docs/%2e%2e%2fhello.txt', 404, 404],
	['/..\\private\\secret.txt', 404, 404],
	['/..%5cprivate%5csecret.txt', 404, 404],
	['/%252e%252e/private/secret.txt', 404, 404],
	['/%c0%ae%c0%ae/private/secret.txt', 404, 404],
	['/hello.txt%00', 400, 400],
	['/hello.txt%00.html', 400, 400],
	['/hello.txt\0', 400, 400],
	['/%', 400, 400],
	['/hello%2', 400, 400],
	['/.git/config', 404, 404],
	['/.%67it/config', 404, 404],
	['/docs/../.git/config', 404, 404],
	['//.git//config', 404, 404],
	['/git-link/config', 404, 404],
	['/Configfile', 404, 404],
	['/%43onfigfile', 404, 404],
	['/docs/../Configfile', 404, 404],
	['/config-link.txt', 404, 404],
	['/hello.txt/x', 400, 400],
	['/hello.txt/x/y/', 400, 400],
	[`/hello.txt${'/x'.repeat(500)}`, 400, 400],
	[`/docs${'/x'.repeat(500)}`, 404, 404],
	['/docs/index.html/index.html', 400, 400],
	['/docs/none/x', 404, 404],
	['/inside.txt/x', 400, 400],
	['/out.txt/x', 404, 400],
	['/.git/config/x', 404, 404],
	['/git-link/config/x', 404, 404],
	['/Configfile/x', 404, 404],
	['/config-link.txt/x', 404, 404],
	[`/${'a'.repeat(5000)}`, 404, 404],
	['*', 404, 404],
];
for (const [path, plain, following] of PATHS) {
	safety(`${JSON.stringify(path.slice(0, 40))}`, async () => {
		const hide = ['.git', config];
		assert.is((await ask({ hide }, path)).status, plain);
		assert.is((await ask({ hide, follow_symlinks: true }, path)).status, following);
	});
}
safety('looking up the file that a long path starts with examines few folders', async () => {
	const reader = createFileReader();
	let looks = 0;
	const kind: FileReader['kind'] = (...asked) => {
		looks += 1;
		return reader.kind(...asked);
	};
	assert.is((await ask({}, `/none${'/x'.repeat(1500)}`, {}, { ...reader, kind })).status, 404);
	assert.ok(looks <= 12, `${looks}`);
	looks = 0;
	assert.is((await ask({}, '/docs/none', {}, { ...reader, kind })).status, 404);
	assert.is(looks, 1);
});
safety('the configuration file stays hidden under another name of its folder', async () => {
	assert.is((await ask({ root: join(scratch, 'alias'), hide: [config] }, '/Configfile')).status, 404);
	assert.is((await ask({ hide: [join(scratch, 'alias/Configfile')] }, '/Configfile')).status, 404);
});
safety('a hidden index file is skipped', async () => {
	assert.is((await ask({ hide: ['index.html'] }, '/')).status, 404);
	assert.is((await ask({ hide: ['*.html'], index: ['index.html', 'hello.txt'] }, '/')).text, 'hello, world');
});
safety('a placeholder in a pattern is expanded', async () => {
	assert.is((await ask({ hide: ['{what}'] }, '/hello.txt', { variables: { what: 'hello.txt' } })).status, 404);
	assert.is((await ask({ hide: ['{what}'] }, '/hello.txt', { variables: { what: '' } })).status, 200);
});
safety.after(() => rmSync(scratch, { recursive: true, force: true }));
safety.run();

const module = suite('file_server: module');
module('the module is documented in both languages', () => {
	assert.is(fileServer.id, 'files');
	assert.equal(fileServer.names, { configfile: ['file_server'], compatfile: ['file_server'] });
	assert.ok(fileServer.documentation.includes('follow_symlinks'));
});
module.run();
