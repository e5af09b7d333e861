/** In the binary, the manual of each directive, matcher, option and lint rule is created when it is read. */
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { build } from 'esbuild';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { MANUAL_MEMBERS_PLUGIN, withManualsAsGetters } from '../../../cli/packaging/manual-members.ts';
import { lintRules } from '../../../compiler/lint/index.ts';
import { directives } from '../../../compiler/modules/registry/directives.ts';
import { matchers } from '../../../compiler/modules/registry/matchers.ts';
import { options } from '../../../compiler/modules/registry/options.ts';
import { ROOT, temporaryFolder } from '../../harness.ts';

/** The lists of everything that has a manual. */
const LISTS: { readonly [name: string]: readonly object[] } = { directives, matchers, options, lintRules };

const manuals = suite('manuals of modules');

manuals('a manual becomes a getter, also if it has lines that look like other members', () => {
	const edited = withManualsAsGetters(
		[
			'export const example = {',
			"\tnames: ['example'],",
			'\tdocumentation: [`Several lines:',
			'  documentation: of a member,',
			"`, 'and more'].join(''),",
			"\tusage: 'example',",
			'};',
		].join('\n'),
	);
	const example = new Function(`${edited.replace(/^export /m, '').replace(/^export \{.*$/ms, '')}; return example;`)();
	assert.equal(Object.keys(example), ['names', 'documentation', 'usage']);
	assert.ok(Object.getOwnPropertyDescriptor(example, 'documentation')!.get);
	assert.is(example.documentation, 'Several lines:\n  documentation: of a member,\nand more');
});

manuals('all manuals are the same in the bundle', async () => {
	const file = path.join(temporaryFolder(), 'lists.cjs');
	const { outputFiles } = await build({
		stdin: {
			contents: `
				export { directives } from './compiler/modules/registry/directives.ts';
				export { matchers } from './compiler/modules/registry/matchers.ts';
				export { options } from './compiler/modules/registry/options.ts';
				export { lintRules } from './compiler/lint/index.ts';
			`,
			resolveDir: ROOT,
		},
		bundle: true,
		write: false,
		format: 'cjs',
		platform: 'node',
		plugins: [MANUAL_MEMBERS_PLUGIN],
	});
	writeFileSync(file, outputFiles[0]!.contents);
	const bundled = createRequire(file)(file) as typeof LISTS;
	for (const [name, expected] of Object.entries(LISTS)) {
		const actual = bundled[name]!;
		assert.is(actual.length, expected.length, name);
		assert.equal(actual.map(manualOf), expected.map(manualOf), name);
	}
	const getterCount = bundled.directives!.filter(
		directive => Object.getOwnPropertyDescriptor(directive, 'documentation')?.get,
	).length;
	assert.ok(getterCount > directives.length / 2, `${getterCount} of ${directives.length}`);
});

function manualOf(module: object): unknown {
	return (module as { readonly documentation?: unknown }).documentation;
}

manuals.run();
