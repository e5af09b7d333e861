/** How the fixes of diagnostics are applied. Each fix must remove its diagnostic without introducing another. */
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { compile } from '../../../compiler/compiler.ts';
import type { Diagnostic, TextEdit } from '../../../compiler/diagnostics/diagnostic.ts';
import { applyEdits, applyFixes, lineAfterFix } from '../../../compiler/diagnostics/fixes.ts';
import { renderDiagnostic } from '../../../compiler/diagnostics/render.ts';
import type { Dialect } from '../../../compiler/dialects/dialect.ts';
import { lint } from '../../../compiler/lint/lint.ts';
import { overlayReader } from '../../../compiler/source/overlay-reader.ts';
import { Source } from '../../../compiler/source/source.ts';
import { diskReader } from '../../../runtime/compile/disk-reader.ts';
import { dryRunEnvironment } from '../../../runtime/compile/dry-run-environment.ts';
import { goldenCases } from '../../golden.ts';

const source = new Source({ name: 'Configfile', text: 'alpha beta gamma\ndelta\n', path: '/x/Configfile' });

function edit(start: number, end: number, text: string): TextEdit {
	return { span: { source, start, end }, text };
}

function finding(safety: 'safe' | 'unsafe', ...edits: readonly TextEdit[]): Diagnostic {
	return { code: 'a/b', severity: 'warning', message: `M${edits[0]!.text}.`, fix: { safety, edits } };
}

const applying = suite('applying fixes');

applying('edits are applied in the order of their places, whatever the order in which they are given', () => {
	assert.is(applyEdits(source.text, [edit(11, 16, 'C'), edit(0, 5, 'A'), edit(6, 6, '+')]), 'A +beta C\ndelta\n');
});

applying('only fixes of the safety asked for are applied', () => {
	const found = [finding('safe', edit(0, 5, 'A')), finding('unsafe', edit(6, 10, 'B'))];
	assert.is(applyFixes(found, 'safe').texts[0]!.after, 'A beta gamma\ndelta\n');
	assert.is(applyFixes(found, 'unsafe').texts[0]!.after, 'A B gamma\ndelta\n');
});

applying('of fixes that overlap, the smaller one is applied, completely', () => {
	const whole = finding('safe', edit(0, source.text.length, 'formatted\n'));
	const two = finding('safe', edit(0, 5, 'A'), edit(11, 16, 'C'));
	const within = finding('safe', edit(11, 13, 'g'));
	const { texts, applied } = applyFixes([whole, two, within], 'safe');
	assert.is(texts[0]!.after, 'alpha beta gmma\ndelta\n');
	assert.equal(applied, [within]);
});

applying('the same fix, found at two uses of a snippet, is applied once', () => {
	const use = { source, start: 0, end: 5 };
	const [one, other] = [1, 2].map(() => source.importedFrom(use, 'snippet'));
	const found = [one!, other!].map(of => finding('safe', { span: { source: of, start: 6, end: 10 }, text: 'B' }));
	const { texts, applied } = applyFixes(found, 'safe');
	assert.equal(
		texts.map(({ after }) => after),
		['alpha B gamma\ndelta\n'],
	);
	assert.is(applied.length, 2);
});

applying('two insertions at one place are not both applied, because their order would be arbitrary', () => {
	const { applied } = applyFixes([finding('safe', edit(5, 5, '1')), finding('safe', edit(5, 5, '2'))], 'safe');
	assert.is(applied.length, 1);
});

applying('the line after a fix is known if the fix stays within one line', () => {
	const of = (...edits: readonly TextEdit[]): string | undefined => lineAfterFix({ safety: 'safe', edits });
	assert.is(of(edit(0, 5, 'A'), edit(11, 16, 'C')), 'A beta C');
	assert.is(of(edit(17, 22, 'D')), 'D');
	assert.is(of(edit(0, 5, 'A'), edit(17, 22, 'D')), undefined);
	assert.is(of(edit(0, 5, 'A\nB')), undefined);
});

applying.run();

