/** After each edit of a series, a compiler session gives the same result as a compilation from scratch. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type CompileResult, compile, createCompiler } from '../../../compiler/compiler.ts';
import { renderDiagnostic } from '../../../compiler/diagnostics/render.ts';
import type { ConfigFormat } from '../../../compiler/dialects/dialect.ts';
import { roundCount } from '../../round-count.ts';
import { Random } from '../syntax/random-text.ts';
import { CONFIG_FOLDER, type ConfigFiles, changingReader } from './files.ts';
import { applyRandomEdit, draftFiles, randomDraft } from './random-configuration.ts';

/** Returns the CPU milliseconds that this process has used. Unlike elapsed time, this does not depend on other processes. */
const cpuMilliseconds = (): number => process.cpuUsage().user / 1000;

/** Serializes a whole result for comparison, including the places of the document's objects. */
function serializeResult(compiled: CompileResult): string {
	const { document, plan, diagnostics, tests, files, locate, places: steps } = compiled;
	const places: string[] = [];
	const visit = (value: unknown, pointer: string): void => {
		const span = locate(pointer);
		places.push(`${pointer} ${span ? `${span.source.name} ${span.start} ${span.end}` : ''}`);
		if (typeof value !== 'object' || value === null) return;
		for (const [key, member] of Object.entries(value))
			visit(member, `${pointer}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`);
	};
	if (document) visit(document, '');
	return [
		JSON.stringify(document),
		JSON.stringify(plan?.listeners),
		...diagnostics.map(
			diagnostic =>
				`${renderDiagnostic(diagnostic)}\n${JSON.stringify({ ...diagnostic, span: 0, related: 0, fix: diagnostic.fix?.edits.map(one => one.text) })}`,
		),
		...tests.map(({ name, span }) => `${name} ${span.source.name} ${span.start} ${span.end}`),
		files.join(' '),
		...places,
		...(document && steps ? [...steps.sites, steps.routes] : []),
	].join('\n');
}

