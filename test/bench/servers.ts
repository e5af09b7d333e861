/** The servers that the bench compares: each on one core, with one worker, without an access log. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { SVC, temporaryFolder, waitForPort } from '../harness.ts';

/**
 * Servers of the bench; `svc` is ours, `node` is Node's own http server with undici. `redis` runs only for servers that use it.
 */
export type ServerName = 'svc' | 'nginx' | 'haproxy' | 'caddy' | 'varnish' | 'node' | 'redis';

export function isInstalled(program: string): boolean {
	return spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
}

/** The executable of each server other than svc and node. */
export const PROGRAMS: { readonly [server in ServerName]: string | undefined } = {
	svc: undefined,
	node: undefined,
	nginx: 'nginx',
	haproxy: 'haproxy',
	caddy: 'caddy',
	varnish: 'varnishd',
	redis: 'redis-server',
};

export class BenchServer {
	readonly name: string;
	readonly port: number;
	readonly #child: ChildProcess;

	constructor(name: string, port: number, child: ChildProcess) {
		this.name = name;
		this.port = port;
		this.#child = child;
	}

	/** Returns the user and system processor seconds used so far by the process and its children. */
	cpuSeconds(): number {
		let ticks = 0;
		for (const pid of processTree(this.#child.pid!)) {
			try {
				const fields = readFileSync(`/proc/${pid}/stat`, 'latin1')
					.replace(/^.*\) /, '')
					.split(' ');
				ticks += Number(fields[11]) + Number(fields[12]);
			} catch {
				// The process ended between being listed and being read.
			}
		}
		return ticks / 100;
	}

	/** Returns the resident bytes of the process and its children. */
	residentBytes(): number {
		let pages = 0;
		for (const pid of processTree(this.#child.pid!)) {
			pages += Number(readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ')[1]);
		}
		return pages * 4096;
	}

	async stop(): Promise<void> {
		const whenEnded = once(this.#child, 'close');
		killTree(this.#child.pid!);
		await whenEnded;
	}
}

/**
 * Ends a process and all its descendants. If only the master were killed, its workers would survive; if only workers were killed,
 * the master would replace them.
 */
function killTree(root: number): void {
	for (const pid of processTree(root)) {
		try {
			process.kill(pid, 'SIGKILL');
		} catch {
			// The process ended between being listed and being killed.
		}
	}
}

/** Returns the PIDs of a process and all its descendants. */
function processTree(root: number): number[] {
	const found = [root];
	for (const entry of readdirSync('/proc')) {
		if (!/^\d+$/.test(entry)) continue;
		try {
			const parent = Number(
				readFileSync(`/proc/${entry}/stat`, 'latin1')
					.replace(/^.*\) /, '')
					.split(' ')[1],
			);
			if (parent === root) found.push(Number(entry));
		} catch {
			// The process ended between being listed and being read.
		}
	}
	return found;
}

/**
 * Starts a server with a configuration on the given cores (`0`, `0,1`). The configuration of `node` is the port of its backend,
 * or empty. `files` maps the names of files to create in the server's folder to their sizes in bytes.
 */
export async function startBenchServer(
	name: ServerName,
	text: string,
	port: number,
	cores: string,
	files: { readonly [name: string]: number } = {},
): Promise<BenchServer> {
	const folder = temporaryFolder();
	// When started by root, some servers read files as another user.
	chmodSync(folder, 0o755);
	for (const [file, size] of Object.entries(files)) writeFileSync(path.join(folder, file), Buffer.alloc(size, 'x'));
	const file = path.join(folder, name === 'svc' ? 'Configfile' : name === 'caddy' ? 'Caddyfile' : `${name}.conf`);
	writeFileSync(file, text);
	mkdirSync(path.join(folder, 'logs'), { recursive: true });
	const commands: { [server in ServerName]: string[] } = {
		// Starts the binary built by run.ts, or the one named by SVC_BIN.
		svc: [process.env.SVC_BIN ?? SVC, 'run', file],
		nginx: ['nginx', '-p', folder, '-e', path.join(folder, 'error.log'), '-c', file],
		haproxy: ['haproxy', '-f', file, '-db', '-q'],
		caddy: ['caddy', 'run', '--config', file, '--adapter', 'caddyfile'],
		varnish: ['varnishd', '-F', '-n', folder, '-f', file, '-a', `127.0.0.1:${port}`, '-s', 'malloc,256m'],
		redis: ['redis-server', '--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'],
		node: [process.execPath, path.join(import.meta.dirname, 'reference-server.ts'), String(port), text].filter(
			word => word !== '',
		),
	};
	const child = spawn('taskset', ['-c', cores, ...commands[name]], {
		cwd: folder,
		stdio: ['ignore', 'ignore', 'pipe'],
		env: {
			...process.env,
			GOMAXPROCS: String(cores.split(',').length),
			HOME: folder,
			XDG_DATA_HOME: folder,
			XDG_CONFIG_HOME: folder,
		},
	});
	let complaints = '';
	child.stderr!.setEncoding('utf8').on('data', chunk => {
		complaints = (complaints + chunk).slice(-4000);
	});
	const kill = (): void => killTree(child.pid!);
	process.on('exit', kill);
	child.once('exit', () => process.off('exit', kill));
	await waitForPort(port).catch(error => {
		throw new Error(`${name}: ${error.message}\n${complaints}`);
	});
	return new BenchServer(name, port, child);
}
