/**
 * A container for tests with systemd as PID 1 and the programs of this machine. It has its own root with an empty /etc, /run and
 * /var, its own processes and its own branch of the cgroup tree, but shares the network. Needs root.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { LAUNCHER, pauseFor, ROOT, SVC, temporaryFolder } from '../harness.ts';

const SYSTEMD = '/lib/systemd/systemd';

/** Time limits in milliseconds for the start of systemd and for a command. */
const BOOT_LIMIT_MS = 60_000;
const COMMAND_LIMIT_MS = 120_000;

/**
 * A shell script that runs as PID 1 of the new namespaces and becomes systemd. $1 is the folder for the root, $2 the program
 * under test, and the other arguments are paths of this machine that the program needs.
 */
const BOOT_SCRIPT = `
set -e
root=$1 program=$2
shift 2
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs "$root"
cd "$root"
mkdir -p usr etc/systemd/system proc sys dev run tmp var/lib var/log var/cache var/tmp root old usr/local
chmod 1777 tmp var/tmp
mount --rbind /usr usr
mount -o remount,bind,ro usr
for name in bin sbin lib lib32 lib64 libx32; do
	if [ -L "/$name" ]; then ln -s "usr/$name" "$name"
	elif [ -d "/$name" ]; then mkdir "$name"; mount --rbind "/$name" "$name"; fi
done
mount -t tmpfs -o mode=755 tmpfs usr/local
mkdir -p usr/local/bin
for needed; do
	mkdir -p "./$needed"
	mount --rbind "$needed" "./$needed"
done
printf '#!/bin/sh\\nexec "%s" "$@"\\n' "$program" >usr/local/bin/svc
if [ $# -eq 0 ]; then
	: >usr/local/bin/svc
	mount --bind "$program" usr/local/bin/svc
else
	chmod 755 usr/local/bin/svc
fi
printf 'root:x:0:0::/root:/bin/sh\\nsvc:x:987:987::/var/lib/svc:/usr/sbin/nologin\\nnobody:x:65534:65534::/:/usr/sbin/nologin\\n' >etc/passwd
printf 'root:x:0:\\nsystemd-journal:x:101:\\nutmp:x:43:\\ntty:x:5:\\nsvc:x:987:\\nnogroup:x:65534:\\n' >etc/group
printf '127.0.0.1 localhost\\n' >etc/hosts
printf '0123456789abcdef0123456789abcdef\\n' >etc/machine-id
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs dev
for device in null zero full random urandom tty; do
	: >"dev/$device"
	mount --bind "/dev/$device" "dev/$device"
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t tmpfs -o mode=755 tmpfs run
pivot_root . old
cd /
umount -l old
exec env -i container=test PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \\
	${SYSTEMD} --system --unit=basic.target --log-target=journal --log-level=info --show-status=no
`;

/**
 * A shell script that enters a new cgroup, and then the namespaces. $1 is the folder at which it mounts the cgroup tree, $2 the
 * name of the cgroup, and the other arguments are those of {@link BOOT_SCRIPT}.
 */
const ENTER_SCRIPT = `
set -e
tree=$1 name=$2
shift 2
mount -t cgroup2 cgroup2 "$tree"
mkdir "$tree/$name"
echo $$ >"$tree/$name/cgroup.procs"
umount "$tree"
exec unshare --pid --fork --kill-child=SIGKILL --mount --uts --ipc --cgroup sh -c "$BOOT" boot "$@"
`;

/** A shell script that removes a cgroup and all cgroups below it. */
const REMOVE_CGROUP_SCRIPT = `
mount -t cgroup2 cgroup2 "$1" && find "$1/$2" -depth -type d -exec rmdir {} +
`;

/** The output of a command inside the machine, and its exit status. */
export interface Answer {
	readonly status: number | null;
	/** Standard output and standard error. */
	readonly text: string;
}

export class SystemdMachine {
	readonly #unshare: ChildProcess;
	readonly #systemd: number;
	readonly #cgroup: string;

	private constructor(unshare: ChildProcess, systemd: number, cgroup: string) {
		this.#unshare = unshare;
		this.#systemd = systemd;
		this.#cgroup = cgroup;
	}

