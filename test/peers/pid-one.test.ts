/** The server as PID 1 of a container: handovers, signals, zombies, and the status with which the container ends. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, rawExchange, runCommand, SVC, temporaryFolder, until } from '../harness.ts';

const ISOLATION_OPTIONS = ['--pid', '--fork', '--kill-child=SIGKILL', '--mount-proc'];
const folders = temporaryFolder();

/** A process of the container, by its process ID on this machine. */
interface ContainedProcess {
	readonly pid: number;
	readonly isZombie: boolean;
}

/** A container in which the server is PID 1. */
class Container {
	readonly port: number;
	readonly folder: string;
	readonly #admin: string;
	readonly #unshare: ChildProcess;
	readonly ended: Promise<unknown[]>;
	#output = '';

	private constructor(port: number, admin: number) {
		this.port = port;
		this.#admin = `127.0.0.1:${admin}`;
		this.folder = mkdtempSync(path.join(folders, 'container-'));
		this.configure('respond one');
		this.#unshare = spawn('unshare', [...ISOLATION_OPTIONS, SVC, 'run', '--config', this.file], {
			stdio: ['ignore', 'pipe', 'pipe'],
			env: { PATH: process.env.PATH, HOME: this.folder, XDG_STATE_HOME: this.folder },
		});
		for (const stream of [this.#unshare.stdout!, this.#unshare.stderr!]) {
			stream.setEncoding('utf8').on('data', chunk => {
				this.#output += chunk;
			});
		}
		this.ended = once(this.#unshare, 'exit');
		process.on('exit', () => this.#unshare.kill('SIGKILL'));
	}

	static async start(): Promise<Container> {
		const [port, admin] = (await freePorts(2)) as [number, number];
		const container = new Container(port, admin);
		await until('the server answers', async () => (await container.body().catch(() => '')) === 'one');
		return container;
	}

	get file(): string {
		return path.join(this.folder, 'Configfile');
	}

	configure(directive: string): void {
		const text = `{\n\tadmin ${this.#admin}\n\tthreads 1\n}\nhttp://127.0.0.1:${this.port} {\n\t${directive}\n}\n`;
		writeFileSync(this.file, text);
	}

	/** Runs a command of svc against this server. Throws the command's output if the command fails. */
	async command(name: string, ...words: readonly string[]): Promise<void> {
		const { status, stdout, stderr } = await runCommand([name, this.file, ...words]);
		if (status !== 0) throw new Error(`svc ${name}: status ${status}\n${stdout}${stderr}\n${this.#output}`);
	}

	async body(): Promise<string> {
		const request = 'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n';
		return (await rawExchange(this.port, request)).split('\r\n\r\n')[1] ?? '';
	}

	/** Returns PID 1 and its descendants, which are all processes of the container. */
	processes(): ContainedProcess[] {
		const [first] = childrenOf(this.#unshare.pid!);
		const found: ContainedProcess[] = [];
		const visit = (pid: number): void => {
			const state = stateOf(pid);
			if (state === undefined) return;
			found.push({ pid, isZombie: state === 'Z' });
			for (const child of childrenOf(pid)) visit(child);
		};
		if (first !== undefined) visit(first);
		return found;
	}

	signal(signal: NodeJS.Signals): void {
		process.kill(this.processes()[0]!.pid, signal);
	}

	/** Waits until there are `count` processes and no zombies. Returns the processes. */
	async settled(count: number): Promise<ContainedProcess[]> {
		let now: ContainedProcess[] = [];
		await until(`${count} processes and no zombies`, () => {
			now = this.processes();
			return now.length === count && now.every(({ isZombie }) => !isZombie);
		}).catch(error => {
			throw new Error(`${error.message}: ${JSON.stringify(now)}\n${this.#output}`);
		});
		return now;
	}

	/** Ends the container if it still runs. */
	async stop(): Promise<void> {
		if (this.#unshare.exitCode === null && this.#unshare.signalCode === null) this.#unshare.kill('SIGKILL');
		await this.ended;
	}
}

function childrenOf(pid: number): number[] {
	try {
		return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
	} catch {
		return [];
	}
}

/** Returns the state of a process, such as `S` or `Z`; undefined if it does not exist. */
function stateOf(pid: number): string | undefined {
	try {
		return readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)![0];
	} catch {
		return undefined;
	}
}

/** Reports whether nothing listens on a port. */
function isRefused(port: number): Promise<boolean> {
	return new Promise(resolve => {
		const socket = connect(port, '127.0.0.1', () => {
			socket.destroy();
			resolve(false);
		});
		socket.on('error', () => resolve(true));
	});
}

const container = suite('PID 1 of a container');
const isPossible = spawnSync('unshare', [...ISOLATION_OPTIONS, 'true']).status === 0;

function test(name: string, run: (container: Container) => Promise<void>): void {
	if (!isPossible) return;
	container(name, async () => {
		const started = await Container.start();
		try {
			await run(started);
		} finally {
			await started.stop();
		}
	});
}

if (!isPossible) container('skipped', () => console.log('skipped: there are no namespaces of processes here'));

test('handovers leave the first process, one that serves, and no zombies', async container => {
	const [first] = await container.settled(1);
	container.configure('respond two');
	await container.command('reload', '--handover');
	for (const change of ['restart', 'upgrade'] as const) {
		await container.command(change);
		const [keeper] = await container.settled(2);
		assert.equal(keeper, first);
		assert.is(await container.body(), 'two');
	}
	const before = (await container.settled(2))[1]!.pid;
	container.signal('SIGUSR2');
	await until('another process serves', async () => (await container.settled(2))[1]!.pid !== before);
	assert.is(await container.body(), 'two');
});

test('a stop after a handover finishes requests, and the container ends with status 0', async container => {
	const received = Promise.withResolvers<ServerResponse>();
	const upstream = createServer((_, response) => received.resolve(response)).listen(0, '127.0.0.1');
	try {
		await once(upstream, 'listening');
		await container.command('restart');
		await container.settled(2);
		container.configure(`reverse_proxy 127.0.0.1:${(upstream.address() as AddressInfo).port}`);
		await container.command('reload');
		const answer = container.body();
		answer.catch(() => {});
		const response = await received.promise;
		container.signal('SIGTERM');
		await until('the listener is closed', () => isRefused(container.port));
		response.end('in full');
		assert.is(await answer, 'in full');
		assert.equal(await container.ended, [0, null]);
	} finally {
		upstream.closeAllConnections();
		upstream.close();
	}
});

test('the end of the serving process ends the container', async container => {
	await container.command('restart');
	const [, serving] = await container.settled(2);
	process.kill(serving!.pid, 'SIGKILL');
	const [status] = await container.ended;
	assert.is.not(status, 0);
});

container.run();
