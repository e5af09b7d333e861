/** `file_server` lines and the documents they compile to, in both languages. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type CompileResult, compile } from '../../../../../compiler/compiler.ts';
import type { Dialect } from '../../../../../compiler/dialects/dialect.ts';
import { ReadError, type Reader } from '../../../../../compiler/source/reader.ts';

const reader: Reader = {
	readText(path) {
		if (path === '/etc/svc/parts/files') return 'file_server {\n\troot www\n\thide drafts/x\n}\n';
		throw new ReadError('ENOENT', path);
	},
	readBytes(path) {
		throw new ReadError('ENOENT', path);
	},
	list: () => [],
	kind: path => (path === '/etc/svc/parts/files' ? 'file' : undefined),
	env: () => undefined,
	workingDirectory: '/work',
};

function site(
	lines: string,
	format: Dialect = 'configfile',
	path: string | undefined = '/etc/svc/Configfile',
): CompileResult {
	return compile({ format, text: `:8080 {\n${lines}\n}\n`, name: 'Configfile', path }, reader);
}

function stepOf(compiled: CompileResult): Record<string, unknown> {
	assert.equal(
		compiled.diagnostics.filter(one => one.severity === 'error'),
		[],
	);
	return { ...compiled.document!.sites![0]!.pipeline[0]! };
}

const lowering = suite('file_server: lowering');

for (const dialect of ['configfile', 'compatfile'] as const) {
	lowering(`every option, in a ${dialect}`, () => {
		const lines = `file_server {
			root ./www
			hide .git *.bak private/x
			hide /abs/y
			index a.html b.html
			status 203
			pass_thru
			disable_canonical_uris
			follow_symlinks
		}`;
		const compat = dialect === 'compatfile';
		assert.equal(stepOf(site(lines, dialect)), {
			handler: 'files',
			root: compat ? './www' : '/etc/svc/www',
			index: ['a.html', 'b.html'],
			status: 203,
			canonical_uris: false,
			...(compat ? { trailing_slash: 'ignored' } : {}),
			pass_thru: true,
			follow_symlinks: true,
			hide: ['.git', '*.bak', compat ? 'private/x' : '/etc/svc/private/x', '/abs/y', '/etc/svc/Configfile'],
		});
	});
}

lowering('without options it hides the configuration file; a configuration without a file hides nothing', () => {
	assert.equal(stepOf(site('file_server')), { handler: 'files', hide: ['/etc/svc/Configfile'] });
	const fromInput = compile(
		{ format: 'configfile', text: ':8080 {\nfile_server {\nroot www\n}\n}\n', name: '<stdin>' },
		reader,
	);
	assert.equal(stepOf(fromInput), { handler: 'files', root: '/work/www' });
});

lowering('paths in an imported file are relative to that file, and the file is hidden', () => {
	assert.equal(stepOf(site('import parts/files')), {
		handler: 'files',
		root: '/etc/svc/parts/www',
		hide: ['/etc/svc/parts/drafts/x', '/etc/svc/Configfile', '/etc/svc/parts/files'],
	});
});

lowering('a placeholder at the start of a path is kept', () => {
	const step = stepOf(site('file_server {\nroot {http.vars.base}/www\nstatus {http.error.status_code}\n}'));
	assert.is(step.root, '{http.vars.base}/www');
	assert.is(step.status, '{http.error.status_code}');
});

lowering('a file system other than the disk is rejected by name, and an unknown word as unknown', () => {
	for (const dialect of ['configfile', 'compatfile'] as const) {
		const { document, diagnostics } = site('file_server {\nfs f\n}', dialect);
		assert.is(document, undefined);
		assert.equal(
			diagnostics.map(one => `${one.code} ${one.message}`),
			['fs/unavailable The file system `f` is not supported by this build; only `default` is.'],
		);
		assert.is(stepOf(site('file_server {\nfs default\n}', dialect)).fs, undefined);
		const unknown = site('file_server {\nindx a\n}', dialect).diagnostics;
		assert.equal(
			unknown.map(one => one.code),
			['directive/unknown-subdirective'],
		);
	}
});

lowering('all mistakes are reported at once', () => {
	const lines = 'file_server {\nroot\nroot a b\nstatus 99\nhide\npass_thru x\nindex {\na\n}\n}';
	const { diagnostics } = site(lines);
	assert.ok(diagnostics.filter(one => one.severity === 'error').length >= 6, String(diagnostics.length));
});

lowering('JSON is checked against the schema', () => {
	const errors = (step: object): number => {
		const text = JSON.stringify({ sites: [{ addresses: [':8080'], pipeline: [{ handler: 'files', ...step }] }] });
		return compile({ format: 'json', text, name: 'x.json' }, reader).diagnostics.length;
	};
	assert.is(errors({ root: '/srv', index: ['a'], hide: ['b'], status: 200, follow_symlinks: true }), 0);
	for (const step of [
		{ root: 1 },
		{ index: 'a' },
		{ hide: [''] },
		{ status: 99 },
		{ pass_thru: 'yes' },
		{ browse: true },
	]) {
		assert.ok(errors(step) > 0, JSON.stringify(step));
	}
});

lowering.run();
