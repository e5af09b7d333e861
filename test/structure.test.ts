/**
 * Rules for the structure of the sources: the direction of imports, comments on exports, file names, the folder in which system
 * functions are called, and the files that may name modules.
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { directives } from '../compiler/modules/registry/directives.ts';
import { matchers } from '../compiler/modules/registry/matchers.ts';
import { ROOT } from './harness.ts';

const LAYERS = ['compiler', 'runtime', 'admin', 'cli'];

/** Returns the files below folders of the repository that have the given extension. */
function filesBelow(folders: readonly string[], extension: string): string[] {
	return folders.flatMap(folder =>
		readdirSync(path.join(ROOT, folder), { recursive: true, withFileTypes: true })
			.filter(entry => entry.isFile() && entry.name.endsWith(extension))
			.map(entry => path.relative(ROOT, path.join(entry.parentPath, entry.name))),
	);
}

const structure = suite('structure');

structure('imports point from cli to admin to runtime to compiler', () => {
	const wrong: string[] = [];
	for (const file of filesBelow(LAYERS, '.ts')) {
		const layer = LAYERS.indexOf(file.split(path.sep)[0]!);
		const text = readFileSync(path.join(ROOT, file), 'utf8');
		for (const [, specifier] of text.matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)) {
			const target = path.relative(ROOT, path.resolve(ROOT, path.dirname(file), specifier!));
			const targetLayer = LAYERS.indexOf(target.split(path.sep)[0]!);
			if (targetLayer === -1 || targetLayer > layer) wrong.push(`${file} imports ${target}`);
		}
	}
	assert.equal(wrong, []);
});

structure('the compiler does no input or output except through its Reader', () => {
	const forbidden = /from '(node:(fs|net|http|https|tls|dgram|child_process|worker_threads|process|os)[^']*|undici)'/;
	const wrong = filesBelow(['compiler'], '.ts').filter(file => {
		const text = readFileSync(path.join(ROOT, file), 'utf8').replace(/^import type .*$/gm, '');
		return forbidden.test(text);
	});
	assert.equal(wrong, []);
});

