/** `svc diff` reports a body as unknown if it comes from an upstream, a file that is not read, or a running server. */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { compile } from '../../../compiler/compiler.ts';
import { type ConfigurationDiff, diffConfigurations } from '../../../compiler/diff/configuration-diff.ts';
import { diffAsJson, diffFromJson, renderDiff, renderDiffAsMarkdown } from '../../../compiler/diff/render-diff.ts';
import { diskReader } from '../../../runtime/compile/disk-reader.ts';
import { dryRunEnvironment } from '../../../runtime/compile/dry-run-environment.ts';
import { meaningDifference } from '../../../runtime/compile/meaning-difference.ts';
import { temporaryFolder } from '../../harness.ts';

const folder = temporaryFolder();
mkdirSync(path.join(folder, 'site'));
writeFileSync(path.join(folder, 'site/page.html'), '<p>{{placeholder "http.request.method"}}</p>\n');

const site = (lines: string): string => `http://:8080 {\n${lines}\n}\n`;

function compiled(lines: string) {
	const { plan, document, locate } = compile(
		{ format: 'configfile', text: site(lines), name: 'config' },
		diskReader(folder),
	);
	return { plan: plan!, document: document!, locate };
}

function diff(before: string, after: string): Promise<ConfigurationDiff> {
	return diffConfigurations(compiled(before), compiled(after), dryRunEnvironment(folder));
}

/** Compares two configurations as a running server does, without reading files. */
async function runningDiff(before: string, after: string): Promise<ConfigurationDiff> {
	const result = await meaningDifference(compiled(before).document, compiled(after).document, folder);
	return diffFromJson(result);
}

/** Returns the changes that concern one aspect, such as `status`. */
function changesOf({ changes }: ConfigurationDiff, name: string) {
	return changes.flatMap(({ aspects }) => aspects.filter(aspect => aspect.name === name));
}

const unknownParts = suite('parts of answers that are not known');

unknownParts('the body that an upstream sends', async () => {
	const found = await diff('reverse_proxy 127.0.0.1:9000', 'respond "hi"');
	const expected = { name: 'body', before: 'unknown (sent by the upstream)', after: '"hi"', unknown: ['before'] };
	assert.equal(changesOf(found, 'body'), [expected]);
	const [aspects] = diffAsJson(found).changes.map(change => change.aspects);
	assert.equal(
		aspects!.filter(({ name }) => name === 'body'),
		[expected],
	);
	assert.match(renderDiff(found, 'old', 'new'), '   body: unknown (sent by the upstream) → "hi"\n');
	assert.match(renderDiffAsMarkdown(found, 'old', 'new'), '| body | `unknown (sent by the upstream)` | `"hi"` |\n');
});

unknownParts('an upstream in place of an empty body: the upstream is shown, and no body', async () => {
	// The change already shows if the upstream is assumed to send an empty body, too.
	const found = await diff('respond "" 200', 'reverse_proxy 127.0.0.1:9000');
	assert.is(changesOf(found, 'upstream').length, 1);
	assert.equal(changesOf(found, 'body'), []);
});

unknownParts('a body of an upstream that a step changes: the assumed one, and what becomes of it', async () => {
	const proxy = 'reverse_proxy 127.0.0.1:9000 {\n\theader_down Content-Type text/plain\n}';
	const bodies = changesOf(await diff(proxy, `replace from to\n${proxy}`), 'body');
	assert.equal(bodies, [
		{
			name: 'body',
			before: 'unknown (sent by the upstream)',
			after: 'unknown (sent by the upstream; "from the upstream" would become "to the upstream")',
			unknown: ['before', 'after'],
		},
	]);
});

unknownParts('bodies that are known although an upstream is asked', async () => {
	const failing = (text: string): string => `reverse_proxy 127.0.0.1:9000\nhandle_errors 502 {\n\trespond "${text}"\n}`;
	assert.equal(changesOf(await diff(failing('one'), failing('two')), 'body'), [
		{ name: 'body', before: '"one"', after: '"two"' },
	]);
	const handled = (text: string): string =>
		`reverse_proxy 127.0.0.1:9000 {\n\t@all status 2xx\n\thandle_response @all {\n\t\trespond "${text}"\n\t}\n}`;
	assert.equal(changesOf(await diff(handled('one'), handled('two')), 'body'), [
		{ name: 'body', before: '"one"', after: '"two"' },
	]);
	const copied =
		'reverse_proxy 127.0.0.1:9000 {\n\t@all status 2xx\n\thandle_response @all {\n\t\tcopy_response\n\t}\n}';
	assert.equal(changesOf(await diff(handled('one'), copied), 'body')[0], {
		name: 'body',
		before: '"one"',
		after: 'unknown (sent by the upstream)',
		unknown: ['after'],
	});
});

unknownParts('measurements of a running server', async () => {
	assert.equal(changesOf(await diff('metrics', 'respond "hi"'), 'body'), [
		{ name: 'body', before: 'unknown (measured by the running server)', after: '"hi"', unknown: ['before'] },
	]);
});

unknownParts('files and template pages: known where they are read', async () => {
	const files = 'root site\ntemplates\nfile_server';
	const found = changesOf(await diff(`${files}\n`, 'respond "hi"'), 'body');
	assert.ok(
		found.some(({ before }) => before === '"<p>GET</p>\\n"'),
		JSON.stringify(found),
	);
	assert.ok(found.every(({ unknown }) => unknown === undefined));
});

unknownParts('files and template pages that a running server does not read', async () => {
	for (const lines of ['root site\nfile_server', 'root site\ntemplates\nfile_server']) {
		const found = await runningDiff(lines, 'respond "hi"');
		assert.equal(changesOf(found, 'body')[0], {
			name: 'body',
			before: 'unknown (files are not read)',
			after: '"hi"',
			unknown: ['before'],
		});
		assert.equal(changesOf(found, 'status')[0], {
			name: 'status',
			before: 'unknown (files are not read)',
			after: '200',
			unknown: ['before'],
		});
		assert.ok(found.changes.flatMap(({ aspects }) => aspects).every(({ before }) => before !== '500'));
		assert.equal((await runningDiff(lines, lines)).changes, []);
	}
	// A status that a configuration sets is not mistaken for the status of a file.
	assert.is(changesOf(await runningDiff('root site\nfile_server', 'respond "" 500'), 'status')[0]?.after, '500');
});

unknownParts('a folder that this machine cannot read is named', async () => {
	const { blindSpots } = await diff('root /no/such/folder\nfile_server', 'respond "hi"');
	assert.equal(blindSpots, ['the files in /no/such/folder are not known, as this machine cannot read the folder']);
	assert.equal((await diff('root site\nfile_server', 'respond "hi"')).blindSpots, []);
});

unknownParts.run();
