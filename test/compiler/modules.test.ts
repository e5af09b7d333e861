/**
 * Every module has a manual page, and the examples on the page compile. Every event in the list of events is counted by a module.
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { compile } from '../../compiler/compiler.ts';
import { MODULE_EVENTS } from '../../compiler/exchange/module-events.ts';
import { directives } from '../../compiler/modules/registry/directives.ts';
import { matchers } from '../../compiler/modules/registry/matchers.ts';
import { options } from '../../compiler/modules/registry/options.ts';
import { HEADER_EDITS_PROPERTIES } from '../../compiler/modules/words/header-edits.ts';
import type { Reader } from '../../compiler/source/reader.ts';
import { ROOT } from '../harness.ts';

const reader: Reader = {
	readText: () => '',
	readBytes: () => new Uint8Array(),
	list: () => [],
	kind: () => undefined,
	env: name => (name === 'CLUSTER_KEY' ? Buffer.alloc(32).toString('base64') : 'sesame'),
	workingDirectory: '/work',
};

const MODULES = [
	...directives.map(module => ({ ...module, name: `directive ${module.names.configfile[0] ?? module.id}` })),
	...matchers.map(module => ({ ...module, name: `matcher ${module.id}` })),
	...options.map(module => ({ ...module, name: `option ${module.id}` })),
];

/** Error codes that examples may cause, because they refer to definitions elsewhere or to files that are empty in this test. */
const EXPECTED_CODES = ['matcher/unknown-name', 'upstream/unknown', 'tls/bad-root', 'tls/malformed-certificate'];

/** Returns the code blocks of a page. */
function examplesOf(documentation: string): string[] {
	return [...documentation.matchAll(/^```(\w*)\n([\s\S]*?)^```/gm)]
		.filter(match => match[1] === '')
		.map(match => match[2]!);
}

/**
 * Completes an example to a whole file: puts the lines of a site into a site, and uses every matcher that the example defines.
 */
function completeExample(example: string): string {
	if (/^(\{\n|:\d|https?:|upstream |[\w.*-]+\.com\b[^\n]*\{\n)/.test(example)) return example;
	const uses = [...example.matchAll(/^(@[\w-]+)/gm)].map(match => `\theader ${match[1]} X-Used 1\n`);
	return `:8080 {\n${example}${uses.join('')}}\n`;
}

const modules = suite('modules');

for (const { name, usage, summary, documentation } of MODULES) {
	modules(`${name} is documented`, () => {
		assert.ok(usage.length > 0 && documentation.length > 40, name);
		assert.match(summary, /^[A-Z`].*\.$/);
		const examples = examplesOf(documentation);
		assert.ok(examples.length > 0 || name === 'directive edit_headers', `${name} has no example`);
		for (const example of examples) {
			const text = completeExample(example);
			const { diagnostics } = compile({ format: 'configfile', text, name: 'example' }, reader);
			const mistakes = diagnostics
				.filter(({ severity, code }) => severity === 'error' && !EXPECTED_CODES.includes(code))
				.map(({ message }) => message);
			assert.equal(mistakes, [], text);
		}
	});
}

modules('names and ids are unique in each dialect', () => {
	for (const dialect of ['configfile', 'compatfile'] as const) {
		const names = directives.flatMap(directive => directive.names[dialect]);
		assert.is(new Set(names).size, names.length);
	}
	const ids = directives.flatMap(directive =>
		directive.kind === 'handler' && directive.compile ? [directive.id] : [],
	);
	assert.is(new Set(ids).size, ids.length);
	assert.is(new Set(matchers.map(({ id }) => id)).size, matchers.length);
	assert.is(new Set(options.map(({ id }) => id)).size, options.length);
});

for (const directive of directives) {
	if (directive.kind !== 'handler' || directive.id === '') continue;
	const { id, schema, answers, branches, fieldEdits = {} } = directive;

	modules(`the handler ${id} declares how its inner pipelines run`, () => {
		if (!JSON.stringify(schema).includes('#/$defs/pipeline')) return;
		assert.ok(branches !== undefined || answers !== undefined, 'it states neither `branches` nor `answers`');
	});

	modules(`the handler ${id} declares which of its options edit header fields`, () => {
		const editing = Object.entries(schema.properties).filter(([, { properties = {} }]) => {
			return Object.values(properties as object).includes(HEADER_EDITS_PROPERTIES.set);
		});
		assert.equal(Object.keys(fieldEdits).sort(), editing.map(([field]) => field).sort());
	});
}

modules('a module counts each event that the Admin API can ask for', () => {
	const folder = path.join(ROOT, 'compiler/modules');
	const sources = readdirSync(folder, { recursive: true, encoding: 'utf8' })
		.filter(file => file.endsWith('.ts'))
		.map(file => readFileSync(path.join(folder, file), 'utf8'));
	const counted = sources.flatMap(source =>
		[...source.matchAll(/\blease\('event_counter', \{ event: '(\w+)' \}\)/g)].map(([, event]) => event!),
	);
	assert.equal([...new Set(counted)].sort(), [...MODULE_EVENTS].sort());
});

modules.run();
