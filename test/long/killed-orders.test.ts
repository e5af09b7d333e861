/**
 * A process that is killed at any step of a certificate order and then restarted gets its certificate, and only one order is
 * made.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { temporaryFolder } from '../harness.ts';
import { type ScriptedAcmeServer, scriptedAcmeServer } from '../runtime/certificates/scripted-acme-server.ts';
import { planOfPolicies, policyForNames } from '../runtime/certificates/test-manager.ts';

const killed = suite('killed orders');
const PROGRAM = path.join(import.meta.dirname, 'ordering-process.ts');

/** Starts the process that orders a certificate. */
function startOrder(server: ScriptedAcmeServer, store: string, dieAtWrite = 0): ChildProcess {
	const wanted = planOfPolicies(
		policyForNames(
			['a.example.com'],
			[{ issuer: 'acme', directory: server.directory, trusted_roots: [server.rootFile] }],
		),
	);
	return spawn(process.execPath, [PROGRAM, JSON.stringify(wanted)], {
		env: { ...process.env, SVC_TLS_STORE: store, DIE_AT_WRITE: String(dieAtWrite) },
		stdio: ['ignore', 'pipe', 'pipe'],
	});
}

/** Waits until the process has published a certificate or died, then ends it. Resolves to the event that happened. */
async function waitForOutcome(child: ChildProcess): Promise<'published' | 'died'> {
	const exited = once(child, 'exit');
	const published = once(child.stdout!, 'data');
	child.stderr!.resume();
	const timer = setTimeout(() => child.kill('SIGKILL'), 20_000);
	const which = await Promise.race([
		published.then(() => 'published' as const).catch(() => 'died' as const),
		exited.then(() => 'died' as const),
	]);
	clearTimeout(timer);
	child.kill('SIGKILL');
	await exited;
	return which;
}

killed('a process killed at any ACME request finishes the same order after a restart', async () => {
	const folder = temporaryFolder();
	for (let step = 1; ; step++) {
		const server = await scriptedAcmeServer(folder);
		const store = temporaryFolder();
		let requests = 0;
		let at = '';
		const first = startOrder(server, store);
		server.faults.before = resource => {
			if (++requests === step) {
				at = resource;
				first.kill('SIGKILL');
			}
			return undefined;
		};
		const how = await waitForOutcome(first);
		server.faults.before = () => undefined;
		if (how === 'died')
			assert.is(await waitForOutcome(startOrder(server, store)), 'published', `killed at request ${step}, ${at}`);
		assert.is(server.orders.length, 1, `orders after a kill at request ${step}, ${at}`);
		assert.is(server.issued.length, 1, `certificates after a kill at request ${step}, ${at}`);
		assert.is(server.accounts, 1);
		await server.close();
		if (how === 'published') {
			assert.ok(step > 8, `${step} requests`);
			return;
		}
	}
});

killed('a process killed at any write to the store finishes the same order after a restart', async () => {
	const folder = temporaryFolder();
	for (let write = 1; ; write++) {
		const server = await scriptedAcmeServer(folder);
		const store = temporaryFolder();
		const how = await waitForOutcome(startOrder(server, store, write));
		if (how === 'died')
			assert.is(await waitForOutcome(startOrder(server, store)), 'published', `killed at write ${write}`);
		assert.is(server.orders.length, 1, `orders after a kill at write ${write}`);
		assert.is(server.issued.length, 1, `certificates after a kill at write ${write}`);
		await server.close();
		if (how === 'published') {
			assert.ok(write > 6, `${write} writes`);
			return;
		}
	}
});

killed.run();
