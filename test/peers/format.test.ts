/** Our formatter gives the same output as Caddy's, and `patch` applies the diffs that `svc fmt --diff` prints. */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { formatText } from '../../compiler/syntax/format.ts';
import { Random } from '../compiler/syntax/random-text.ts';
import { runCommand, temporaryFolder } from '../harness.ts';

/**
 * Fragments that the compared release (2.6) formats like later releases: no backquote, heredoc or escape, no line that starts
 * with a placeholder, and no `#` inside a word. Something follows every brace, because the compared release drops a brace at the
 * end of a file.
 */
const PARTS: readonly string[] = [
	...[' ', '  ', '\t', '\n', '\n', '\n\n\n', '\r\n', ' # c {\n', ' #c\n', 'x {$X} ', 'foo{bar}', ' "a  b" ', ' "{" '],
	...['name {\n', 'name{\n', 'a', 'b ', ' x\n{\na ', '\n}\n', ' }\n', ' } b\n', 'import x\n', '/x/* ', ' "x\n y"\n'],
];

const peers = suite('formatting beside peers');

peers('texts that its release supports are formatted like by Caddy', () => {
	const random = new Random(20261121);
	const differences: string[] = [];
	for (let round = 0; round < 300; round++) {
		let text = '';
		for (let count = random.below(16) + 1; count > 0; count--) text += random.of(PARTS);
		text += 'end';
		const peer = spawnSync('caddy', ['fmt', '-'], { input: text, encoding: 'utf8' }).stdout;
		const ours = formatText(text);
		if (ours !== peer) differences.push(JSON.stringify({ text, ours, peer }));
	}
	assert.equal(differences, []);
});

peers('patch applies the diff of several files, some without a final line break', async () => {
	const folder = temporaryFolder();
	const files: { [name: string]: string } = {
		'a.configfile': ':80   {\n}',
		'b.configfile': ':80 {\n}\n',
		'c.configfile': `:80 {\n${'\trespond ok\n'.repeat(20)}  respond ok\n${'\trespond ok\n'.repeat(20)}\n\n}`,
	};
	for (const [name, text] of Object.entries(files)) writeFileSync(path.join(folder, name), text);
	const { stdout, status } = await runCommand(['fmt', '--diff', '.'], { cwd: folder });
	assert.is(status, 1);
	const patch = spawnSync('patch', ['-p0', '--fuzz=0'], { cwd: folder, input: stdout, encoding: 'utf8' });
	assert.is(patch.status, 0, patch.stdout + patch.stderr);
	for (const [name, text] of Object.entries(files)) {
		assert.is(readFileSync(path.join(folder, name), 'utf8'), formatText(text), name);
	}
});

peers.run();
