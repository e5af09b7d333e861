/** A server logs to a 3 MB disk that fills up. Every access log entry is either complete in the file or counted as dropped. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, SVC, serve, temporaryFolder } from '../harness.ts';
import { eventually } from '../runtime/running-server.ts';

const REQUESTS = 12_000;

/** Arguments of `unshare` to create a mount namespace. No root is needed where the system allows user namespaces. */
const NAMESPACE_ARGUMENTS = ['--user', '--map-root-user', '--mount'];
const hasNamespaces = spawnSync('unshare', [...NAMESPACE_ARGUMENTS, 'true']).status === 0;

const disk = suite('full disk');

disk('entries that do not fit on a 3 MB disk are counted as dropped, and none is truncated', async () => {
	if (!hasNamespaces) {
		console.log('skipped: this user may not mount');
		return;
	}
	const folder = temporaryFolder();
	const [port, admin] = (await freePorts(2)) as [number, number];
	const logs = path.join(folder, 'logs');
	mkdirSync(logs);
	writeFileSync(
		path.join(folder, 'Configfile'),
		`{\n\tadmin 127.0.0.1:${admin}\n\tmetrics\n}\nhttp://127.0.0.1:${port} {\n\tlog {\n\t\toutput file ${logs}/access.log\n\t\tformat json\n\t}\n\trespond hello\n}\n`,
	);
	// The arguments after the script go to the server unchanged.
	const command = path.join(folder, 'svc-on-small-disk');
	const script = `mount -t tmpfs -o size=3m tmpfs "${logs}" && exec "${SVC}" "$@"`;
	writeFileSync(command, `#!/bin/sh\nexec unshare ${NAMESPACE_ARGUMENTS.join(' ')} sh -c '${script}' svc "$@"\n`, {
		mode: 0o755,
	});
	const server = await serve(['Configfile'], port, { cwd: folder, command });
	try {
		const ask = async (count: number): Promise<void> => {
			for (let i = 0; i < count; i++) await (await fetch(`http://127.0.0.1:${port}/`)).text();
		};
		await Promise.all(Array.from({ length: 20 }, () => ask(REQUESTS / 20)));
		const dropped = async (): Promise<number> => {
			const text = await (await fetch(`http://127.0.0.1:${admin}/metrics`)).text();
			return Number(/^svc_access_log_dropped_total (\d+)$/m.exec(text)![1]);
		};
		// The path of the log file as seen in the server's own mount namespace.
		const file = `/proc/${server.child.pid}/root${logs}/access.log`;
		const lines = (): string[] => readFileSync(file, 'utf8').split('\n');
		await eventually(
			'every line is written or counted',
			async () => lines().length - 1 + (await dropped()) >= REQUESTS,
		);
		const written = lines();
		assert.is(written.pop(), '');
		for (const line of written) assert.is(JSON.parse(line).status, 200);
		assert.is(written.length + (await dropped()), REQUESTS);
		assert.ok((await dropped()) > 0);
		console.log(`${written.length} lines of ${readFileSync(file).length} bytes, ${await dropped()} counted as dropped`);
		const reports = server.output().split('log entries were lost').length - 1;
		assert.ok(reports >= 1 && reports <= 3, `${reports} reports`);
	} finally {
		await server.stop();
	}
});

disk.run();
