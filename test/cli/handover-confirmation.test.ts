/** Handovers that must be confirmed: without a confirmation, the previous program and configuration serve again. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { connect, createServer } from 'node:net';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { descriptorOf } from '../../runtime/sockets/duplicate-descriptor.ts';
import { foreignFunctions } from '../../runtime/sockets/foreign-functions.ts';
import { runCommand, until } from '../harness.ts';
import { deferHandshakes } from '../runtime/listeners/defer-handshakes.ts';
import { bodyOf, exitStatus, isRefused, pidOf, processesOf, siteText, withServer } from './handover-server.ts';

const confirmation = suite('handover confirmation');

const reload = (folder: string, word: '--accept' | '--revert') =>
	runCommand(['reload', word, '--address', `unix/${folder}/admin.sock`], { cwd: folder });

/**
 * Sends requests until `stop` is called: some on one persistent connection, and others each on a new connection. `stop` resolves
 * to the failures.
 */
function startRequests(port: number): { stop(): Promise<string[]> } {
	const failures: string[] = [];
	let isStopped = false;
	const agent = new Agent({ keepAlive: true, maxSockets: 1 });
	const loop = async (used: Agent | false): Promise<void> => {
		while (!isStopped) {
			const { promise, resolve } = Promise.withResolvers<string | undefined>();
			const clientRequest = get({ port, host: '127.0.0.1', agent: used }, response => {
				response.resume();
				response.on('end', () => resolve(response.statusCode === 200 ? undefined : String(response.statusCode)));
				response.on('error', error => resolve(error.message));
			});
			clientRequest.on('error', error => resolve(error.message));
			const failure = await promise;
			if (failure !== undefined) failures.push(failure);
		}
	};
	const loops = [loop(agent), loop(false)];
	return {
		async stop() {
			isStopped = true;
			await Promise.all(loops);
			agent.destroy();
			return failures;
		},
	};
}

/** Returns the document that `run --resume` would start with; '' if none has been saved. */
function savedDocument(folder: string): string {
	try {
		return readFileSync(path.join(folder, 'svc', 'autosave.json'), 'utf8');
	} catch {
		return '';
	}
}

confirmation('stays when it is confirmed, and is saved only then', async () => {
	await withServer(
		([port]) => siteText(port!, 'one'),
		async ({ server, folder, ports, load }) => {
			const [first, second] = ports as [number, number];
			const answer = await load(siteText(first, 'new') + siteText(second, 'two'), '?handover&confirm=1h');
			assert.is(answer.status, 200, JSON.stringify(answer.body));
			const { until: deadline } = answer.body.confirm as { readonly until: number };
			assert.ok(deadline > Date.now() + 3_500_000);
			assert.equal([await bodyOf(first), await bodyOf(second)], ['new', 'two']);
			assert.is((await load(siteText(first, 'three'), '')).status, 409, 'another load');
			assert.not.match(savedDocument(folder), 'two');
			const accepted = await reload(folder, '--accept');
			assert.is(accepted.status, 0, accepted.stderr);
			assert.match(savedDocument(folder), 'two');
			assert.is((await reload(folder, '--revert')).status, 1);
			assert.equal([await bodyOf(first), await bodyOf(second)], ['new', 'two']);
			process.kill(pidOf(answer), 'SIGTERM');
			assert.is(await exitStatus(server), 0);
			assert.equal(processesOf(folder), []);
		},
	);
});

confirmation('is rolled back when time is up, without losing a request', async () => {
	await withServer(
		([port, other]) => siteText(port!, 'one') + siteText(other!, 'other'),
		async ({ folder, ports, load }) => {
			const [first, dropped, added] = ports as [number, number, number];
			const traffic = startRequests(first);
			const refused: unknown[] = [];
			let wasClosed = false;
			try {
				const answer = await load(siteText(first, 'new') + siteText(added, 'two'), '?handover&confirm=2s');
				assert.is(answer.status, 200, JSON.stringify(answer.body));
				// During the rollback, both processes refuse changes.
				await until('the previous configuration', async () => {
					wasClosed ||= await isRefused(dropped);
					const { status, body } = await load(siteText(first, 'new') + siteText(added, 'two'), '?dry_run=0').catch(
						() => ({
							status: 0,
							body: {},
						}),
					);
					if (status !== 409 && status !== 503 && status !== 0) refused.push([status, body]);
					return (await bodyOf(first).catch(() => '')) === 'one';
				});
				assert.is(await bodyOf(dropped), 'other');
				await until('the new address to be closed', () => isRefused(added));
			} finally {
				assert.equal(await traffic.stop(), []);
			}
			assert.ok(wasClosed, 'an address without a site refuses connections');
			assert.equal(refused, []);
			assert.not.match(savedDocument(folder), 'two');
		},
	);
});

