/** A real redis-server for tests, on a port of loopback. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import type { ClusterSettings } from '../../compiler/document/cluster-settings.ts';
import { Cluster } from '../../runtime/cluster/cluster.ts';
import { TestAuthority } from '../certificates.ts';
import { freePorts, temporaryFolder, until, waitForPort } from '../harness.ts';

/** The certificate with which servers, Sentinels and nodes prove who they are, and the authority that has signed it, as files. */
export class RedisCertificate {
	readonly authorityFile: string;
	readonly certificateFile: string;
	readonly keyFile: string;

	private constructor(folder: string) {
		this.authorityFile = path.join(folder, 'ca.pem');
		this.certificateFile = path.join(folder, 'certificate.pem');
		this.keyFile = path.join(folder, 'key.pem');
	}

	/** Issues a certificate for the given host names and IP addresses. */
	static async issue(names: readonly string[]): Promise<RedisCertificate> {
		const authority = await TestAuthority.make();
		const { certificate, key } = await authority.issue({ names });
		const files = new RedisCertificate(temporaryFolder());
		writeFileSync(files.authorityFile, authority.pem);
		writeFileSync(files.certificateFile, certificate);
		writeFileSync(files.keyFile, key);
		return files;
	}

	/** Returns the options of a server, Sentinel or node that accepts only TLS, and also connects to its peers with TLS. */
	serverOptions(port: number): [name: string, value: string][] {
		return [
			['port', '0'],
			['tls-port', String(port)],
			['tls-cert-file', this.certificateFile],
			['tls-key-file', this.keyFile],
			['tls-ca-cert-file', this.authorityFile],
			['tls-auth-clients', 'no'],
			['tls-replication', 'yes'],
		];
	}

	/** Options with which redis-cli connects. */
	get cliOptions(): string[] {
		return ['--tls', '--cacert', this.authorityFile];
	}
}

/** A redis-server process. It is killed when the test process ends. */
export class RedisServer {
	readonly port: number;
	readonly folder: string;
	readonly #args: readonly string[];
	readonly #password: string | undefined;
	readonly #certificate: RedisCertificate | undefined;
	#child: ChildProcess | undefined;

	private constructor(port: number, args: readonly string[], certificate: RedisCertificate | undefined) {
		this.port = port;
		this.#certificate = certificate;
		this.folder = temporaryFolder();
		this.#args = args;
		const at = args.indexOf('--requirepass');
		this.#password = at === -1 ? undefined : args[at + 1];
		process.on('exit', () => this.#child?.kill('SIGKILL'));
	}

	/**
	 * Starts a redis-server that saves nothing to disk. `args` are its additional options. With a certificate, it accepts only TLS.
	 */
	static async start(
		args: readonly string[] = [],
		port?: number,
		certificate?: RedisCertificate,
	): Promise<RedisServer> {
		const server = new RedisServer(port ?? (await freePorts(1))[0]!, args, certificate);
		await server.start();
		return server;
	}

	get address(): string {
		return `127.0.0.1:${this.port}`;
	}

	/** Starts the process again. The data is lost. */
	async start(): Promise<void> {
		const portOptions = this.#certificate?.serverOptions(this.port) ?? [['port', String(this.port)]];
		const common = portOptions.flatMap(([name, value]) => [`--${name}`, value!]);
		common.push('--bind', '127.0.0.1', '--save', '', '--appendonly', 'no');
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

	/** Resolves once the server's answer to a command contains a text. */
	async untilAnswer(text: string, ...command: readonly string[]): Promise<void> {
		await until(`${text} from ${command.join(' ')}`, () => this.cli(...command).includes(text));
	}

	/** Resolves once a replica has confirmed everything that has been written to this master so far. */
	async untilReplicated(): Promise<void> {
		const [, written] = /master_repl_offset:(\d+)/.exec(this.cli('info', 'replication'))!;
		await until('a replica to have all writes', () => {
			const [, confirmed] = /slave0:.*offset=(\d+)/.exec(this.cli('info', 'replication')) ?? [];
			return confirmed !== undefined && Number(confirmed) >= Number(written);
		});
	}

	/** Runs redis-cli and returns its output. */
	cli(...args: readonly string[]): string {
		const options = ['-p', String(this.port), ...(this.#certificate?.cliOptions ?? [])];
		const { stdout, stderr, status } = spawnSync('redis-cli', [...options, ...args], {
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
