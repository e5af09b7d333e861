/** `svc manpage` writes a page for every command and guide, and one for all directives, matchers and global options. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { COMMANDS } from '../../../cli/commands/index.ts';
import { TOPICS } from '../../../cli/manual/topics.ts';
import { balancers } from '../../../compiler/modules/providers/balancers/index.ts';
import { directives } from '../../../compiler/modules/registry/directives.ts';
import { matchers } from '../../../compiler/modules/registry/matchers.ts';
import { options } from '../../../compiler/modules/registry/options.ts';
import { runCommand, temporaryFolder } from '../../harness.ts';

const folder = temporaryFolder();
const manpageResult = await runCommand(['manpage', '--directory', folder]);
const page = (name: string): string => readFileSync(path.join(folder, name), 'utf8');

const manual = suite('manual pages');

manual('there is a page for each command and guide, one for svc and one for the language', () => {
	const names = [
		'svc.1',
		'svc-configfile.5',
		...COMMANDS.map(({ name }) => `svc-${name}.1`),
		...TOPICS.map(topic => `svc-${topic}.7`),
	].sort();
	assert.equal(readdirSync(folder).sort(), names);
	assert.is(manpageResult.stdout, `${names.length} manual pages written to ${folder}.\n`);
	assert.is(manpageResult.status, 0);
});

manual('every directive, matcher, option and balancing policy has a heading, its usage and its summary', () => {
	const text = page('svc-configfile.5');
	const plain = text.replaceAll('\\%', '').replaceAll('\\-', '-');
	const headings = new Set([...plain.matchAll(/^\.SS "(.*)"$/gm)].map(([, name]) => name));
	const expected = [
		...directives.map(({ names, id }) => names.configfile[0] ?? names.compatfile[0] ?? id),
		...options.map(({ names, id }) => names.configfile[0] ?? names.compatfile[0] ?? id),
		...matchers.map(({ id }) => id),
		...balancers.map(({ id }) => id),
	];
	assert.equal(
		expected.filter(name => !headings.has(name)),
		[],
	);
	for (const { usage } of [...directives, ...options, ...matchers]) {
		const start = usage.split(/[…\\"'^~`]/, 1)[0]!;
		assert.ok(plain.includes(`\n\\fB${start}`), usage);
	}
});

manual('the page of a command has the same contents as its help, without internal options', () => {
	const text = page('svc-run.1').replaceAll('\\%', '').replaceAll('\\-', '-');
	assert.match(text, '\\fB-c\\fR, \\fB--config\\fR \\fICONFIG\\fR\nConfiguration file');
	assert.not.match(text, 'report-fd');
});

manual('pages are ASCII and contain no leftover Markdown', () => {
	for (const name of readdirSync(folder)) {
		const text = page(name);
		assert.not.match(text, /[^\n\x20-\x7e]/, name);
		assert.not.match(text, /`|^\|/m, name);
	}
});

manual('a missing output folder is an error and is not created', async () => {
	const missing = path.join(folder, 'none');
	const result = await runCommand(['manpage', '--directory', missing]);
	assert.is(result.status, 1);
	assert.is(result.stderr, `error: \`${missing}\` is not an existing folder; create it first.\n`);
	assert.not(readdirSync(folder).includes('none'));
});

manual.run();
