/** The memory of `svc language-server` does not grow with the number of edits. */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Editor, endEditors } from '../cli/language-server/editor.ts';
import { LAUNCHER, temporaryFolder } from '../harness.ts';

const EDITS = 20_000;
/** Number of edits before the first measurement of memory, after which caches are full. */
const WARM_UP_EDITS = 10_000;
/** Number of edits between two waits for diagnostics, so that only every ninth state is compiled. */
const BURST_EDITS = 9;
/**
 * The maximum size of the heap for long-lived objects, in MB. V8 then collects garbage before the heap grows further, also on a busy
 * machine, where it would otherwise collect it late.
 */
const HEAP_LIMIT_MB = 64;
/** Permitted growth of memory in megabytes. Retaining one text and its tree per compilation would exceed it. */
const MAX_GROWTH_MB = 20;

/** Returns the resident memory of a process in MB. */
function residentMemory(pid: number): number {
	return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1000;
}

const memory = suite('language server: memory');

memory('stays the same over 10,000 edits', async () => {
	const folder = temporaryFolder();
	writeFileSync(path.join(folder, 'common.conf'), '(common) {\n\tencode gzip\n}\n');
	const sites = Array.from(
		{ length: 40 },
		(_, site) => `http://site${site}.test {\n\tuse common\n\theader X-Site ${site}\n\trespond /a a\n\trespond b\n}\n`,
	);
	const text = `import common.conf\n\n${sites.join('\n')}`;
	// The packaged binary ignores NODE_OPTIONS.
	const editor = new Editor(folder, {
		bin: LAUNCHER,
		env: { NODE_OPTIONS: `--max-old-space-size=${HEAP_LIMIT_MB}` },
	});
	// A server that retains memory ends once its heap is full.
	const ended = editor.exited.then(() => assert.unreachable(`the server ended:\n${editor.stderr}`));
	ended.catch(() => {});
	await editor.initialize();
	editor.open('Configfile', text);
	await editor.whenVersionsShown();
	let warm = 0;
	for (let edit = 1; edit <= EDITS; edit++) {
		// Types a letter into one site after another, and deletes each letter again.
		const at = text.indexOf(`X-Site ${Math.floor((edit - 1) / 2) % 40}\n`) + 'X-Site '.length;
		if (edit % 2 === 1) editor.edit('Configfile', at, at, 'x');
		else editor.edit('Configfile', at, at + 1, '');
		if (edit % BURST_EDITS === 0) await Promise.race([editor.whenVersionsShown(), ended]);
		if (edit === WARM_UP_EDITS) warm = residentMemory(editor.pid);
	}
	const end = residentMemory(editor.pid);
	console.log(`  ${warm.toFixed(0)} MB after ${WARM_UP_EDITS} edits, ${end.toFixed(0)} MB after ${EDITS}`);
	assert.ok(end <= warm + MAX_GROWTH_MB, `${warm} MB, then ${end} MB`);
	assert.is(await editor.quit(), 0);
});

memory.after(endEditors);

memory.run();