confirmation('is rolled back on request, and when too many responses are errors', async () => {
	await withServer(
		([port]) => siteText(port!, 'one'),
		async ({ server, folder, ports, load }) => {
			const [first, second] = ports as [number, number];
			assert.is((await load(siteText(first, 'new') + siteText(second, 'two'), '?handover&confirm=1h')).status, 200);
			const reverted = await reload(folder, '--revert');
			assert.is(reverted.status, 0, reverted.stderr);
			assert.match(reverted.stdout, 'Rolled back to the previous configuration');
			assert.is(await bodyOf(first), 'one');
			await until('the new address to be closed', () => isRefused(second));
			const broken = `http://127.0.0.1:${first} {\n\terror 500\n}\n`;
			const answer = await load(broken + siteText(second, 'two'), '?handover&confirm=1h&max_error_rate=0.5');
			assert.is(answer.status, 200, JSON.stringify(answer.body));
			await until('the previous configuration', async () => (await bodyOf(first).catch(() => '')) === 'one');
			await until('the entry', () => /configuration rolled back.* responses were errors/.test(server.output()));
		},
	);
});

confirmation('returns at once although a handshake is in progress on a port that was given up', async () => {
	if (foreignFunctions() === undefined || process.platform !== 'linux') return;
	const dropped = (port: number): string => `http://127.0.0.1:${port} {\n\tbind 127.0.0.1\n\trespond "other"\n}\n`;
	await withServer(
		([port, other]) => siteText(port!, 'one') + dropped(other!),
		async ({ server, folder, ports, load }) => {
			const [first, second] = ports as [number, number];
			const confirmed = '?handover&confirm=1h';
			// The old process takes this for a handshake on its own socket, because the port is the same.
			const listener = createServer().listen(second, '127.0.0.2');
			await once(listener, 'listening');
			deferHandshakes(descriptorOf(listener));
			const client = connect(second, '127.0.0.2').on('error', () => {});
			await once(client, 'connect');
			try {
				assert.is((await load(siteText(first, 'new'), confirmed)).status, 200);
				const reverted = await reload(folder, '--revert');
				assert.is(reverted.status, 0, reverted.stderr);
				assert.not.match(server.output(), 'the address is in use');
				assert.equal([await bodyOf(first), await bodyOf(second)], ['one', 'other']);
				const answer = await load(siteText(first, 'new'), confirmed);
				process.kill(pidOf(answer), 'SIGKILL');
				await until('the previous configuration', async () => (await bodyOf(first).catch(() => '')) === 'one');
				assert.is(await bodyOf(second), 'other');
			} finally {
				client.destroy();
				listener.close();
			}
		},
	);
});

confirmation('keeps the sockets of an address that the new configuration writes differently', async () => {
	await withServer(
		([port]) => siteText(port!, 'one'),
		async ({ folder, ports, load }) => {
			const [first] = ports as [number];
			const site = `http://127.0.0.1:${first} {\n\tbind ::\n\trespond "new"\n}\n`;
			const answer = await load(site, '?handover&confirm=1h');
			assert.is(answer.status, 200, JSON.stringify(answer.body));
			const pid = pidOf(answer);
			process.kill(pid, 'SIGKILL');
			await until('its end', () => !processesOf(folder).includes(pid));
			// The connection waits in the queue of the socket that the old process has kept.
			assert.is(await bodyOf(first), 'one');
		},
	);
});

confirmation(
	'a stop during the return to the previous configuration stops the process that is being started',
	async () => {
		await withServer(
			([port]) => siteText(port!, 'one'),
			async ({ server, folder, ports, load }) => {
				const [first, second] = ports as [number, number];
				const answer = await load(siteText(first, 'new') + siteText(second, 'two'), '?handover&confirm=1h');
				assert.is(answer.status, 200, JSON.stringify(answer.body));
				process.kill(pidOf(answer), 'SIGKILL');
				await until('the return', () => server.output().includes('returning to the previous configuration'));
				server.child.kill('SIGTERM');
				assert.is(await exitStatus(server), 0);
				assert.equal(processesOf(folder), []);
			},
		);
	},
);

confirmation('forwards a stop to the new process', async () => {
	await withServer(
		([port]) => siteText(port!, 'one'),
		async ({ server, folder, ports, load }) => {
			const [first, second] = ports as [number, number];
			assert.is((await load(siteText(first, 'new') + siteText(second, 'two'), '?handover&confirm=1h')).status, 200);
			server.child.kill('SIGTERM');
			assert.is(await exitStatus(server), 0);
			assert.equal(processesOf(folder), []);
		},
	);
});

confirmation('is refused if nobody could confirm, or return', async () => {
	await withServer(
		([port]) => siteText(port!, 'one'),
		async ({ ports, folder, load }) => {
			const [first, second] = ports as [number, number];
			assert.is((await load(siteText(second, 'two'), '?handover&confirm=never')).status, 400);
			const asked = await runCommand(['upgrade', '--confirm', '0s', '--address', `unix/${folder}/admin.sock`], {
				cwd: folder,
			});
			assert.is(asked.status, 1);
			assert.is(await bodyOf(first), 'one');
		},
	);
});

confirmation('works for upgrades', async () => {
	await withServer(
		([port]) => siteText(port!, 'one'),
		async ({ server, folder, ports }) => {
			const address = `unix/${folder}/admin.sock`;
			const upgraded = await runCommand(['upgrade', '--confirm', '1s', '--address', address], { cwd: folder });
			assert.is(upgraded.status, 0, upgraded.stderr);
			assert.match(upgraded.stdout, /^Process \d+ has taken over\.\nReturning to the previous process in 1 s\./);
			await until('the rollback', () => server.output().includes('configuration rolled back'));
			await until('an answer', async () => (await bodyOf(ports[0]!)) === 'one');
		},
	);
});

confirmation.run();