/** Diagnostics that appear in some fixtures only after a fix. Each entry says why that is correct. */
const REVEALED_CODES: { readonly [fixture: string]: readonly string[] } = {
	// Two matchers with equal contents are reported once. After one is fixed, the other is reported.
	'adapt/compat-routes-are-consolidated': ['path/prefix-without-slash'],
	// The file also contains the option in its correct spelling.
	'diagnostics/invalid-global-options': ['option/given-twice'],
	// The misspelled word is `password`. Once it is corrected, the password in the file is reported, too.
	'diagnostics/cluster-with-invalid-settings': ['secret/in-file'],
	// Once corrected, the misspelled directive answers all requests, so that the directives after it never run. The corrected log
	// writer lacks its argument.
	'diagnostics/twenty-mistakes-over-three-imported-files': ['directive/never-runs', 'arguments/too-few'],
};

const FORMATS: { readonly [name: string]: Dialect } = { Configfile: 'configfile', Compatfile: 'compatfile' };

/** Returns everything that `svc validate --lint` reports about a text in a folder. `texts` replace files of the folder. */
async function lintFindings(
	folder: string,
	name: string,
	texts: ReadonlyMap<string, string>,
	environment: { readonly [name: string]: string },
): Promise<readonly Diagnostic[]> {
	const file = path.join(folder, name);
	const reader = overlayReader(diskReader(folder, environment), texts);
	const input = { format: FORMATS[name]!, text: reader.readText(file), name, path: file };
	const compiled = compile(input, reader);
	const { document, plan, diagnostics } = compiled;
	if (!document || !plan) return diagnostics;
	return lint({ input, compiled: { ...compiled, document, plan }, reader, deps: dryRunEnvironment(folder) });
}

/** Returns a key by which a finding is recognized after the lines around it have moved. */
function findingKey({ code, message }: Diagnostic): string {
	return `${code}: ${message}`;
}

function countByKey(all: readonly Diagnostic[]): Map<string, number> {
	const counts = new Map<string, number>();
	for (const one of all) counts.set(findingKey(one), (counts.get(findingKey(one)) ?? 0) + 1);
	return counts;
}

const fixtures = suite('fixes of all fixtures');
let tried = 0;

for (const kind of ['adapt', 'diagnostics', 'lint']) {
	for (const golden of goldenCases(kind)) {
		for (const name of Object.keys(FORMATS)) {
			const file = path.join(golden.folder, name);
			if (!existsSync(file)) continue;
			fixtures(`${kind}/${golden.name}/${name}`, async () => {
				const variables = path.join(golden.folder, 'environment');
				const lines = existsSync(variables) ? readFileSync(variables, 'utf8').split('\n') : [];
				const environment = Object.fromEntries(
					lines.filter(one => one.includes('=')).map(one => one.split(/=(.*)/s, 2)),
				);
				const revealed = (found: string): boolean =>
					(REVEALED_CODES[`${kind}/${golden.name}`] ?? []).some(code => found.startsWith(`${code}:`));
				const before = await lintFindings(golden.folder, name, new Map(), environment);
				for (const one of before) {
					if (!one.fix) continue;
					tried++;
					const { texts, applied } = applyFixes([one], 'unsafe');
					assert.equal(applied, [one]);
					const overlay = new Map(texts.map(({ path: of, after }) => [of ?? file, after]));
					const after = countByKey(await lintFindings(golden.folder, name, overlay, environment));
					const had = countByKey(before);
					const told = `${renderDiagnostic(one)}\n${texts.map(text => text.after).join('\n')}`;
					const left = after.get(findingKey(one)) ?? 0;
					assert.ok(left < had.get(findingKey(one))! || revealed(findingKey(one)), `is still found: ${told}`);
					for (const [found, count] of after) {
						assert.ok(count <= (had.get(found) ?? 0) || revealed(found), `the fix introduces ${found} ${told}`);
					}
				}
			});
		}
	}
}

fixtures('many of them offer a fix', () => {
	assert.ok(tried > 50, `${tried} fixes`);
});

fixtures.run();
