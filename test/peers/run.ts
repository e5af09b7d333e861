/**
 * `npm run test:peers`: runs the tests against real peers from the distribution's packages. Missing packages are installed first.
 * As many files run at the same time as there are processors; time-sensitive files run last and one at a time. Prints
 * `N passed, N failed` on a line of its own at the end. Like test/run.ts, tests the binary.
 *
 * Usage: node test/peers/run.ts [word …], with the words of test/run.ts
 */
import { spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { runAllFiles, selectCases, testFiles, useBuiltBinary } from '../run.ts';

/** Programs that the peer tests use, and the Debian packages that contain them. */
const PACKAGES: { [program: string]: string } = {
	curl: 'curl',
	nginx: 'nginx-light',
	caddy: 'caddy',
	wrk: 'wrk',
	zsh: 'zsh',
	fish: 'fish',
	elvish: 'elvish',
	groff: 'groff-base',
	man: 'man-db',
	htpasswd: 'apache2-utils',
	patch: 'patch',
	'systemd-analyze': 'systemd',
	openssl: 'openssl',
	pebble: 'pebble',
	testssl: 'testssl.sh',
	'php-fpm8.2': 'php8.2-fpm',
	h2load: 'nghttp2-client',
	gtlsclient: 'ngtcp2-client',
	haproxy: 'haproxy',
	varnishd: 'varnish',
	promtool: 'prometheus',
	'redis-server': 'redis-server',
	chromium: 'chromium',
	certutil: 'libnss3-tools',
	named: 'bind9',
	nvim: 'neovim',
	emacs: 'emacs-nox elpa-eglot',
	debootstrap: 'debootstrap',
	xz: 'xz-utils',
	skopeo: 'skopeo',
	'qemu-aarch64-static': 'qemu-user-static',
};

const missing = Object.entries(PACKAGES).filter(
	([program]) => spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0,
);
if (missing.length > 0) {
	const packages = missing.flatMap(([, names]) => names.split(' '));
	console.log(`installing ${packages.join(' ')}`);
	const environment = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
	for (const args of [
		['update', '-qq'],
		['install', '-y', '-qq', '--no-install-recommends', ...packages],
	]) {
		const result = spawnSync('apt-get', args, { env: environment, encoding: 'utf8' });
		if (result.status !== 0) {
			console.error(`apt-get ${args.join(' ')} failed: run it as root.\n${result.stderr ?? result.error?.message}`);
			console.log('0 passed, 1 failed');
			process.exit(1);
		}
	}
}

const all = testFiles(import.meta.dirname, []);
const { files, words } = selectCases(all, import.meta.dirname, process.argv.slice(2));
useBuiltBinary();
await runAllFiles(files, path.dirname(import.meta.dirname), availableParallelism(), words);
