/**
 * The manual pages in groff, in man and in the index of manual pages: there are no warnings, and each page has its name and
 * summary.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { runCommand, temporaryFolder } from '../harness.ts';

const folder = temporaryFolder();
assert.is((await runCommand(['manpage', '--directory', folder])).status, 0);
const pages = readdirSync(folder).map(name => path.join(folder, name));

const manual = suite('manual pages in their readers');

manual('groff has no warning, for a terminal in ASCII and in UTF-8', () => {
	for (const device of ['ascii', 'utf8']) {
		const result = spawnSync('groff', ['-ww', '-man', `-T${device}`, ...pages], { encoding: 'utf8' });
		assert.is(result.stderr, '');
		assert.is(result.status, 0);
		assert.match(result.stdout, 'SVC-CONFIGFILE(5)');
	}
});

manual('man shows them without a warning', () => {
	const env = { PATH: process.env.PATH, LC_ALL: 'C.UTF-8', MANWIDTH: '80', MAN_KEEP_FORMATTING: '' };
	for (const page of pages) {
		const result = spawnSync('man', ['-l', '--warnings=w', page], { encoding: 'utf8', env });
		assert.is(result.stderr, '', page);
		assert.is(result.status, 0, page);
	}
});

manual('the index finds a name and a summary in each', () => {
	const { stdout } = spawnSync('lexgrog', pages, { encoding: 'utf8' });
	assert.is(stdout.trimEnd().split('\n').length, pages.length);
	assert.not.match(stdout, 'parse failed');
	assert.match(stdout, '"svc-run - Run the server in the foreground"');
});

manual.run();
