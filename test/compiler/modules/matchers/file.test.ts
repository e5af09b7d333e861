/** The `file` matcher over real files. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { HttpError } from '../../../../compiler/exchange/http-error.ts';
import type { Leases } from '../../../../compiler/exchange/leases.ts';
import { createFileReader } from '../../../../runtime/files/file-reader.ts';
import { bodyText, buildTestSite, fakeExchange } from '../../fake-exchange.ts';

const base = mkdtempSync(path.join(tmpdir(), 'svc-file-matcher-'));
process.on('exit', () => rmSync(base, { recursive: true, force: true }));
const root = path.join(base, 'root');
mkdirSync(path.join(root, 'folder/deep'), { recursive: true });
for (const [name, text, time] of [
	['root/index.html', 'index', 1000],
	['root/a.txt', 'aa', 3000],
	['root/b.txt', 'b', 2000],
	['root/star*.txt', 'star', 500],
	['root/with space.txt', 'x', 500],
	['root/folder/one.txt', '1', 500],
	['root/folder/deep/two.txt', '2', 500],
	['root/app.php', 'php', 500],
	['outside.txt', 'secret', 500],
] as const) {
	const file = path.join(base, name);
	writeFileSync(file, text);
	utimesSync(file, time, time);
}
symlinkSync(path.join(base, 'outside.txt'), path.join(root, 'link.txt'));
symlinkSync(path.join(root, 'a.txt'), path.join(root, 'inside.txt'));

const reader = createFileReader();
const leases: Leases = { lease: kind => (kind === 'files' ? reader : { record() {} }) as never };

/** Returns the values of the placeholders `{file_match.*}`, or `no` if the matcher does not hold. */
function fileMatch(fields: object, target = '/', variables: object = {}): string {
	const x = fakeExchange({ target });
	const body =
		'{http.matchers.file.relative} {http.matchers.file.type} {http.matchers.file.remainder}|{http.matchers.file.absolute}';
	buildTestSite(
		[
			{ handler: 'set_variables', variables: { root, ...variables } },
			{ handler: 'respond', body, when: { type: 'file', ...fields } },
			{ handler: 'respond', body: 'no' },
		],
		{ leases },
	).runSite(x);
	return bodyText(x).replace(/\|.*/s, '').trimEnd();
}

const files = suite('file');

files('without files, the path of the request is tried', () => {
	assert.is(fileMatch({}, '/a.txt'), '/a.txt file');
	assert.is(fileMatch({}, '/missing'), 'no');
	assert.is(fileMatch({}, '/folder/'), '/folder/ directory');
	assert.is(fileMatch({}, '/folder'), 'no');
	assert.is(fileMatch({}, '/a.txt/'), 'no');
	assert.is(fileMatch({}, '/with%20space.txt'), '/with space.txt file');
});

files('the first existing file matches, in order', () => {
	const entries = { files: ['{http.request.uri.path}.html', '{http.request.uri.path}/', 'index.html'] };
	assert.is(fileMatch(entries, '/index'), '/index.html file');
	assert.is(fileMatch(entries, '/folder'), '/folder/ directory');
	assert.is(fileMatch(entries, '/nothing'), '/index.html file');
});

files('no path leads out of the root', () => {
	for (const target of [
		'/../outside.txt',
		'/..%2Foutside.txt',
		'/%2e%2e/outside.txt',
		'/folder/../../outside.txt',
		'/link.txt',
		'/%00',
		'/..%5coutside.txt',
	]) {
		assert.is(fileMatch({}, target), 'no', target);
	}
	assert.is(fileMatch({ files: ['/../../outside.txt'] }), 'no');
	assert.is(fileMatch({ files: ['/*/../../outside.txt', '/\\../outside.txt'] }), 'no');
	assert.is(fileMatch({}, '/inside.txt'), '/inside.txt file');
	assert.is(fileMatch({ files: ['/link*.txt'] }), 'no');
});

files('globs may come from the configuration, never from a request', () => {
	assert.is(fileMatch({ files: ['/[b-z]*.txt'] }), '/b.txt file');
	assert.is(fileMatch({ files: ['/*/one.txt'] }), '/folder/one.txt file');
	assert.is(fileMatch({ files: ['/*/*/two.txt'] }), '/folder/deep/two.txt file');
	assert.is(fileMatch({ files: ['/?.txt'], policy: 'largest_size' }), '/a.txt file');
	assert.is(fileMatch({}, '/*.txt'), 'no');
	assert.is(fileMatch({}, '/[ab].txt'), 'no');
	assert.is(fileMatch({}, '/star*.txt'), '/star*.txt file');
	assert.is(fileMatch({ files: ['/*/{http.request.uri.path.0}.txt'] }, '/*'), 'no');
	assert.is(fileMatch({ files: ['/f*r/'] }), '/folder/ directory');
});

