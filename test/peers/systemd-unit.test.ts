/** The systemd unit, checked by systemd's own tools. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, ROOT, SVC, temporaryFolder, waitForPort } from '../harness.ts';

const folder = temporaryFolder();
const unit = path.join(folder, 'svc.service');
const text = readFileSync(path.join(ROOT, 'cli/packaging/svc.service'), 'utf8');
// systemd-analyze checks that the unit's program exists, so the program is replaced by one that does. The manual pages are not
// checked.
writeFileSync(unit, text.replaceAll('/usr/local/bin/svc', '/bin/sh'));

const systemd = suite('systemd');

systemd('systemd-analyze knows every line of the unit', () => {
	const socket = path.join(folder, 'svc.socket');
	copyFileSync(path.join(ROOT, 'cli/packaging/svc.socket'), socket);
	const result = spawnSync('systemd-analyze', ['verify', '--man=no', unit, socket], { encoding: 'utf8' });
	assert.is(result.stderr, '');
	assert.is(result.status, 0);
});

systemd('systemd-analyze finds little exposure', () => {
	const args = ['security', '--offline=true', '--no-pager', '--threshold=25', unit];
	const result = spawnSync('systemd-analyze', args, { encoding: 'utf8' });
	assert.is(result.status, 0, result.stdout + result.stderr);
});

systemd('systemd passes a socket by name, and the first connection waits for the server', async () => {
	const [port] = (await freePorts(1)) as [number];
	const file = path.join(folder, 'Configfile');
	writeFileSync(file, '{\n\tadmin off\n}\nhttp:// {\n\tbind fd/web\n\trespond "passed"\n}\n');
	const args = ['--listen', `127.0.0.1:${port}`, '--fdname=web', SVC, 'run', '--config', file];
	const child = spawn('systemd-socket-activate', args, { stdio: 'ignore' });
	try {
		await waitForPort(port);
		assert.is(await (await fetch(`http://127.0.0.1:${port}/`)).text(), 'passed');
	} finally {
		// The server has replaced the program that listened on the port before.
		child.kill('SIGTERM');
		await once(child, 'close');
	}
});

systemd.run();
