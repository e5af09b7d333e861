/** install.sh, run with a scratch root: the files it installs, keeps and removes. */
import { spawnSync } from 'node:child_process';
import {
	copyFileSync,
	existsSync,
	lstatSync,
	mkdirSync,
	readdirSync,
	readFileSync,
	readlinkSync,
	statSync,
	writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ROOT, runCommand, SVC, temporaryFolder } from '../../harness.ts';

const packaging = path.join(ROOT, 'cli/packaging');
const folder = temporaryFolder();
const dist = path.join(folder, 'dist');
mkdirSync(dist);
copyFileSync(path.join(packaging, 'install.sh'), path.join(dist, 'install.sh'));
for (const unit of ['svc.service', 'svc.socket']) copyFileSync(path.join(packaging, unit), path.join(dist, unit));
// Uses a fake binary, because the real one takes seconds to build.
writeFileSync(path.join(dist, 'svc'), `#!/bin/sh\nexec '${SVC}' "$@"\n`, { mode: 0o755 });

function install(root: string, args: readonly string[] = [], more: Record<string, string> = {}) {
	const { status, stdout, stderr } = spawnSync(path.join(dist, 'install.sh'), args, {
		encoding: 'utf8',
		env: { PATH: process.env.PATH, DESTDIR: root, ...more },
	});
	return { status, stdout, stderr };
}

function filesBelow(root: string): string[] {
	return readdirSync(root, { recursive: true, withFileTypes: true })
		.filter(entry => !entry.isDirectory())
		.map(entry => path.relative(root, path.join(entry.parentPath, entry.name)))
		.sort();
}

const installer = suite('install.sh');
const root = path.join(folder, 'root');