structure('files open with a sentence that says what they are', () => {
	const wrong = filesBelow([...LAYERS, 'test'], '.ts').filter(
		file => !/^\/\*\*/.test(readFileSync(path.join(ROOT, file), 'utf8').replace(/^#!.*\n/, '')),
	);
	assert.equal(wrong, []);
});

/** Yields the named declarations that a file exports: the name, the file and line, and the text of the comment above, if any. */
function* exportsOf(
	file: string,
): Generator<{ name: string; place: string; comment: string | undefined; isConstant: boolean }> {
	const lines = readFileSync(path.join(ROOT, file), 'utf8').split('\n');
	for (const [index, line] of lines.entries()) {
		const match = /^export (?:declare )?(?:abstract )?(?:async )?(?:function\*?|class|interface|type|const) (\w+)/.exec(
			line,
		);
		if (!match) continue;
		let above = index - 1;
		while (above >= 0 && /^\s*(\/\/ biome-ignore|@)/.test(lines[above]!)) above--;
		// The overloads of a function share the comment above the first of them.
		if (above >= 0 && /^export (declare )?(async )?function/.test(lines[above]!)) continue;
		let comment: string | undefined;
		if (/\*\/\s*$/.test(lines[above] ?? '')) {
			let first = above;
			while (!lines[first]!.includes('/**')) first--;
			comment = lines.slice(first, above + 1).join(' ');
		}
		yield { name: match[1]!, place: `${file}:${index + 1}`, comment, isConstant: line.includes(' const ') };
	}
}

/** Returns the words of an identifier or comment, in lower case and singular. Articles and similar words are left out. */
function wordsOf(text: string): string[] {
	const spaced = text.replace(/([a-z0-9])([A-Z])/g, '$1 $2').toLowerCase();
	return (spaced.match(/[a-z0-9]+/g) ?? [])
		.filter(word => !['the', 'a', 'an', 'of', 'one', 'its', 'this', 'for'].includes(word))
		.map(word => word.replace(/s$/, ''));
}

structure('an export has a comment unless its name says what it is', () => {
	const wrong: string[] = [];
	for (const file of filesBelow(LAYERS, '.ts')) {
		for (const { name, place, comment, isConstant } of exportsOf(file)) {
			const says = isConstant || wordsOf(name).length > 1;
			if (comment === undefined && !says) wrong.push(`${place}: ${name}`);
		}
	}
	assert.equal(wrong, []);
});

structure('no comment only repeats the name below it', () => {
	const wrong: string[] = [];
	for (const file of filesBelow(LAYERS, '.ts')) {
		for (const { name, place, comment } of exportsOf(file)) {
			const said = new Set(wordsOf(name));
			if (comment !== undefined && wordsOf(comment).every(word => said.has(word))) wrong.push(`${place}: ${comment}`);
		}
	}
	assert.equal(wrong, []);
});

structure('no declaration has two comments: only the comment of the file may precede another one', () => {
	const wrong: string[] = [];
	for (const file of filesBelow([...LAYERS, 'test'], '.ts')) {
		const text = readFileSync(path.join(ROOT, file), 'utf8').replace(/^#!.*\n/, '');
		const body = text.slice(text.indexOf('*/') + 2);
		const twice = /^[\t ]*(?:\/\*\*.*| )\*\/\n\s*\/\*\*.*/m.exec(body);
		if (twice) wrong.push(`${file}: ${twice[0].trim()}`);
	}
	assert.equal(wrong, []);
});

structure('private APIs of Node are used only in runtime/sockets/', () => {
	const privatePart =
		/node:ffi'|process\.binding|\b_(handle|parent|peername|createServerHandle|releaseControl|sharedCreds|external|writeState)\b|binding\(name: string\)|enableTicketKeyCallback/;
	const users = filesBelow(LAYERS, '.ts').filter(file => {
		const code = readFileSync(path.join(ROOT, file), 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '');
		return !file.startsWith('runtime/sockets/') && privatePart.test(code);
	});
	assert.equal(users, []);
});

structure('functions of the system are called only in runtime/sockets/, and by a tool of the build', () => {
	const users = filesBelow(LAYERS, '.ts').filter(file =>
		/foreign-functions\.ts'/.test(readFileSync(path.join(ROOT, file), 'utf8')),
	);
	assert.ok(users.length > 5);
	assert.equal(
		users.filter(file => !file.startsWith('runtime/sockets/')),
		['cli/packaging/sample-client.ts'],
	);
});

structure('the prototype of functions is changed in a single file, and warnings are muted only by a flag', () => {
	const matching = (pattern: RegExp): string[] =>
		filesBelow(LAYERS, '.ts').filter(file => pattern.test(readFileSync(path.join(ROOT, file), 'utf8')));
	assert.equal(matching(/setPrototypeOf\(Function\.prototype/), ['runtime/sockets/unchecked-functions.ts']);
	assert.equal(matching(/emitWarning =/), []);
});

structure('the shared types of handlers and protocols import none of their users', () => {
	const wrong = filesBelow(['compiler/exchange'], '.ts').filter(file =>
		/from '\.\.\//.test(readFileSync(path.join(ROOT, file), 'utf8')),
	);
	assert.equal(wrong, []);
});

structure('foundation folders import none of their users', () => {
	const allowed: { readonly [folder: string]: readonly string[] } = {
		'runtime/sockets': ['compiler/exchange'],
		'compiler/source': [],
		'compiler/exchange': [],
		'compiler/diagnostics': ['compiler/source'],
	};
	const imports = folderImports();
	for (const [folder, others] of Object.entries(allowed)) {
		assert.equal(
			[...(imports.get(folder) ?? [])].filter(other => !others.includes(other)),
			[],
			folder,
		);
	}
});

structure('no folder imports one that imports it, directly or through others', () => {
	const imports = folderImports();
	const inCycles = [...imports.keys()].filter(folder => reachableFrom(folder, imports).has(folder));
	assert.equal(inCycles, [], 'folders in import cycles');
});

structure(
	'no file imports, other than for types or when needed, one that imports it, directly or through others',
	() => {
		const imports = new Map<string, Set<string>>();
		for (const file of filesBelow(LAYERS, '.ts')) {
			const text = readFileSync(path.join(ROOT, file), 'utf8');
			const specifiers = text.matchAll(
				/^(?:import|export)\s(?!type\b)([^;']*)from\s*'(\.[^']+)'|^import\s*'(\.[^']+)'/gm,
			);
			const imported = [...specifiers]
				.filter(([, names]) => names === undefined || !/^\s*\{(\s*type\s[^,}]+,?)+\s*\}\s*$/.test(names))
				.map(([, , from, alone]) => path.join(path.dirname(file), (from ?? alone)!));
			imports.set(file, new Set(imported));
		}
		const inCycles = [...imports.keys()].filter(file => reachableFrom(file, imports).has(file));
		assert.equal(inCycles, [], 'files in import cycles');
		assert.ok(reachableFrom('runtime/main/runtime.ts', imports).size > 50, 'the imports are not found');
	},
);

/** Returns, for each folder, the other folders from which it imports. */
function folderImports(): Map<string, Set<string>> {
	const imports = new Map<string, Set<string>>();
	for (const file of filesBelow(LAYERS, '.ts')) {
		const folder = path.dirname(file);
		const found = imports.get(folder) ?? new Set();
		imports.set(folder, found);
		const text = readFileSync(path.join(ROOT, file), 'utf8');
		for (const [, specifier] of text.matchAll(/(?:from|import\(|^import)\s*'(\.[^']+)'/gm)) {
			const other = path.dirname(path.join(folder, specifier!));
			if (other !== folder) found.add(other);
		}
	}
	return imports;
}

function reachableFrom(folder: string, imports: ReadonlyMap<string, ReadonlySet<string>>): Set<string> {
	const reached = new Set<string>();
	const left = [folder];
	for (let next = left.pop(); next !== undefined; next = left.pop()) {
		for (const other of imports.get(next) ?? []) {
			if (reached.has(other)) continue;
			reached.add(other);
			left.push(other);
		}
	}
	return reached;
}

structure('every path in CONTRIBUTING.md exists', () => {
	const text = readFileSync(path.join(ROOT, 'CONTRIBUTING.md'), 'utf8');
	const tree = filesBelow([...LAYERS, 'fixtures', 'test'], '').map(file => `/${file.split(path.sep).join('/')}/`);
	// A sentence may name a file without its folders, such as `redir.ts`. Such a file may be anywhere.
	const exists = (named: string): boolean => {
		const [start, end] = named.split(/<[^>]*>|…/) as [string, string | undefined];
		if (end === undefined) return tree.some(file => file.includes(`/${start.replace(/\/$/, '')}/`));
		return tree.some(file => file.startsWith(`/${start}`) && file.includes(end));
	};
	const spans = text.matchAll(/`([^`\n]+)`/g);
	const paths = [...spans]
		.map(([, span]) => span!)
		.filter(span => /^[\w.-]*[\w-]\/[^\s]*$|^[\w-]+\.ts$/.test(span) && !/^(dist|node_modules|\.ci)\//.test(span));
	assert.ok(paths.length > 60, `only ${paths.length} paths were found`);
	assert.equal(
		paths.filter(named => !exists(named)),
		[],
	);
});

structure('there are no default exports and no catch-all file names', () => {
	const files = filesBelow([...LAYERS, 'test'], '.ts');
	assert.equal(
		files.filter(file => /^export default/m.test(readFileSync(path.join(ROOT, file), 'utf8'))),
		[],
	);
	assert.equal(
		files.filter(file => /(^|[/-])(utils?|helpers?|types|common|misc)\.ts$/.test(file)),
		[],
	);
});

/** Names of directives or matchers that are also ordinary words, and may therefore occur outside the registries. */
const ORDINARY_WORDS: ReadonlySet<string> = new Set([
	...[
		'abort',
		'bind',
		'cache',
		'cookie',
		'error',
		'fail',
		'file',
		'files',
		'handle',
		'header',
		'host',
		'log',
		'method',
		'metrics',
		'replace',
	],
	...['path', 'protocol', 'proxy', 'query', 'root', 'route', 'templates', 'timeouts', 'tls', 'tracing', 'uri', 'vars'],
	...['expression', 'map', 'when'],
]);

/** Operators that combine matchers. They belong to the format of the document, and may therefore occur outside the registries. */
const OPERATORS: ReadonlySet<string> = new Set(['all', 'any', 'not']);

/**
 * Files that must contain names of modules: the table of names in other servers with our equivalents, and the upgrade of old
 * forms of the document.
 */
const FILES_WITH_MODULE_NAMES: ReadonlySet<string> = new Set([
	'compiler/modules/contract/foreign-words.ts',
	'compiler/document/upgrade.ts',
]);

structure('outside the registries, no code knows a directive, handler or matcher by name', () => {
	const names = new Set([
		...directives.flatMap(one => [...(one.kind === 'handler' ? [one.id] : []), ...Object.values(one.names).flat()]),
		...matchers.map(({ id }) => id),
	]);
	names.delete('');
	for (const operator of OPERATORS) names.delete(operator);
	const folders = ['lint', 'lower', 'explain', 'codegen', 'document', 'dry-run', 'testing', 'incremental', 'syntax'];
	const wrong: string[] = [];
	for (const file of filesBelow(
		folders.map(folder => `compiler/${folder}`),
		'.ts',
	)) {
		if (FILES_WITH_MODULE_NAMES.has(file) || file.startsWith('compiler/codegen/regexp/')) continue;
		const code = readFileSync(path.join(ROOT, file), 'utf8').replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
		for (const [line] of code.matchAll(/.+/g)) {
			const compared =
				/(?<!readonly )\b(?:handler|directive|type)\)?(?: [!=]==|:) '(\w+)'|"(?:handler|type)":"(?:\(\?:)?(\w+)/.exec(
					line,
				);
			const literals = [...line.matchAll(/'(\w+)'/g)].map(match => match[1]!);
			const suspects = [compared?.[1], compared?.[2], ...literals.filter(word => !ORDINARY_WORDS.has(word))];
			if (suspects.some(word => word !== undefined && names.has(word))) wrong.push(`${file}: ${line.trim()}`);
		}
	}
	assert.equal(wrong, []);
});

structure.run();
