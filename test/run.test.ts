/** The test runner: the order in which files start. */
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { longestFirst } from './run.ts';

const runner = suite('test runner');

runner('the files that took longest start first, after those that have never run', () => {
	const files = ['a', 'b', 'c', 'd'].map(name => path.join('/tests', `${name}.test.ts`));
	const sorted = longestFirst(files, '/tests', { 'a.test.ts': 1, 'b.test.ts': 30, 'd.test.ts': 2 });
	assert.equal(
		sorted.map(file => path.basename(file, '.test.ts')),
		['c', 'b', 'd', 'a'],
	);
});

runner.run();
