/**
 * A server process that was started with `--cluster`, without a Redis: only the cluster can change its configuration, and another
 * process can replace it.
 */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, runCommand, serve, temporaryFolder, untilOutput } from '../harness.ts';

const machines = suite('machine of a cluster');

machines('refuses to load or edit a configuration, before and after its process is replaced', async () => {
	const folder = temporaryFolder();
	const [port, otherPort, admin, redis] = (await freePorts(4)) as [number, number, number, number];
	const write = (sitePort: number): void =>
		writeFileSync(
			path.join(folder, 'Configfile'),
			`{
	admin 127.0.0.1:${admin}
	threads 1
	cluster redis://127.0.0.1:${redis} {
		key {$CLUSTER_KEY}
	}
}
http://127.0.0.1:${sitePort} {
	respond "own file"
}
`,
		);
	write(port);
	const env = { CLUSTER_KEY: randomBytes(32).toString('base64'), NO_COLOR: '1', XDG_STATE_HOME: folder };
	const context = { cwd: folder, env };
	const server = await serve(['--cluster'], port, context);
	const body = async (): Promise<string> => (await fetch(`http://127.0.0.1:${port}`)).text();
	try {
		write(otherPort);
		const checkRefusals = async (): Promise<void> => {
			for (const options of [[], ['--handover'], ['--handover', '--confirm', '1m']]) {
				const { status, stderr } = await runCommand(['reload', ...options], context);
				assert.is(status, 1);
				assert.is(
					stderr,
					'error: The server did not apply Configfile: This machine takes its configuration from its cluster. Change it with `svc publish`. If the local file of the machine has changed, stop and start the server.\n',
				);
			}
			const edit = await fetch(`http://127.0.0.1:${admin}/config/settings/debug`, {
				method: 'POST',
				headers: { 'Content-Type': 'application/json' },
				body: 'true',
			});
			assert.is(edit.status, 409);
			assert.is(((await edit.json()) as { error: { code: string } }).error.code, 'configured_by_cluster');
			assert.is(await body(), 'own file');
		};
		await checkRefusals();
		server.child.kill('SIGUSR1');
		await untilOutput(server, 'nothing can be reloaded');
		await untilOutput(server, 'The configuration comes from the cluster');
		// By now, the file names another port, but the replacement process keeps the configuration of the cluster.
		const restarted = await runCommand(['restart'], context);
		assert.is(restarted.status, 0, restarted.stderr);
		assert.match(restarted.stdout, /^Process \d+ has taken over\.\n$/);
		await checkRefusals();
	} finally {
		await server.stop();
	}
});

machines.run();