files('each policy selects its file', () => {
	const entries = { files: ['missing', 'index.html', 'b.txt', 'a.txt'] };
	assert.is(fileMatch({ ...entries, policy: 'smallest_size' }), '/b.txt file');
	assert.is(fileMatch({ ...entries, policy: 'largest_size' }), '/index.html file');
	assert.is(fileMatch({ ...entries, policy: 'most_recently_modified' }), '/a.txt file');
	assert.is(fileMatch({ ...entries, policy: 'first_exist' }), '/index.html file');
	assert.is(fileMatch({ files: ['missing', 'gone'], policy: 'smallest_size' }), 'no');
	assert.is(fileMatch({ files: ['missing', '/not/there.php'], policy: 'first_exist_fallback' }), '/not/there.php file');
	assert.is(fileMatch({ files: ['a.txt', '/not/there.php'], policy: 'first_exist_fallback' }), '/a.txt file');
});

files('a slash from a placeholder is significant where documented, as in expressions', () => {
	const rendered = { files: ['{http.request.uri.path}', '/index.html'], slashes: 'rendered' };
	assert.is(fileMatch(rendered, '/folder/'), '/folder/ directory');
	assert.is(fileMatch(rendered, '/folder'), '/index.html file');
	assert.is(fileMatch(rendered, '/a.txt/'), '/index.html file');
	assert.is(fileMatch({ ...rendered, slashes: undefined }, '/folder/'), '/index.html file');
	assert.is(fileMatch({ ...rendered, slashes: undefined }, '/a.txt/'), '/a.txt file');
	const expression = (text: string, target: string) => {
		const x = fakeExchange({ target });
		buildTestSite(
			[
				{ handler: 'set_variables', variables: { root } },
				{
					handler: 'respond',
					body: '{http.matchers.file.relative}',
					when: { type: 'expression', expression: text },
				},
			],
			{ leases },
		).runSite(x);
		return bodyText(x);
	};
	assert.is(expression("file({path}, '/index.html')", '/folder/'), '/folder/');
	assert.is(expression("file({'try_files': [{path} + '/', '/a.txt']})", '/folder'), '/folder/');
	assert.is(expression("file({path}, '/index.html')", '/folder'), '/index.html');
});

files('the last entry may match any existing entry, or none', () => {
	const last = (name: string, more = 'missing') => fileMatch({ files: [more, name], policy: 'first_exist_last_any' });
	assert.is(last('/not/there.php'), 'no');
	assert.is(last('/folder'), '/folder file');
	assert.is(last('/folder/'), '/folder/ file');
	assert.is(last('/a.txt'), '/a.txt file');
	assert.is(last('/a.txt/'), 'no');
	assert.is(last('/fold*'), '/folder file');
	assert.is(last('/a.txt', '/folder'), '/a.txt file');
	assert.is(last('/link.txt'), 'no');
});

files('an entry that is a status raises its error when reached', () => {
	assert.is(fileMatch({ files: ['{http.request.uri.path}', '=404'] }, '/a.txt'), '/a.txt file');
	for (const [status, policy] of [
		[404, 'first_exist'],
		[503, 'first_exist_fallback'],
	] as const) {
		assert.throws(
			() => fileMatch({ files: ['missing', `=${status}`], policy }),
			(error: unknown) => error instanceof HttpError && error.status === status,
		);
	}
	assert.is(fileMatch({ files: ['=404', 'a.txt'], policy: 'largest_size' }), '/a.txt file');
	assert.is(fileMatch({ files: ['{http.request.uri.query.f}'] }, '/?f==404'), 'no');
	assert.throws(() => fileMatch({ files: ['=100'] }), /not an error status/);
});

files('paths are split after a segment', () => {
	const split = { split_path: ['.php'] };
	assert.is(fileMatch(split, '/app.php/x/y'), '/app.php file /x/y');
	assert.is(fileMatch(split, '/app.PHP/x'), 'no');
	assert.is(fileMatch(split, '/app.phpx/x'), 'no');
	assert.is(fileMatch(split, '/app.php'), '/app.php file');
	assert.is(fileMatch({ ...split, files: ['{http.request.uri.path}'] }, '/app.php/*'), '/app.php file /*');
});

files('the root may be set or come from the variable', () => {
	assert.is(fileMatch({ root: path.join(root, 'folder'), files: ['one.txt'] }), '/one.txt file');
	assert.is(fileMatch({ files: ['one.txt'] }, '/', { root: path.join(root, 'folder') }), '/one.txt file');
	assert.throws(
		() => fileMatch({ root: `${root}/{http.request.uri.query.d}`, files: ['outside.txt'] }, '/?d=..'),
		(error: unknown) => error instanceof HttpError && error.status === 400,
	);
	assert.is(fileMatch({ files: ['a.txt'] }, '/', { fs: 'other' }), 'no');
	assert.is(fileMatch({ files: ['a.txt'] }, '/', { fs: 'default' }), '/a.txt file');
});

files('placeholders give the absolute path, and nothing before a match', () => {
	const x = fakeExchange({});
	buildTestSite(
		[
			{
				handler: 'respond',
				body: '[{http.matchers.file.relative}]',
				when: { type: 'not', of: { type: 'file', root, files: ['none'] } },
			},
		],
		{ leases },
	).runSite(x);
	assert.is(bodyText(x), '[{http.matchers.file.relative}]');
	const y = fakeExchange({});
	buildTestSite(
		[{ handler: 'respond', body: '{http.matchers.file.absolute}', when: { type: 'file', root, files: ['a.txt'] } }],
		{ leases },
	).runSite(y);
	assert.is(bodyText(y), path.join(root, 'a.txt'));
});

files.run();
