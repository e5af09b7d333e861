/** `svc test --watch` runs the tests again after each change of the configuration or an imported file, even after a mistake. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { SVC, temporaryFolder, until } from '../harness.ts';

const watching = suite('svc test --watch');

watching('each change leads to another run', async () => {
	const cwd = temporaryFolder();
	const configure = (body: string): void => writeFileSync(path.join(cwd, 'answer'), `respond "${body}"\n`);
	configure('ok');
	writeFileSync(
		path.join(cwd, 'Configfile'),
		':8080 {\n\timport answer\n}\ntest "the answer" {\n\tGET http://localhost:8080/\n\texpect body ok\n}\n',
	);
	const child = spawn(SVC, ['test', '--watch'], { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
	try {
		let output = '';
		const printed = async (text: string): Promise<void> => {
			await until(text, () => output.includes(text) && output.includes('Waiting for a change'));
			output = '';
		};
		for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', text => (output += text));
		await printed('ok   the answer');
		configure('wrong');
		await printed('FAIL the answer');
		writeFileSync(path.join(cwd, 'answer'), 'respnd\n');
		await printed('is refused');
		configure('ok');
		await printed('ok   the answer');
	} finally {
		child.kill();
		await once(child, 'close');
	}
	assert.is(child.signalCode, 'SIGTERM');
});

watching.run();
