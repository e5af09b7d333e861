/** When a suspended process continues, no thread is replaced for not having responded during the suspension. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, serve, temporaryFolder, WAIT_LIMIT_MS, waitForClock, waitForNothing } from '../../harness.ts';

/** Duration of the suspension in milliseconds. It is longer than the time within which a thread must respond. */
const SUSPENSION_MS = 3000;

const suspended = suite('suspended process');

suspended('a resumed process keeps its threads', async () => {
	const [port] = (await freePorts(1)) as [number];
	const folder = temporaryFolder();
	writeFileSync(path.join(folder, 'Configfile'), `http://127.0.0.1:${port} {\n\trespond hello\n}\n`);
	const server = await serve(['Configfile'], port, { cwd: folder });
	try {
		server.child.kill('SIGSTOP');
		await waitForClock(SUSPENSION_MS);
		server.child.kill('SIGCONT');
		// Threads are checked every half second.
		await waitForNothing(1500);
		assert.is(await (await fetch(`http://127.0.0.1:${port}/`)).text(), 'hello');
		assert.not.match(server.output(), /does not answer|replaced/);
	} finally {
		assert.is(await server.stop(WAIT_LIMIT_MS), 0);
	}
});

suspended.run();
