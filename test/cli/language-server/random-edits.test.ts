/**
 * `svc language-server` survives random edits, and its final diagnostics equal those of a fresh compilation. test/long has a
 * longer run.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { endEditors } from './editor.ts';
import { editAtRandom } from './random-edits.ts';

const edits = suite('language server: random edits');

edits('500 edits with requests in between', async () => {
	const { requests, comparisons, editor } = await editAtRandom(500, 1, 25);
	assert.ok(requests > 100 && comparisons >= 20);
	assert.is(await editor.quit(), 0);
});

edits.after(endEditors);

edits.run();
