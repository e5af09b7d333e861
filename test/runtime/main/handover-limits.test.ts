/**
 * The time limits for the steps of a successor: a program that hangs in a step is ended in time, and the reason for the failure
 * names the step.
 */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { mock } from 'node:test';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
	formatDuration,
	type HandoverStep,
	READY_LIMIT_MS,
	STEPS,
	stepLimitMs,
} from '../../../runtime/main/handover/handover-protocol.ts';
import { SuccessorProcess } from '../../../runtime/main/handover/successor-process.ts';
import { temporaryFolder } from '../../harness.ts';

const limits = suite('limits of handover steps');

const OFFER = {
	type: 'offer',
	protocol: 0,
	inheritance: { sockets: { listeners: [], held: [], passed: [] }, ticketKeys: [] },
	process: undefined,
} as const;

/** Lets pending I/O events be handled. `setImmediate` works although the timers in this test are fake. */
const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve));

/** Runs a handover to a program that sends a message and hangs. */
async function withHangingSuccessor(
	message: { readonly type: string; readonly step?: string } | undefined,
	readyLimit: number,
	test: (successor: SuccessorProcess) => Promise<void>,
): Promise<void> {
	const file = path.join(temporaryFolder(), 'program');
	const send = message === undefined ? '' : `printf '%s\\n' '${JSON.stringify(message)}' >&3`;
	writeFileSync(file, `#!/bin/sh\n${send}\nexec sleep 1000\n`, { mode: 0o700 });
	mock.timers.enable({ apis: ['setTimeout'] });
	let successor: SuccessorProcess | undefined;
	try {
		successor = new SuccessorProcess({ file, args: [] }, OFFER, [], false, readyLimit, () => ({ upstreams: [] }));
		await test(successor);
	} finally {
		successor?.abort('The test is over.');
		mock.timers.reset();
	}
}

function isAlive(pid: number): boolean {
	try {
		process.kill(pid, 0);
		return true;
	} catch {
		return false;
	}
}

for (const step of ['start', 'compile', 'bind', 'threads', 'check', 'switch'] as const satisfies HandoverStep[]) {
	limits(`a program that hangs while ${STEPS[step].doing} is ended`, async () => {
		const message = step === 'start' ? undefined : step === 'switch' ? { type: 'ready' } : { type: 'step', step };
		await withHangingSuccessor(message, READY_LIMIT_MS, async successor => {
			const running = successor.run();
			let isEnded = false;
			void running.then(() => {
				isEnded = true;
			});
			while (successor.step !== step) await turn();
			const limit = stepLimitMs(step, READY_LIMIT_MS);
			assert.is(limit, STEPS[step].limit);
			mock.timers.tick(limit - 1);
			for (let i = 0; i < 3; i++) await turn();
			assert.not(isEnded, 'ended too early');
			mock.timers.tick(1);
			const result = await running;
			const exceeded =
				step === 'switch' ? 'did not accept connections in time' : 'has exceeded the limit of .* for a step';
			assert.is(result.result, 'failed');
			const said = result.result === 'failed' ? result.message : '';
			assert.match(said, new RegExp(exceeded));
			assert.match(said, formatDuration(limit));
			assert.match(said, `It was ${STEPS[step].doing}.`);
			assert.not(isAlive(successor.pid!), 'the program has been ended');
		});
	});
}

limits('the time until it is ready limits all steps together', async () => {
	await withHangingSuccessor({ type: 'step', step: 'check' }, 5000, async successor => {
		const running = successor.run();
		while (successor.step !== 'check') await turn();
		mock.timers.tick(5000);
		const result = await running;
		assert.is(
			result.result === 'failed' && result.message,
			'The new process did not become ready in time (5 s). It was testing its listeners.',
		);
	});
});

limits('grow with the time until the process must be ready, except that of the switch', () => {
	for (const step of ['start', 'compile', 'bind', 'threads', 'check', 'ready'] as const) {
		assert.is(stepLimitMs(step, 2 * READY_LIMIT_MS), 2 * STEPS[step].limit);
		assert.is(stepLimitMs(step, 1000), 1000);
	}
	assert.is(stepLimitMs('switch', 2 * READY_LIMIT_MS), STEPS.switch.limit);
});

limits.run();
