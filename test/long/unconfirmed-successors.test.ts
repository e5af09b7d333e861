/** Processes that fail after a handover, before the new configuration has been confirmed. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { bodyOf, exitStatus, isRefused, pidOf, processesOf, siteText, withServer } from '../cli/handover-server.ts';
import { until, untilOutput } from '../harness.ts';

const unconfirmed = suite('unconfirmed successors');

for (const [how, signal] of [
	['dies', 'SIGKILL'],
	['hangs', 'SIGSTOP'],
] as const) {
	unconfirmed(`one that ${how} is replaced by the process before it`, async () => {
		await withServer(
			([port, other]) => siteText(port!, 'one') + siteText(other!, 'other'),
			async ({ server, folder, ports, load }) => {
				const [first, dropped, added] = ports as [number, number, number];
				const answer = await load(siteText(first, 'new') + siteText(added, 'two'), '?handover&confirm=1s');
				assert.is(answer.status, 200, JSON.stringify(answer.body));
				process.kill(pidOf(answer), signal);
				await until('the previous configuration', async () => (await bodyOf(first).catch(() => '')) === 'one');
				assert.is(await bodyOf(dropped), 'other');
				assert.ok(await isRefused(added));
				await untilOutput(server, 'the new process failed before it was confirmed');
				// Like any other process, the third process can be replaced by a handover.
				const again = await load(siteText(first, 'new') + siteText(added, 'two'));
				assert.is(again.status, 200, JSON.stringify(again.body));
				assert.is(await bodyOf(added), 'two');
				process.kill(pidOf(again), 'SIGTERM');
				assert.is(await exitStatus(server), 0);
				assert.equal(processesOf(folder), []);
			},
		);
	});
}

unconfirmed('one returns to the previous configuration although the process before it has died', async () => {
	await withServer(
		([port]) => siteText(port!, 'one'),
		async ({ server, folder, ports, load }) => {
			const [first, added] = ports as [number, number];
			const answer = await load(siteText(first, 'new') + siteText(added, 'two'), '?handover&confirm=2s');
			assert.is(answer.status, 200, JSON.stringify(answer.body));
			server.child.kill('SIGKILL');
			await exitStatus(server);
			await until('the previous configuration', async () => (await bodyOf(first).catch(() => '')) === 'one');
			await until('one process', () => processesOf(folder).length === 1);
			assert.not(processesOf(folder).includes(pidOf(answer)));
			process.kill(processesOf(folder)[0]!, 'SIGTERM');
			await until('the end', () => processesOf(folder).length === 0);
		},
	);
});

unconfirmed.run();