	/** Starts systemd and waits until it has reached its target. If this machine cannot run systemd, returns the reason. */
	static async start(): Promise<SystemdMachine | string> {
		if (process.platform !== 'linux' || !existsSync(SYSTEMD)) return `there is no ${SYSTEMD}`;
		if (process.getuid?.() !== 0) return 'it needs root';
		const folder = temporaryFolder();
		const cgroup = `svc-test-${process.pid}`;
		const isLauncher = path.resolve(SVC) === LAUNCHER;
		const needed = isLauncher ? [ROOT, realpathSync(path.join(ROOT, 'node_modules'))] : [];
		const folders = needed.filter((one, i) => !needed.slice(0, i).some(other => one.startsWith(`${other}/`)));
		const args = ['--mount', 'sh', '-c', ENTER_SCRIPT, 'enter', folder, cgroup, folder, SVC, ...folders];
		const unshare = spawn('unshare', args, {
			stdio: ['ignore', 'pipe', 'pipe'],
			env: { ...process.env, BOOT: BOOT_SCRIPT },
		});
		let output = '';
		for (const stream of [unshare.stdout, unshare.stderr]) {
			stream.setEncoding('utf8').on('data', chunk => {
				output += chunk;
			});
		}
		process.on('exit', () => unshare.kill('SIGKILL'));
		const end = performance.now() + BOOT_LIMIT_MS;
		let last = '';
		while (unshare.exitCode === null && unshare.signalCode === null && performance.now() < end) {
			const [systemd] = childrenOf(unshare.pid!);
			if (systemd !== undefined && commandOf(systemd) === 'systemd') {
				const machine = new SystemdMachine(unshare, systemd, cgroup);
				const { text } = await machine.run('systemctl', 'is-system-running');
				last = text.trim();
				if (last === 'running' || last === 'degraded') return machine;
			}
			await pauseFor(100);
		}
		unshare.kill('SIGKILL');
		removeCgroup(cgroup);
		return `systemd does not start as PID 1 of a namespace (${last}): ${output.trim().split('\n').slice(-5).join(' / ')}`;
	}

	/** Runs a program inside the container. */
	async run(...words: readonly string[]): Promise<Answer> {
		const args = ['-t', String(this.#systemd), '-m', '-p', '-u', '-i', '-C', '--wdns=/', '--', ...words];
		const env = { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', SYSTEMD_PAGER: '', LC_ALL: 'C.UTF-8' };
		const child = spawn('nsenter', args, { stdio: ['ignore', 'pipe', 'pipe'], env, timeout: COMMAND_LIMIT_MS });
		let text = '';
		for (const stream of [child.stdout, child.stderr]) {
			stream.setEncoding('utf8').on('data', chunk => {
				text += chunk;
			});
		}
		const [status] = (await once(child, 'close')) as [number | null];
		return { status, text };
	}

	/** Returns the path by which this machine sees a file of the container. */
	path(inside: string): string {
		return `/proc/${this.#systemd}/root${inside}`;
	}

	write(inside: string, text: string): void {
		writeFileSync(this.path(inside), text);
	}

	/** Copies a file of this machine into the container. */
	copy(file: string, inside: string): void {
		copyFileSync(file, this.path(inside));
	}

	/** Returns the named properties of a unit. */
	async show(unit: string, ...names: readonly string[]): Promise<{ readonly [name: string]: string }> {
		const { text } = await this.run('systemctl', 'show', unit, ...names.map(name => `--property=${name}`));
		return Object.fromEntries(
			text
				.trim()
				.split('\n')
				.map(line => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
		);
	}

	/** Returns the PIDs that processes of a unit have inside the container. */
	async processesOf(unit: string): Promise<number[]> {
		const { ControlGroup } = await this.show(unit, 'ControlGroup');
		if (!ControlGroup) return [];
		const { status, text } = await this.run('cat', `/sys/fs/cgroup${ControlGroup}/cgroup.procs`);
		return status === 0 ? text.split('\n').filter(Boolean).map(Number) : [];
	}

	/** Ends every process of the container. */
	async stop(): Promise<void> {
		const whenEnded = once(this.#unshare, 'close');
		this.#unshare.kill('SIGKILL');
		await whenEnded;
		removeCgroup(this.#cgroup);
	}
}

function removeCgroup(name: string): void {
	// The kernel releases the processes of a namespace shortly after its PID 1 has ended, so the removal is repeated.
	for (let attempt = 0; attempt < 50; attempt++) {
		const args = ['--mount', 'sh', '-c', REMOVE_CGROUP_SCRIPT, 'remove', temporaryFolder(), name];
		const { stderr } = spawnSync('unshare', args, { encoding: 'utf8' });
		if (!stderr.includes('busy')) return;
	}
}

function childrenOf(pid: number): number[] {
	try {
		return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
	} catch {
		// If the kernel does not offer the file `children` in /proc, the parent of every process has to be looked up.
		return readdirSync('/proc')
			.filter(name => /^\d+$/.test(name))
			.map(Number)
			.filter(one => parentOf(one) === pid);
	}
}

function parentOf(pid: number): number | undefined {
	try {
		return Number(readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]!.split(' ')[1]);
	} catch {
		return undefined;
	}
}

function commandOf(pid: number): string | undefined {
	try {
		return readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
	} catch {
		return undefined;
	}
}
