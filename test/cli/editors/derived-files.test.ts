/** The editors' files that are derived from the modules are up to date. `UPDATE=1` writes them. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { derivedFiles } from '../../../cli/editors/derived-files.ts';
import { ROOT } from '../../harness.ts';

const derived = suite('derived files of editors');

for (const [name, text] of derivedFiles()) {
	derived(name, () => {
		const file = path.join(ROOT, 'cli/editors', name);
		if (process.env.UPDATE === '1') writeFileSync(file, text);
		const isUpToDate = existsSync(file) && readFileSync(file, 'utf8') === text;
		assert.ok(isUpToDate, `${name} is out of date: run UPDATE=1 npm test -- derived-files`);
	});
}

derived.run();