installer('every file is installed to its place below the root', async () => {
	assert.equal(install(root), { status: 0, stdout: `svc is installed in ${root}/usr/local.\n`, stderr: '' });
	const files = filesBelow(root);
	const pages = files.filter(file => file.startsWith('usr/local/share/man/'));
	assert.ok(pages.includes('usr/local/share/man/man1/svc-run.1'));
	assert.ok(pages.includes('usr/local/share/man/man5/svc-configfile.5'));
	assert.ok(pages.includes('usr/local/share/man/man7/svc-https.7'));
	assert.equal(
		files.filter(file => !pages.includes(file)),
		[
			'etc/svc/Configfile',
			'etc/systemd/system/svc.service',
			'etc/systemd/system/svc.socket',
			'usr/local/bin/svc',
			'usr/local/bin/vc',
			'usr/local/share/bash-completion/completions/svc',
			'usr/local/share/fish/vendor_completions.d/svc.fish',
			'usr/local/share/zsh/site-functions/_svc',
		],
	);
	assert.is(statSync(path.join(root, 'usr/local/bin/svc')).mode & 0o777, 0o755);
	assert.is(readlinkSync(path.join(root, 'usr/local/bin/vc')), 'svc');
	assert.is(statSync(path.join(root, 'var/lib/svc')).mode & 0o777, 0o750);
	assert.ok(existsSync(path.join(root, 'var/log/svc')));
	assert.match(readFileSync(path.join(root, 'usr/local/share/zsh/site-functions/_svc'), 'utf8'), /^#compdef svc\n/);
});

installer('the installed configuration is valid and formatted', async () => {
	const result = await runCommand(['validate', path.join(root, 'etc/svc/Configfile')]);
	assert.is(result.stderr, '');
	assert.is(result.status, 0);
});

installer('a second installation replaces the program and keeps the configuration', () => {
	const configuration = path.join(root, 'etc/svc/Configfile');
	writeFileSync(configuration, ':8080\n');
	writeFileSync(path.join(root, 'usr/local/bin/svc'), 'old');
	assert.is(install(root).status, 0);
	assert.is(readFileSync(configuration, 'utf8'), ':8080\n');
	assert.match(readFileSync(path.join(root, 'usr/local/bin/svc'), 'utf8'), /^#!\/bin\/sh\n/);
});

installer('uninstalling keeps the configuration, and files that it did not install', () => {
	writeFileSync(path.join(root, 'usr/local/bin/other'), '');
	const { status, stdout, stderr } = install(root, ['--uninstall']);
	assert.is(stderr, '');
	assert.is(status, 0);
	assert.match(stdout, 'svc is removed');
	assert.equal(filesBelow(root), ['etc/svc/Configfile', 'usr/local/bin/other']);
	assert.is(install(root, ['--uninstall']).status, 0);
});

installer('PREFIX and ALIAS change the folder and the name of the alias', () => {
	const other = path.join(folder, 'other');
	assert.is(install(other, [], { PREFIX: '/opt/svc', ALIAS: 's' }).status, 0);
	assert.is(readlinkSync(path.join(other, 'opt/svc/bin/s')), 'svc');
	const unit = readFileSync(path.join(other, 'etc/systemd/system/svc.service'), 'utf8');
	assert.match(unit, '\nExecStart=/opt/svc/bin/svc run ');
	assert.is(install(other, ['--uninstall'], { PREFIX: '/opt/svc', ALIAS: 's' }).status, 0);
	assert.equal(filesBelow(other), ['etc/svc/Configfile']);
});

installer("another program that has the alias's name is kept", () => {
	const taken = path.join(folder, 'taken');
	mkdirSync(path.join(taken, 'usr/local/bin'), { recursive: true });
	writeFileSync(path.join(taken, 'usr/local/bin/vc'), 'theirs');
	const { status, stderr } = install(taken);
	assert.is(status, 0);
	assert.match(stderr, /^There is another .*\/vc: it stays/);
	install(taken, ['--uninstall']);
	assert.is(readFileSync(path.join(taken, 'usr/local/bin/vc'), 'utf8'), 'theirs');
	const none = path.join(folder, 'none');
	assert.is(install(none, [], { ALIAS: '' }).status, 0);
	assert.equal(readdirSync(path.join(none, 'usr/local/bin')), ['svc']);
	assert.not(lstatSync(path.join(none, 'usr/local/bin/svc')).isSymbolicLink());
});

installer('invalid arguments are refused with one sentence before anything is changed', () => {
	const untouched = path.join(folder, 'untouched');
	for (const [args, more] of [
		[['--remove'], {}],
		[['--uninstall', 'x'], {}],
		[[], { PREFIX: 'relative' }],
		[[], { PREFIX: '/a|b' }],
		[[], { ALIAS: '../x' }],
		[[], { ALIAS: 'svc' }],
	] as [string[], Record<string, string>][]) {
		const { status, stderr } = install(untouched, args, more);
		assert.is(status, 1);
		assert.match(stderr, /^error: [^\n]+\n$/);
	}
	assert.not(existsSync(untouched));
	const alone = path.join(folder, 'install.sh');
	copyFileSync(path.join(packaging, 'install.sh'), alone);
	const result = spawnSync(alone, { encoding: 'utf8', env: { PATH: process.env.PATH, DESTDIR: untouched } });
	assert.is(result.status, 1);
	assert.match(result.stderr, /^error: there is no svc beside this script/);
});

installer('a program that does not run on the machine is not installed', () => {
	const untouched = path.join(folder, 'other-machine');
	const foreign = path.join(folder, 'foreign');
	mkdirSync(foreign);
	copyFileSync(path.join(packaging, 'install.sh'), path.join(foreign, 'install.sh'));
	writeFileSync(path.join(foreign, 'svc'), '#!/bin/sh\necho "the C library is too old" >&2\nexit 127\n', {
		mode: 0o755,
	});
	const { status, stderr } = spawnSync(path.join(foreign, 'install.sh'), {
		encoding: 'utf8',
		env: { PATH: process.env.PATH, DESTDIR: untouched },
	});
	assert.is(status, 1);
	assert.match(
		stderr,
		/^error: .*\/svc does not run on this machine, so nothing is installed\..* the C library is too old\n$/,
	);
	assert.not(existsSync(untouched));
});

installer.run();
