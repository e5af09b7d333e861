/** A real redis-server for tests, on a port of loopback. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import type { ClusterSettings } from '../../compiler/document/cluster-settings.ts';
import { Cluster } from '../../runtime/cluster/cluster.ts';
import { freePorts, temporaryFolder, waitForPort } from '../harness.ts';

/** A redis-server process. It is killed when the test process ends. */
export class RedisServer {
	readonly port: number;
	readonly folder: string;
	readonly #args: readonly string[];
	readonly #password: string | undefined;
	#child: ChildProcess | undefined;

	private constructor(port: number, args: readonly string[]) {
		this.port = port;
		this.folder = temporaryFolder();
		this.#args = args;
		const at = args.indexOf('--requirepass');
		this.#password = at === -1 ? undefined : args[at + 1];
		process.on('exit', () => this.#child?.kill('SIGKILL'));
	}

	/** Starts a redis-server that saves nothing to disk. `args` are its additional options. */
	static async start(args: readonly string[] = [], port?: number): Promise<RedisServer> {
		const server = new RedisServer(port ?? (await freePorts(1))[0]!, args);
		await server.start();
		return server;
	}

	get address(): string {
		return `127.0.0.1:${this.port}`;
	}

	/** Starts the process again. The data is lost. */
	async start(): Promise<void> {
		const common = ['--port', String(this.port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
		// A compressed dump would hide the texts that a test searches for.
		common.push('--rdbcompression', 'no');
		const options = [...common, '--dir', this.folder, '--loglevel', 'warning', ...this.#args];
		this.#child = spawn('redis-server', options, { stdio: 'ignore' });
		this.#child.unref();
		await waitForPort(this.port);
	}

	/** Kills the server, as a crash would. */
	async kill(): Promise<void> {
		const child = this.#child!;
		child.ref();
		child.kill('SIGKILL');
		if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
	}

	/** Stops or continues the execution of the process. Its connections stay open. */
	signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
		this.#child!.kill(signal);
	}

	/** Runs redis-cli and returns its output. */
	cli(...args: readonly string[]): string {
		const { stdout, stderr, status } = spawnSync('redis-cli', ['-p', String(this.port), ...args], {
			encoding: 'latin1',
			env: { ...process.env, ...(this.#password === undefined ? {} : { REDISCLI_AUTH: this.#password }) },
		});
		if (status !== 0) throw new Error(`redis-cli ${args.join(' ')}: ${stderr}`);
		return stdout;
	}

	/** Returns a dump of all data, as a replica would get it. */
	dump(): string {
		const file = path.join(this.folder, 'copy.rdb');
		this.cli('--rdb', file);
		return file;
	}

	/** Returns a cluster with this server. */
	cluster(settings: Partial<ClusterSettings> = {}, log: (message: string, cause: unknown) => void = () => {}): Cluster {
		return new Cluster(
			{ address: this.address, ...settings },
			{ log: (_level, _logger, message, fields) => log(message, fields?.cause) },
		);
	}
}
