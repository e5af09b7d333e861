/** Properties that hold for any text: nothing throws, and formatting is stable and changes no token of a well-formed text. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { renderDiagnostic } from '../../../compiler/diagnostics/render.ts';
import { FormatMemory, formatText } from '../../../compiler/syntax/format.ts';
import { tokenize } from '../../../compiler/syntax/tokens.ts';
import { parseInMemory } from './memory-config.ts';
import { Random, randomFragments, randomWellFormedText } from './random-text.ts';

/** Returns the CPU milliseconds that this process has used. Unlike elapsed time, this does not depend on other processes. */
const cpuMilliseconds = (): number => process.cpuUsage().user / 1000;

/** Maximum number of texts tried for each property. */
const MAX_TEXTS = 4000;
/** CPU milliseconds after which no more texts are tried. */
const BUDGET_MS = 700;

/** Returns every token except line ends, as type, text and quote. */
function tokenTexts(text: string): string[] {
	return tokenize(text, 'configfile')
		.filter(({ tokenType, payload }) => tokenType.name !== 'Newline' && !(payload && payload.text === undefined))
		.map(({ tokenType, image, payload }) => {
			const name = tokenType.name;
			if (name === 'Open' || name === 'Close') return name;
			return payload ? `${payload.quote} ${payload.text}` : `none ${image}`;
		});
}

function forAll(seed: number, make: (random: Random) => string, check: (text: string) => void): void {
	const random = new Random(seed);
	const end = cpuMilliseconds() + BUDGET_MS;
	for (let round = 0; round < MAX_TEXTS && cpuMilliseconds() < end; round++) {
		const text = make(random);
		try {
			check(text);
		} catch (error) {
			throw new Error(
				`round ${round}: ${JSON.stringify(text)}: ${(error as assert.Assertion).message}\n${(error as assert.Assertion).details}`,
				{ cause: error },
			);
		}
	}
}

const properties = suite('properties');
properties('no text makes the parser throw, and every diagnostic renders', () => {
	forAll(1, randomFragments, text => {
		for (const dialect of ['configfile', 'compatfile'] as const) {
			const files = { main: text, a: text, E: `x\n${text}` };
			for (const diagnostic of parseInMemory(files, dialect, { X: 'v w' }).diagnostics) {
				renderDiagnostic(diagnostic);
				const { span } = diagnostic;
				assert.ok(!span || (span.start >= 0 && span.start <= span.end && span.end <= span.source.text.length));
			}
		}
	});
});
properties('formatting any text twice is formatting it once', () => {
	forAll(2, randomFragments, text => {
		const once = formatText(text);
		assert.is(formatText(once), once);
		assert.ok(once.endsWith('\n'));
	});
});
properties('formatting the sections that have changed is formatting the whole text', () => {
	const memory = new FormatMemory();
	let sections = ['a {\n\trespond a\n}\n'];
	// Each text differs from the previous one in one place, as if somebody were typing.
	const nextText = (random: Random): string => {
		const place = random.below(sections.length + 1);
		const ending = random.of(['', '\n', '\n}\n', '\r\n}\r\n', '{ x\n}\n\n']);
		const content = random.below(2) === 0 ? randomFragments(random) : randomWellFormedText(random, 0);
		const replacedCount = random.below(3);
		sections = [...sections.slice(0, place), content + ending, ...sections.slice(place + replacedCount)].slice(-12);
		return sections.join('');
	};
	forAll(4, nextText, text => assert.is(memory.format(text), formatText(text)));
});
properties('only the sections that have changed are formatted again', () => {
	// The sections are long, so that formatting takes much more time than finding out that a section is unchanged.
	const lines = '  header   Name   value\n'.repeat(100);
	const text = Array.from({ length: 300 }, (_, site) => `s${site}.test {\n${lines}  respond   "${site}"\n}\n`).join(
		'\n',
	);
	const memory = new FormatMemory();
	const timeOf = (run: () => void): number => {
		const before = cpuMilliseconds();
		run();
		return cpuMilliseconds() - before;
	};
	const expected = formatText(text);
	const firstTime = timeOf(() => assert.is(memory.format(text), expected));
	const edits = 10;
	const editTime = timeOf(() => {
		for (let edit = 0; edit < edits; edit++) memory.format(text.replace('"150"', `"${edit}"`));
	});
	assert.ok(editTime / edits < firstTime / 4, `${editTime / edits} ms for an edit, ${firstTime} ms for the whole text`);
});
properties('formatting a well-formed text changes neither tokens nor structure', () => {
	forAll(
		3,
		random => randomWellFormedText(random, 0),
		text => {
			const formatted = formatText(text);
			assert.equal(tokenTexts(formatted), tokenTexts(text));
			assert.is(formatText(formatted), formatted);
			const before = parseInMemory(text);
			const after = parseInMemory(formatted);
			assert.equal(after.messages, before.messages);
			assert.is(after.outline, before.outline);
		},
	);
});
properties.run();
