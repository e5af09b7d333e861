/** Routing by the first path segment selects the same branch as evaluating the branches one after another. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { canUseBranchTable, compileBranchTable, firstMatchingBranch } from '../../../compiler/codegen/branch-table.ts';
import type { Matcher } from '../../../compiler/document/document.ts';
import type { Exchange } from '../../../compiler/exchange/exchange.ts';
import type { HandlerBranch } from '../../../compiler/modules/contract/compile-context.ts';
import { compilePathPatterns } from '../../../compiler/modules/matchers/path-pattern.ts';
import { fakeExchange } from '../fake-exchange.ts';
import { Random } from '../syntax/random-text.ts';

const PATTERNS = [
	...['/a', '/a/*', '/A/b', '/b*', '/b/*', '/b', '/c/*/d', '/c/?', '/[cd]/x', '/d', '/d/', '*.x', '*c*', '*', '/'],
	...['/e//f', '/e/*', '/g/', '/g/*/h', '/h/*', '/h', '/%65/*', '/f/g*', '/é/*', '/ab', '/ab/*', '/*'],
];
const PATHS = [
	...['/', '/a', '/A', '/a/', '/a/b', '/A/B', '//a/b', '/./a/b', '/x/../a/b', '/%61/b', '/a%2fb', '/b', '/bc', '/b/c'],
	...['/c/1/d', '/c/x', '/d', '/d/', '/d/x', '/e/f', '/e//f', '/%65/f', '/f/gh', '/%C3%A9/1', '/É/1', '/ab', '/ab/c'],
	...['/none', '/none.x', '*', '/g', '/g/', '/g/1/h', '/h', '/H/', '/h/i'],
];

function branchOf(when: Matcher | undefined, found: (number: number) => void, number: number): HandlerBranch {
	const patterns = (when?.patterns ?? (when?.of as Matcher[] | undefined)?.[0]?.patterns) as string[] | undefined;
	const test = patterns && compilePathPatterns(patterns);
	return { when, predicate: test && (x => test(x.request)), handler: () => found(number) };
}

const table = suite('branch table');

table('the table selects the same branch as sequential evaluation', () => {
	const random = new Random(7);
	let fitting = 0;
	for (let round = 0; round < 2000; round++) {
		let found = -1;
		const note = (number: number): void => {
			found = number;
		};
		const branches = Array.from({ length: 4 + random.below(12) }, (_, number) => {
			const patterns = Array.from({ length: 1 + random.below(2) }, () => random.of(PATTERNS));
			const path: Matcher = { type: 'path', patterns };
			const kind = random.below(8);
			return branchOf(kind === 0 ? { type: 'all', of: [path] } : path, note, number);
		});
		if (random.below(3) === 0) branches.push(branchOf(undefined, note, branches.length));
		if (!canUseBranchTable(branches)) continue;
		fitting++;
		const handler = compileBranchTable(branches, () => note(-2));
		for (const target of PATHS) {
			const x = fakeExchange({ target });
			handler(x);
			const expected = firstMatchingBranch(branches, x);
			assert.is(found, expected ? branches.indexOf(expected) : -2, `${target}: ${JSON.stringify(branches)}`);
		}
	}
	assert.ok(fitting > 100, `${fitting} tables`);
});

table('a malformed path is refused, as in sequential evaluation', () => {
	const branches = ['/a', '/b', '/c', '/d'].map((pattern, number) =>
		branchOf({ type: 'path', patterns: [pattern] }, () => {}, number),
	);
	assert.ok(canUseBranchTable(branches));
	assert.throws(
		() => compileBranchTable(branches, () => {})(fakeExchange({ target: '/%zz' }) as Exchange),
		/400|incomplete/,
	);
});

table('short lists, and branches that start with another condition, are evaluated in order', () => {
	const path = (pattern: string): HandlerBranch => branchOf({ type: 'path', patterns: [pattern] }, () => {}, 0);
	const method: HandlerBranch = {
		when: { type: 'method', methods: ['GET'] },
		predicate: () => false,
		handler: () => {},
	};
	assert.not(canUseBranchTable(['/a', '/b', '/c'].map(path)));
	assert.not(canUseBranchTable([method, ...['/a', '/b', '/c', '/d'].map(path)]));
	assert.ok(canUseBranchTable([path('/a'), method, ...['/b', '/c', '/d'].map(path)]));
});

table.run();
