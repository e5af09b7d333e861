/** A session gives, for every text of a series, what compiling it for the first time and as a whole gives. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type Compiled, createCompiler } from '../../../compiler/compiler.ts';
import { renderDiagnostic } from '../../../compiler/diagnostics/render.ts';
import type { ConfigFormat } from '../../../compiler/dialects/dialect.ts';
import { CompilerSession } from '../../../compiler/incremental/compiler-session.ts';
import { Random } from '../syntax/random-text.ts';
import { type ConfigFiles, changingReader, FOLDER } from './files.ts';
import { draft, edit, filesOf } from './random-configuration.ts';

/** Everything that a result says, as text; places of the document's objects too. */
function told(compiled: Compiled): string {
	const { document, plan, diagnostics, tests, files, locate } = compiled;
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
				`${renderDiagnostic(diagnostic)}\n${JSON.stringify({ ...diagnostic, span: 0, related: 0, fix: diagnostic.fix?.map(one => one.text) })}`,
		),
		...tests.map(({ name, span }) => `${name} ${span.source.name} ${span.start} ${span.end}`),
		files.join(' '),
		...places,
	].join('\n');
}

/** A session over files that can be changed. */
class Edited {
	now: ConfigFiles;
	readonly format: ConfigFormat;
	readonly #reader = changingReader(() => this.now);
	readonly session = createCompiler(this.#reader);

	constructor(format: ConfigFormat, now: ConfigFiles) {
		this.format = format;
		this.now = now;
	}

	get input() {
		return { format: this.format, text: this.now.main, name: 'main', path: `${FOLDER}/main` };
	}

	compile(): Compiled {
		return this.session.compile(this.input);
	}

	/** Compiled for the first time, as a whole. */
	whole(): Compiled {
		return new CompilerSession(this.#reader, { whole: true }).compile(this.input);
	}

	/** Compiles and compares; gives what came out. */
	check(): Compiled {
		const expected = told(this.whole());
		assert.is(told(createCompiler(this.#reader).compile(this.input)), expected, 'first time');
		const compiled = this.compile();
		assert.is(told(compiled), expected, 'session');
		return compiled;
	}
}

const session = suite('session');

session('what a session gives is what compiling for the first time gives', () => {
	const seed = Number(process.env.SEED ?? 1);
	const random = new Random(seed);
	const end = performance.now() + Number(process.env.BUDGET ?? 3000);
	const counts = { compiled: 0, accepted: 0 };
	while (performance.now() < end) {
		const made = draft(random, random.of(['configfile', 'compatfile'] as const));
		const edited = new Edited(made.dialect, filesOf(made));
		const series: ConfigFiles[] = [];
		for (let step = 0; step < 12 && performance.now() < end; step++) {
			edited.now = structuredClone(filesOf(made));
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
			edit(random, made);
		}
	}
	assert.ok(counts.compiled > 100 && counts.accepted > 10, JSON.stringify(counts));
});

session.run();