/** A compiler session whose files a test can change. */
class EditedSession {
	now: ConfigFiles;
	readonly format: ConfigFormat;
	readonly #reader = changingReader(() => this.now);
	readonly session = createCompiler(this.#reader, { places: true });

	constructor(format: ConfigFormat, now: ConfigFiles) {
		this.format = format;
		this.now = now;
	}

	get input() {
		const { main: text, path } = this.now;
		return { format: this.format, text, name: 'main', path };
	}

	compile(): CompileResult {
		return this.session.compile(this.input);
	}

	/** Compiles the current files from scratch. */
	compileFromScratch(): CompileResult {
		return compile(this.input, this.#reader, { places: true });
	}

	/** Compiles in the session and asserts that the result equals a compilation from scratch. Returns the result. */
	check(): CompileResult {
		const expected = serializeResult(this.compileFromScratch());
		assert.is(
			serializeResult(createCompiler(this.#reader, { places: true }).compile(this.input)),
			expected,
			'first time',
		);
		const compiled = this.compile();
		assert.is(serializeResult(compiled), expected, 'session');
		return compiled;
	}
}

const session = suite('session');

session('a session gives the same results as compiling from scratch', () => {
	const seed = Number(process.env.SEED ?? 1);
	const random = new Random(seed);
	// Rounds are run until they have used a certain number of CPU milliseconds.
	const end = cpuMilliseconds() + roundCount({ few: 1000, many: 30_000 });
	const counts = { compiled: 0, accepted: 0 };
	while (cpuMilliseconds() < end) {
		const made = randomDraft(random, random.of(['configfile', 'compatfile'] as const));
		const edited = new EditedSession(made.dialect, draftFiles(made));
		const series: ConfigFiles[] = [];
		for (let step = 0; step < 12 && cpuMilliseconds() < end; step++) {
			edited.now = structuredClone(draftFiles(made));
			series.push(edited.now);
			try {
				counts.compiled++;
				if (edited.check().document) counts.accepted++;
			} catch (error) {
				const { message, details } = error as assert.Assertion;
				const last = series.slice(-2).map(files => JSON.stringify(files, null, 1));
				throw new Error(`seed ${seed}, ${made.dialect}, step ${step}: ${message}\n${details}\n${last.join('\n')}`, {
					cause: error,
				});
			}
			applyRandomEdit(random, made);
		}
	}
	assert.ok(counts.compiled > 30 && counts.accepted > 3, JSON.stringify(counts));
});

/** Returns, for each site of the second result, whether it is the same object as in the first result. */
function keptSites(before: CompileResult, after: CompileResult): boolean[] {
	const sitesBefore = new Set(before.document!.sites);
	return after.document!.sites!.map(site => sitesBefore.has(site));
}

const SITES = [
	'(common) {\n\theader X-Common {let.value}\n}\n',
	'http://a.example {\n\trespond a\n}\n',
	'http://b.example {\n\timport common\n\trespond b\n}\n',
	'http://c.example {\n\timport part.conf\n\trespond c\n}\n',
	'http://d.example {\n\trespond {$TEXT}\n}\n',
	'http://e.example {\n\troot pages\n\tfile_server\n}\n',
	'http://f.example {\n\treverse_proxy upstream://pool\n}\n',
	'http://g.example {\n\tlog {\n\t\toutput discard\n\t}\n}\n',
];

function edited(): EditedSession {
	const main = `let value 1\n${SITES.join('')}upstream pool {\n\tto 127.0.0.1:9000\n}\n`;
	return new EditedSession('configfile', {
		main,
		path: `${CONFIG_FOLDER}/main`,
		files: { 'part.conf': 'header X-Part 1\n' },
		env: { TEXT: 'text' },
	});
}

/** Returns a letter for each site of the second result that was lowered again, and is therefore a new object. */
function loweredAgain(before: CompileResult, after: CompileResult): string {
	const { sites } = after.document!;
	return keptSites(before, after)
		.map((same, index) => (same ? '' : /http:\/\/(\w)/.exec(sites![index]!.addresses[0]!)![1]!))
		.join('');
}

/** Compiles, applies a change and compiles again. Returns the sites that were lowered again, as in {@link loweredAgain}. */
function loweredAfter(change: (now: ConfigFiles) => Partial<ConfigFiles>): string {
	const one = edited();
	const before = one.check();
	one.now = { ...one.now, ...change(one.now) };
	return loweredAgain(before, one.check());
}

const replace = (from: string, to: string) => (now: ConfigFiles) => ({ main: now.main.replace(from, to) });

session('only sites affected by a change are lowered again', () => {
	assert.is(
		loweredAfter(now => now),
		'',
	);
	assert.is(loweredAfter(replace('respond a', 'respond changed')), 'a');
	assert.is(loweredAfter(replace('let value 1', '# above\n\nlet value 1')), '');
	assert.is(loweredAfter(replace('http://a.example {\n\trespond a\n}\n', '')), '');
	assert.is(loweredAfter(replace('http://b', 'http://x.example {\n\trespond x\n}\nhttp://b')), 'x');
	assert.is(loweredAfter(replace('let value 1', 'let value 2')), 'bc');
	assert.is(loweredAfter(replace('X-Common', 'X-Other')), 'bc');
	assert.is(
		loweredAfter(() => ({ files: { 'part.conf': 'header X-Part 2\n' } })),
		'c',
	);
	assert.is(
		loweredAfter(() => ({ env: { TEXT: 'other' } })),
		'd',
	);
	assert.is(loweredAfter(replace('to 127.0.0.1:9000', 'to 127.0.0.1:9001')), '');
	assert.is(loweredAfter(replace('let value', '{\n\thttp_port 8080\n}\nlet value')), 'abcdefg');
	assert.is(
		loweredAfter(replace('http://a', 'http://x.example {\n\tlog {\n\t\toutput stdout\n\t}\n}\nhttp://a')),
		'xg',
	);
	assert.is(
		loweredAfter(now => ({
			main: `${now.main}import new.conf\n`,
			files: { ...now.files, 'new.conf': '(new) {\n}\n' },
		})),
		'e',
	);
});

session('a directive outside of any site is reported again if a site separates it from the previous one', () => {
	const stray = 'respond a\nhttp://x.example {\n}\n';
	const one = new EditedSession('configfile', {
		main: `import part.conf\n${stray}`,
		path: `${CONFIG_FOLDER}/main`,
		files: { 'part.conf': 'http://w.example {\n}\nrespond a\n' },
		env: {},
	});
	assert.is(one.check().diagnostics.length, 1);
	one.now = { ...one.now, main: `import part.conf\nhttp://y.example {\n}\n${stray}` };
	assert.is(one.check().diagnostics.length, 2);
});

session('sites that use no files are kept when the configuration moves to another folder', () => {
	const one = edited();
	const before = one.check();
	const moved = one.session.compile({ ...one.input, name: '<request>', path: undefined });
	assert.is(loweredAgain(before, moved), 'e');
	one.now = { ...one.now, main: one.now.main.replace('\timport part.conf\n', '') };
	const here = one.check();
	assert.is(loweredAgain(here, one.session.compile({ ...one.input, path: '/elsewhere/main' })), 'be');
});

session('imported files are also split into sites', () => {
	const files = { 'sites.conf': SITES.slice(0, 3).join(''), 'more.conf': SITES[4]! };
	const one = new EditedSession('configfile', { main: 'let value 1\nimport *.conf\n', files, env: { TEXT: 'text' } });
	const before = one.check();
	one.now = {
		...one.now,
		files: { ...files, 'sites.conf': files['sites.conf'].replace('respond a', 'respond changed') },
	};
	assert.equal(keptSites(before, one.check()), [true, false, true]);
});

session('diagnostics of a site move with the site', () => {
	const one = edited();
	one.now = { ...one.now, main: one.now.main.replace('respond a\n', '@unused path /x\n\trespond a\n') };
	const place = ({ diagnostics }: CompileResult): string =>
		diagnostics.map(({ code, span }) => `${code} ${span!.source.position(span!.start).line}`).join();
	assert.is(place(one.check()), 'matcher/unused 6');
	one.now = { ...one.now, main: `# one\n# two\n${one.now.main}` };
	assert.is(place(one.check()), 'matcher/unused 8');
});

session('adding and fixing a mistake does not affect other sites', () => {
	for (const [from, to, again] of [
		['respond a', 'respnd a', 'a'],
		['import common', 'import comon', 'b'],
		['respond {$TEXT}', 'respond "{$TEXT}', ''],
		['respond b\n}', 'respond b\n', ''],
		['(common)', '(common', 'bc'],
		['upstream pool', 'upstream pol', 'abcdefg'],
	] as const) {
		const one = edited();
		const good = one.now;
		const before = one.check();
		one.now = { ...good, main: good.main.replace(from, to) };
		assert.is(one.check().document, undefined, to);
		one.now = good;
		assert.is(loweredAgain(before, one.check()), again, to);
	}
});

session('a JSON document also keeps its unchanged sites, and its listeners if all are unchanged', () => {
	const site = (host: string, body: string) => ({
		addresses: [`http://${host}`],
		pipeline: [{ handler: 'respond', body }],
	});
	const one = new EditedSession('json', { main: '', files: {}, env: {} });
	const compiled = (...sites: object[]): CompileResult => {
		one.now = { ...one.now, main: JSON.stringify({ sites }) };
		return one.check();
	};
	const before = compiled(site('a', '1'), site('b', '1'));
	const after = compiled(site('a', '1'), site('b', '2'));
	assert.equal(keptSites(before, after), [true, false]);
	assert.is(after.plan!.listeners, before.plan!.listeners);
	assert.is.not(compiled(site('a', '1'), site('c', '2')).plan!.listeners, before.plan!.listeners);
});

session('places can be looked up until the session compiles again', () => {
	const one = edited();
	const before = one.compile();
	assert.ok(before.locate('/sites/0'));
	one.compile();
	assert.is(before.locate('/sites/0'), undefined);
});

session('every file is read once per compilation', () => {
	const files: ConfigFiles = {
		main: 'http://a.example {\n\timport part.conf\n}\nhttp://b.example {\n\timport part.conf\n\trespond {$TEXT}{$TEXT}\n}\n',
		files: { 'part.conf': 'header X-Part 1\n' },
		env: { TEXT: 'text' },
	};
	const asked: string[] = [];
	const reader = changingReader(() => files);
	const counting = {
		...reader,
		readText: (path: string) => {
			asked.push(path);
			return reader.readText(path);
		},
		env: (name: string) => {
			asked.push(name);
			return reader.env(name);
		},
	};
	const compiler = createCompiler(counting);
	const input = { format: 'configfile', text: files.main, name: 'main', path: `${CONFIG_FOLDER}/main` } as const;
	for (let round = 0; round < 3; round++) {
		assert.ok(compiler.compile(input).document);
		assert.equal(asked.splice(0).sort(), [`${CONFIG_FOLDER}/part.conf`, 'TEXT']);
	}
});

session.run();
