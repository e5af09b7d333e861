/**
 * The clients of real editors with the files of cli/editors/ and `svc language-server`: diagnostics, a fix, completion, hover,
 * going to a definition, renaming in two files, and formatting.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ROOT, SVC, temporaryFolder } from '../harness.ts';

const editors = suite('editors');

/** Writes an executable `svc` to a folder. Returns an environment whose PATH contains that folder. */
function installProgram(folder: string): NodeJS.ProcessEnv {
	const programs = path.join(folder, 'programs');
	mkdirSync(programs);
	writeFileSync(path.join(programs, 'svc'), `#!/bin/sh\nexec ${SVC} "$@"\n`, { mode: 0o755 });
	const home = { HOME: folder, XDG_STATE_HOME: folder, XDG_CACHE_HOME: folder };
	return { ...process.env, ...home, PATH: `${programs}:${process.env.PATH}` };
}

/** Writes a configuration of two files with an unknown directive. */
function writeFiles(folder: string): void {
	writeFileSync(path.join(folder, 'common.conf'), '(common) {\n\tencode gzip\n}\n');
	const text = 'import common.conf\n\nhttp://a.test {\n\tuse common\n  rspond hi\n}\n';
	writeFileSync(path.join(folder, 'Configfile'), text);
}

/** Runs an editor until it ends, and returns what its script has written. */
async function runEditor(
	program: string,
	args: readonly string[],
	folder: string,
): Promise<{ readonly [what: string]: unknown; readonly completions: readonly string[] }> {
	const result = path.join(folder, 'result.json');
	const editor = spawn(program, args, {
		cwd: folder,
		env: { ...installProgram(folder), FOLDER: folder, RESULT: result },
		stdio: ['ignore', 'pipe', 'pipe'],
	});
	let output = '';
	for (const stream of [editor.stdout, editor.stderr]) {
		stream.on('data', data => {
			output += data;
		});
	}
	await once(editor, 'exit');
	assert.ok(existsSync(result), output);
	const came = JSON.parse(readFileSync(result, 'utf8')) as { [what: string]: unknown } & { completions: string[] };
	assert.is(came.failure, undefined, output);
	return came;
}

editors('Neovim', async () => {
	const folder = temporaryFolder();
	writeFiles(folder);
	const script = path.join(import.meta.dirname, 'editor.lua');
	const load = `set runtimepath^=${path.join(ROOT, 'cli/editors/vim')} | filetype plugin on | syntax on`;
	const args = ['--headless', '-u', 'NONE', '-i', 'NONE', '--cmd', load, '-c', `luafile ${script}`];
	const came = await runEditor('nvim', args, folder);
	assert.is(came.filetype, 'configfile');
	// The highlight groups of the words `use`, `common` and `rspond`.
	assert.equal(came.colors, ['svcKeyword', 'svcSnippet', 'svcProperty']);
	assert.equal(came.diagnostics, ['directive/unknown']);
	assert.is(came.action, 'Change `rspond` to `respond`');
	assert.equal(came.left, ['format/unformatted']);
	assert.ok(came.completions.includes('common'));
	assert.match(String(came.hover), 'respond [matcher]');
	assert.equal(came.jump, ['common.conf', [1, 1]]);
	assert.equal(came.renamed, ['\tuse renamed', '(renamed) {']);
	assert.equal(came.formatted, ['import common.conf', '', 'http://a.test {', '\tuse renamed', '\trespond hi', '}']);
});

editors('Emacs', async () => {
	const folder = temporaryFolder();
	writeFiles(folder);
	const mode = ['-L', path.join(ROOT, 'cli/editors/emacs')];
	const script = path.join(import.meta.dirname, 'editor.el');
	const args = ['--batch', '--eval', '(package-initialize)', ...mode, '--load', script];
	const came = await runEditor('emacs', args, folder);
	assert.is(came.mode, 'svc-mode');
	// The faces (text styles of Emacs) of the words `use` and `common`.
	assert.equal(came.colors, ['font-lock-keyword-face', 'font-lock-constant-face']);
	assert.match(String(came.trace), 'respond');
	assert.equal(came.diagnostics, ['directive/unknown']);
	assert.is(came.action, 'Change `rspond` to `respond`');
	assert.equal(came.left, ['format/unformatted']);
	assert.ok(came.completions.includes('common'));
	assert.is(came.file, 'common.conf');
	assert.equal(came.renamed, [
		'import common.conf\n\nhttp://a.test {\n\tuse renamed\n  respond hi\n}\n',
		'(renamed) {\n\tencode gzip\n}\n',
	]);
	assert.is(came.formatted, 'import common.conf\n\nhttp://a.test {\n\tuse renamed\n\trespond hi\n}\n');
});

editors.run();
