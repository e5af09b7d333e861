/** In the binary, worker threads load modules without the members that they do not use, such as documentation and schemas. */
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { build } from 'esbuild';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { WORKER_MODULES_PLUGIN, withoutUnusedMembers } from '../../../cli/packaging/worker-modules.ts';
import { HANDLERS } from '../../../compiler/modules/registry/handlers.ts';
import { MATCHERS_BY_TYPE } from '../../../compiler/modules/registry/matchers.ts';
import { ROOT, temporaryFolder } from '../../harness.ts';

const UNUSED = new Set(['documentation', 'lower', 'schema', 'summary']);

const modules = suite('modules of workers');

modules('members are omitted whole, with and without several lines', () => {
	const shortened = withoutUnusedMembers(`
import { lowerWord } from './lower-word.ts';
export const example: Directive = {
	names: { configfile: ['example'] },
	summary: 'One line.',
	documentation: [
		'Several lines.',
		'  documentation: of a member',
	].join('\\n'),
	lower({ line }) {
		if (line) {
			return { lower: lowerWord(line) };
		}
		return undefined;
	},
	schema: { properties: { lower: { type: 'string' } } },
	compile: step => ({
		schema: step.schema,
	}),
	lowerCase: true,
};
export function summary(): string {
	return 'kept';
}
`);
	assert.not.match(shortened, /One line|Several lines|lowerWord\(|type:/);
	assert.match(shortened, 'import { lowerWord }');
	assert.match(shortened, 'schema: step.schema');
	assert.match(shortened, 'lowerCase: true');
	assert.match(shortened, /names: \{ configfile: \["example"\] \}/);
	assert.match(shortened, 'return "kept"');
});

modules('handlers and matchers have all other members', async () => {
	const { outputFiles } = await build({
		stdin: {
			contents: `
				export { HANDLERS } from './compiler/modules/registry/handlers.ts';
				export { MATCHERS_BY_TYPE } from './compiler/modules/registry/matchers.ts';
			`,
			resolveDir: ROOT,
		},
		bundle: true,
		write: false,
		platform: 'node',
		format: 'cjs',
		plugins: [WORKER_MODULES_PLUGIN],
	});
	const file = path.join(temporaryFolder(), 'modules.cjs');
	writeFileSync(file, outputFiles[0]!.text);
	const shortened = createRequire(file)(file) as {
		readonly HANDLERS: typeof HANDLERS;
		readonly MATCHERS_BY_TYPE: typeof MATCHERS_BY_TYPE;
	};
	const membersOf = (definitions: ReadonlyMap<string, object>) =>
		[...definitions].map(([name, definition]) => [name, Object.keys(definition)] as const);
	const withoutUnused = (definitions: ReadonlyMap<string, object>) =>
		membersOf(definitions).map(([name, members]) => [name, members.filter(member => !UNUSED.has(member))]);
	assert.equal(membersOf(shortened.HANDLERS), withoutUnused(HANDLERS));
	assert.equal(membersOf(shortened.MATCHERS_BY_TYPE), withoutUnused(MATCHERS_BY_TYPE));
});

modules.run();
