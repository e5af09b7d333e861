/** The systemd unit before systemd's own eyes. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ROOT, temporaryFolder } from '../harness.ts';

const folder = temporaryFolder();
const unit = path.join(folder, 'svc.service');
const text = readFileSync(path.join(ROOT, 'cli/packaging/svc.service'), 'utf8');
// It looks whether the program is there; the man pages are not installed either.
writeFileSync(unit, text.replace('ExecStart=/usr/local/bin/svc', 'ExecStart=/bin/sh'));

const systemd = suite('systemd');

systemd('knows every line', () => {
	const socket = path.join(folder, 'svc.socket');
	copyFileSync(path.join(ROOT, 'cli/packaging/svc.socket'), socket);
	const result = spawnSync('systemd-analyze', ['verify', '--man=no', unit, socket], { encoding: 'utf8' });
	assert.is(result.stderr, '');
	assert.is(result.status, 0);
});

systemd('finds little exposed', () => {
	const args = ['security', '--offline=true', '--no-pager', '--threshold=25', unit];
	const result = spawnSync('systemd-analyze', args, { encoding: 'utf8' });
	assert.is(result.status, 0, result.stdout + result.stderr);
});

systemd.run();
