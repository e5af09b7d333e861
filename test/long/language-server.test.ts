/**
 * `svc language-server` over 100,000 random edits: no crash, no stale answer, the same diagnostics as a fresh compilation, and
 * constant memory.
 */
import { readFileSync } from 'node:fs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { endEditors } from '../cli/language-server/editor.ts';
import { editAtRandom } from '../cli/language-server/random-edits.ts';

/** Number of edits per server. */
const EDITS = 10_000;
/** Number of servers, one after another. Together, they get 100,000 edits. */
const SERVERS = 10;

const edits = suite('language server: many random edits');

for (let seed = 1; seed <= SERVERS; seed++) {
	edits(`${EDITS} edits, seed ${seed}`, async () => {
		const { editor } = await editAtRandom(EDITS, seed * 7919, 100);
		const resident = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${editor.pid}/status`, 'utf8'))?.[1]) / 1024;
		console.log(`  resident after ${EDITS} edits: ${resident.toFixed(0)} MiB`);
		assert.ok(resident < 600, `${resident} MiB`);
		assert.is(await editor.quit(), 0);
	});
}

edits.after(endEditors);

edits.run();
