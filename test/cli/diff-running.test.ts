/** `svc diff --running`: what a configuration would change on a running server. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, runCommand, serve, temporaryFolder } from '../harness.ts';

const running = suite('svc diff --running');

running('compares with what the server serves, says so by its status, and changes nothing', async () => {
	const folder = temporaryFolder();
	const [port] = (await freePorts(1)) as [number];
	const text = (body: string, secret: string): string =>
		`{\n\tadmin unix/${folder}/admin.sock\n\tthreads 1\n}\nhttp://127.0.0.1:${port} {\n\tbasic_auth {\n\t\tbob ${secret}\n\t}\n\trespond "${body}"\n}\n`;
	const hash = '$2b$04$dn9tFKKjjviJcZyNIh9.FegXvwX0ahZVruFNmM.efvz3DjFl884fW';
	const served = path.join(folder, 'Configfile');
	const changed = path.join(folder, 'changed.conf');
	writeFileSync(served, text('one', hash));
	writeFileSync(changed, text('two', hash));
	const server = await serve([served], port, { env: { XDG_STATE_HOME: folder } });
	try {
		const equal = await runCommand(['diff', '--running', served]);
		assert.is(equal.status, 0, equal.stderr);
		assert.match(equal.stdout, 'Not compared completely: files and the environment are not read.\nNo difference in');
		const different = await runCommand(['diff', '--running', changed]);
		assert.is(different.status, 1, different.stderr);
		assert.match(different.stdout, 'body: "one" → "two"');
		assert.match(different.stdout, 'the running configuration');
		const json = await runCommand(['diff', '--running', changed, '--format', 'json']);
		assert.is(JSON.parse(json.stdout).same, false);
		assert.is((await runCommand(['diff', '--running', served])).status, 0, 'nothing was applied');

		const refused = await runCommand(['diff', '--running', served, changed]);
		assert.is(refused.status, 2);
		assert.match(refused.stderr, '`--running` takes one configuration.');
		assert.is((await runCommand(['diff', served])).status, 2);
	} finally {
		await server.stop();
	}
	const unreachable = await runCommand(['diff', '--running', served]);
	assert.is(unreachable.status, 2);
});

running.run();
