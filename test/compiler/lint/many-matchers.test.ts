/** Lint rules that compare the matchers of a site with each other. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { UNKNOWN_HOST_FACTS } from '../../../compiler/codegen/placeholders/index.ts';
import { compile } from '../../../compiler/compiler.ts';
import type { Matcher } from '../../../compiler/document/document.ts';
import { coversMatcher } from '../../../compiler/lint/inspection/coverage.ts';
import { CoveringMatchers } from '../../../compiler/lint/inspection/covering-matchers.ts';
import { lint } from '../../../compiler/lint/lint.ts';
import { diskReader } from '../../../runtime/compile/disk-reader.ts';

const matchers = suite('many matchers');

/** Compiles and lints a Caddyfile; returns the codes of the warnings, and the CPU time of the lint rules in milliseconds. */
async function lintedSite(lines: string): Promise<{ codes: string[]; milliseconds: number }> {
	const input = { format: 'compatfile', text: `:8080 {\n${lines}}\n`, name: 'Caddyfile' } as const;
	const reader = diskReader('/');
	const compiled = compile(input, reader);
	const { document, plan } = compiled;
	if (!document || !plan) throw new Error(compiled.diagnostics[0]!.message);
	const started = process.cpuUsage();
	const findings = await lint({
		input,
		compiled: { ...compiled, document, plan },
		reader,
		deps: { facts: UNKNOWN_HOST_FACTS, lease: () => undefined },
	});
	const { user, system } = process.cpuUsage(started);
	return {
		codes: findings.filter(({ severity }) => severity === 'warning').map(({ code }) => code),
		milliseconds: (user + system) / 1000,
	};
}

matchers('a list of redirects is inspected in time proportional to its length', async () => {
	const redirects = (count: number): string =>
		Array.from({ length: count }, (_, index) => `\tredir /old/${index} /new/${index} permanent\n`).join('');
	await lintedSite(redirects(500));
	const [short, long] = [await lintedSite(redirects(500)), await lintedSite(redirects(4000))];
	assert.equal([short.codes, long.codes], [[], []]);
	// A rule that compared every redirect with every other one would take 64 times as long for the second site.
	const ratio = long.milliseconds / short.milliseconds;
	assert.ok(ratio < 24, `${ratio}`);
});

matchers('what is covered among thousands of paths is found', async () => {
	const handles = Array.from({ length: 2000 }, (_, index) => `\thandle /a/${index} {\n\t\trespond ok\n\t}\n`).join('');
	const lines = `\troute {\n${handles}\thandle /b/* {\n\t\trespond b\n\t}\n\thandle /b/c /b/d {\n\t\trespond c\n\t}\n\t}\n`;
	const routed = lines.replace('handle /b/c /b/d', '@two path /b/c /b/d\n\thandle @two').replace('/a/1999 {', '/A/7 {');
	const { codes } = await lintedSite(routed);
	assert.equal(
		codes.filter(code => code === 'branch/covered'),
		['branch/covered', 'branch/covered'],
	);
});

matchers('the first covering matcher is the one that comparing with all of them finds', () => {
	const paths = [
		'*',
		'/a*',
		'/x/*',
		'/x/y',
		'/a',
		'/A',
		'/a/b',
		'/a/*',
		'/*',
		'*.php',
		'/b?',
		'/b1',
		'{path}',
		'/a//b',
		'/%61',
	];
	let state = 7;
	const below = (limit: number): number => {
		state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
		return Math.floor((state / 2_147_483_648) * limit);
	};
	const list = (): string[] => Array.from({ length: below(3) }, () => paths[below(paths.length)]!);
	const randomMatcher = (depth: number): Matcher => {
		if (depth === 0 || below(3) > 0) return { type: 'path', patterns: list() };
		if (below(2) === 0) return { type: 'method', methods: ['GET', 'POST'].slice(below(2)) };
		return { type: below(2) === 0 ? 'all' : 'any', of: [randomMatcher(depth - 1), randomMatcher(depth - 1)] };
	};
	let coveredCount = 0;
	for (let round = 0; round < 300; round++) {
		const index = new CoveringMatchers<number>();
		const earlier: (Matcher | undefined)[] = [];
		for (let count = 0; count < 12; count++) {
			const narrow = below(12) === 0 ? undefined : randomMatcher(2);
			const found = earlier.findIndex(wide => coversMatcher(wide, narrow));
			if (found !== -1) coveredCount++;
			assert.is(index.firstCovering(narrow) ?? -1, found, JSON.stringify([earlier, narrow]));
			index.add(narrow, earlier.push(narrow) - 1);
		}
	}
	assert.ok(coveredCount > 100, `${coveredCount}`);
});

matchers.run();
