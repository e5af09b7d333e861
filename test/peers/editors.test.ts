/** Editors' own clients, configured as in the README, with `svc language-server`: diagnostics, a fix, completion, hover, a jump, renaming in two files, formatting. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ROOT, SVC, temporaryFolder } from '../harness.ts';

const editors = suite('editors');

/** Writes a block of the README to a file and `svc` to a folder of programs. Returns the environment in which they are found. */
function prepare(folder: string, block: string): NodeJS.ProcessEnv & { CONFIGURATION: string } {
	const readme = readFileSync(path.join(ROOT, 'README.md'), 'utf8');
	const text = readme.split(`\`\`\`${block}\n`)[1]!.split('```')[0]!;
	const configuration = path.join(folder, block.split(' ')[1]!);
	writeFileSync(configuration, text);
	const programs = path.join(folder, 'programs');
	mkdirSync(programs);
	writeFileSync(path.join(programs, 'svc'), `#!/bin/sh\nexec ${SVC} "$@"\n`, { mode: 0o755 });
	const home = { HOME: folder, XDG_STATE_HOME: folder, XDG_CACHE_HOME: folder };
	return { ...process.env, ...home, PATH: `${programs}:${process.env.PATH}`, CONFIGURATION: configuration };
}

/** Writes a configuration of two files with an unknown directive. */
function writeFiles(folder: string): void {
	writeFileSync(path.join(folder, 'common.conf'), '(common) {\n\tencode gzip\n}\n');
	const text = 'import common.conf\n\nhttp://a.test {\n\tuse common\n  rspond hi\n}\n';
	writeFileSync(path.join(folder, 'Configfile'), text);
}

/** Runs an editor until it ends, and returns what its script has written. */
async function run(
	program: string,
	args: readonly string[],
	folder: string,
	block: string,
): Promise<{ readonly [what: string]: unknown; readonly completions: readonly string[] }> {
	const result = path.join(folder, 'result.json');
	const editor = spawn(program, args, {
		cwd: folder,
		env: { ...prepare(folder, block), FOLDER: folder, RESULT: result },
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
	const args = ['--headless', '-u', 'NONE', '-i', 'NONE', '-c', `luafile ${script}`];
	const came = await run('nvim', args, folder, 'lua neovim.lua');
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
	const args = ['--batch', '--eval', '(package-initialize)', '--load', path.join(import.meta.dirname, 'editor.el')];
	const came = await run('emacs', args, folder, 'elisp emacs.el');
	assert.is(came.mode, 'svc-mode');
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
