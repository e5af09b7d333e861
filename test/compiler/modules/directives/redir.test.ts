/** `redir` without a target: the error suggests an edit for what was probably intended. */

import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { compile } from '../../../../compiler/compiler.ts';
import type { Diagnostic } from '../../../../compiler/diagnostics/diagnostic.ts';
import { applyEdits } from '../../../../compiler/diagnostics/fixes.ts';
import { diskReader } from '../../../../runtime/compile/disk-reader.ts';

const NO_FILES = diskReader('/');

const redirects = suite('redirects without a target');

function redirFindings(
	line: string,
	format: 'configfile' | 'compatfile',
): { text: string; found: readonly Diagnostic[] } {
	const text = `http://:8080 {\n\t@old path /old\n\t${line}\n\trespond @old "ok"\n}\n`;
	const { diagnostics } = compile({ format, text, name: 'site', path: '/site' }, NO_FILES);
	return { text, found: diagnostics.filter(({ code }) => code.startsWith('redirect/')) };
}

for (const [line, mended] of [
	['redir /new 308', 'redir * /new 308'],
	['redir /new permanent', 'redir * /new permanent'],
	['redir 301 /new', 'redir * /new 301'],
	['redir 301 https://a.test{uri}', 'redir https://a.test{uri} 301'],
	['redir @old temporary /new', 'redir @old /new temporary'],
	['redir /new', 'redir * /new'],
] as const) {
	redirects(`${line} becomes ${mended}`, () => {
		const { text, found } = redirFindings(line, 'configfile');
		const first = found[0]!;
		assert.is(first.severity, 'error');
		assert.ok(first.hint?.includes(`\`${mended}\``), first.hint);
		assert.is(applyEdits(text, first.fix!.edits), text.replace(line, mended));
		assert.equal(redirFindings(mended, 'configfile').found, []);
	});
}

redirects('a line without any possible target has no suggested edit', () => {
	for (const line of [
		'redir 308',
		'redir @old 308',
		'redir * 308',
		'redir 308 301',
		'redir * html',
		'redir /new 404',
	]) {
		const { found } = redirFindings(line, 'configfile');
		assert.equal(
			found.map(({ code, severity, fix }) => ({ code, severity, fix })),
			[{ code: 'redirect/target-is-status', severity: 'error', fix: undefined }],
			line,
		);
	}
});

redirects('in the compatible language the line is accepted like in its server, with a warning', () => {
	const { found } = redirFindings('redir /new 308', 'compatfile');
	assert.equal(
		found.map(({ severity }) => severity),
		['warning'],
	);
	assert.is(found[0]!.fix?.safety, 'unsafe');
	assert.is(found[0]!.fix?.edits.length, 1);
});

redirects('similar but valid lines are unchanged', () => {
	for (const line of ['redir /old /new 308', 'redir /old "308"', 'redir https://a.test 308', 'redir @old /308']) {
		assert.equal(redirFindings(line, 'configfile').found, [], line);
	}
});

redirects('words from an expansion have no suggested edit', () => {
	const text = '(to) {\n\tredir {args[0]} 308\n}\nhttp://:8080 {\n\timport to /new\n}\n';
	const { diagnostics } = compile({ format: 'configfile', text, name: 'site', path: '/site' }, NO_FILES);
	const found = diagnostics.find(({ code }) => code === 'redirect/target-is-status');
	assert.is(found!.severity, 'error');
	assert.is(found!.fix, undefined);
});

redirects.run();
