/** When a successor fails, the reason includes what it wrote to standard error before it received the offer of its predecessor. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { LastLines } from '../../../runtime/main/handover/last-lines.ts';
import { type HandoverResult, SuccessorProcess } from '../../../runtime/main/handover/successor-process.ts';
import { temporaryFolder } from '../../harness.ts';

const outputs = suite('output of successors');

/** Runs a shell script as the successor. In the result, `passedOn` is what this process would write to its own standard error. */
async function resultOf(script: string, standardError?: number): Promise<{ result: HandoverResult; passedOn: string }> {
	const file = path.join(temporaryFolder(), 'program');
	writeFileSync(file, `#!/bin/sh\n${script}\n`, { mode: 0o700 });
	const offer = {
		type: 'offer',
		protocol: 0,
		inheritance: { sockets: { listeners: [], held: [], passed: [] }, ticketKeys: [] },
		process: undefined,
		standardError,
	} as const;
	let passedOn = '';
	const successor = new SuccessorProcess(
		{ file, args: [] },
		offer,
		standardError === undefined ? [] : [2],
		false,
		60_000,
		() => ({ upstreams: [] }),
		text => {
			passedOn += text;
		},
	);
	return { result: await successor.run(), passedOn };
}

outputs('are reported and passed on', async () => {
	const { result, passedOn } = await resultOf('echo "libfoo.so: cannot open" >&2; exit 127', 4);
	assert.equal(result, {
		result: 'failed',
		message: 'The new process ended with status 127 before it served. It was starting.',
		output: 'libfoo.so: cannot open',
	});
	assert.is(passedOn, 'libfoo.so: cannot open\n');
});

outputs('are reported even if another process keeps standard error open', async () => {
	// A process that the script starts keeps standard error open. It runs in its own session, so that it does not end together
	// with the script.
	const { result } = await resultOf('echo gone >&2; setsid sleep 3 & exit 1', 4);
	assert.is(result.result === 'failed' && result.output, 'gone');
});

outputs('without a line are not reported', async () => {
	const { result } = await resultOf('exit 1', 4);
	assert.not('output' in result);
});

outputs('are not read unless the offer returns standard error to the program', async () => {
	const { result, passedOn } = await resultOf('exit 1');
	assert.not('output' in result);
	assert.is(passedOn, '');
});

outputs('are cut to the last lines, without control characters', () => {
	const lines = new LastLines();
	lines.add(Array.from({ length: 50 }, (_, at) => `line ${at + 1}`).join('\n'));
	lines.add('\n\x1b[31mred\x1b[0m\tand\x07 \x9bplain\r\n\n');
	const text = lines.text.split('\n');
	assert.is(text.length, 20);
	assert.is(text[0], 'line 32');
	assert.is(text.at(-1), 'red\tand plain');
	lines.add('x'.repeat(1_000_000));
	assert.is(lines.text, 'x'.repeat(2000));
});

outputs.run();
