/** Completion and hover describe every module in the module's own words. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { registryOf } from '../../../compiler/lower/registry.ts';
import { completionsAt } from '../../../compiler/queries/completion.ts';
import { hoverAt } from '../../../compiler/queries/hover.ts';
import { usageArguments } from '../../../compiler/queries/usage.ts';
import { Workspace } from '../../../compiler/queries/workspace.ts';
import type { Reader } from '../../../compiler/source/reader.ts';

const MAIN = '/workspace/Configfile';
const EMPTY_READER: Reader = {
	workingDirectory: '/workspace',
	readText: () => '',
	readBytes: () => new Uint8Array(),
	list: () => [],
	kind: () => undefined,
	env: () => undefined,
};

/** Opens a text in a workspace. The character `|` in `marked` stands for the cursor. */
function cursorIn(marked: string): { workspace: Workspace; offset: number } {
	const workspace = new Workspace(EMPTY_READER, []);
	workspace.setOpenText(MAIN, { text: marked.replace('|', ''), dialect: 'configfile' });
	return { workspace, offset: marked.indexOf('|') };
}

function labels(marked: string): string[] {
	const { workspace, offset } = cursorIn(marked);
	return completionsAt(workspace, workspace.syntaxOf(MAIN)!, offset).map(({ label }) => label);
}

const words = suite('words of an editor');

for (const dialect of ['configfile', 'compatfile'] as const) {
	words(`every directive, matcher and option of a ${dialect} is offered and explained`, () => {
		const { directives, matchers, options } = registryOf(dialect);
		const workspace = new Workspace(EMPTY_READER, []);
		const check = (names: Iterable<string>, before: string, after: string): void => {
			workspace.setOpenText(MAIN, { text: `${before}${after}`, dialect });
			const offered = completionsAt(workspace, workspace.syntaxOf(MAIN)!, before.length).map(({ label }) => label);
			for (const name of names) {
				assert.ok(offered.includes(name), `${name} is offered`);
				workspace.setOpenText(MAIN, { text: `${before}${name}${after}`, dialect });
				const hover = hoverAt(workspace, workspace.syntaxOf(MAIN)!, before.length + 1);
				assert.ok(hover && hover.text.length > name.length, `${name} is explained`);
			}
		};
		check(directives.keys(), 'a.test {\n\t', '\n}\n');
		check(matchers.keys(), 'a.test {\n\t@name ', '\n}\n');
		check(options.keys(), '{\n\t', '\n}\n');
	});
}

words('words that modules take in blocks and as arguments are offered', () => {
	assert.ok(labels('a.test {\n\treverse_proxy :80 {\n\t\t|\n\t}\n}\n').includes('health_uri'));
	assert.ok(
		labels('a.test {\n\treverse_proxy :80 {\n\t\ttransport http {\n\t\t\t|\n\t\t}\n\t}\n}\n').includes('dial_timeout'),
	);
	assert.ok(labels('a.test {\n\treverse_proxy :80 {\n\t\tlb_policy |\n\t}\n}\n').includes('least_conn'));
	assert.ok(labels('a.test {\n\tlog {\n\t\t|\n\t}\n}\n').includes('output'));
	assert.ok(labels('{\n\tservers {\n\t\t|\n\t}\n}\n').includes('protocols'));
	assert.ok(labels('a.test {\n\twhen path /x {\n\t} else {\n\t\t|\n\t}\n}\n').includes('respond'));
	assert.ok(labels('a.test {\n\twhen not |\n}\n').includes('method'));
	assert.ok(labels('a.test {\n\tredir /a /b p|\n}\n').includes('permanent'));
	assert.equal(labels('a.test {\n\trespond "two |words"\n}\n'), []);
	assert.equal(labels('# a comm|ent\n'), []);
});

words('usage lines are read', () => {
	const shown = (usage: string): unknown =>
		usageArguments(usage).map(({ text, words: literal, valueNames: values }) => [text, literal, values]);
	assert.equal(shown('redir [matcher] <to> [<status> | temporary | html]'), [
		['<to>', [], ['to']],
		['[<status> | temporary | html]', ['temporary', 'html'], ['status']],
	]);
	assert.equal(shown('respond [matcher] <status> | <body> [<status>] [{ close }]'), [
		['<status> | <body>', [], ['status', 'body']],
		['[<status>]', [], ['status']],
	]);
	assert.equal(shown('abort [matcher]'), []);
	for (const dialect of ['configfile', 'compatfile'] as const) {
		const { directives, matchers, options } = registryOf(dialect);
		for (const { usage } of [...directives.values(), ...matchers.values(), ...options.values()]) {
			for (const { text, start, end } of usageArguments(usage)) assert.is(usage.slice(start, end), text);
		}
	}
});

words.run();
