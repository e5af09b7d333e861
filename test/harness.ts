/** What tests share: the server as a child process, raw sockets, free ports and folders that go when the test ends. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';

// Each server and folder of a test adds a listener for the process's end.
process.setMaxListeners(0);

/** The repository's folder. */
export const ROOT: string = path.resolve(import.meta.dirname, '..');

/** The checkout's launcher. */
export const LAUNCHER: string = path.join(ROOT, 'cli/svc');

/** The command under test: the launcher, or another build of it in SVC_BIN. */
export const SVC: string = process.env.SVC_BIN ?? LAUNCHER;

/** Makes an empty folder and removes it when the process ends. */
export function temporaryFolder(): string {
	const folder = mkdtempSync(path.join(tmpdir(), 'svc-test-'));
	process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
	return folder;
}

/** What servers save for `run --resume` goes here, not to the user who runs the tests. */
const STATE = temporaryFolder();

/** The environment of a process under test. */
function environment(more: Record<string, string> | undefined): NodeJS.ProcessEnv {
	return { ...process.env, XDG_STATE_HOME: STATE, ...more };
}

/**
 * Ports for the servers of tests. They lie below the ones that the system gives to outgoing connections (32768 and above
 * on Linux): a connection of another test could hold one of those when the server that is to listen on it starts.
 */
const FIRST_PORT = 12_000;
const LAST_PORT = 32_767;

/** Where this process looks next; processes that run side by side begin at different places. */
let nextPort = FIRST_PORT + Math.floor(Math.random() * (LAST_PORT - FIRST_PORT));

/** Listens, or resolves to nothing where another does; nothing keeps the process alive for it. */
async function listening(...where: [string] | [number, string]): Promise<Server | undefined> {
	const server = createServer().unref();
	try {
		server.listen(...(where as [number, string]));
		await once(server, 'listening');
		return server;
	} catch {
		return undefined;
	}
}

/**
 * Ports of 127.0.0.1 that nothing listens on, all different. On Linux no other process of these tests is given one of them
 * while this one lives: a socket in the abstract namespace, which goes with its process, holds the number.
 */
export async function freePorts(count: number): Promise<number[]> {
	const ports: number[] = [];
	while (ports.length < count) {
		const port = nextPort;
		nextPort = port < LAST_PORT ? port + 1 : FIRST_PORT;
		const hasNames = process.platform === 'linux';
		const held = hasNames ? await listening(`\0svc-test-port-${port}`) : undefined;
		if (hasNames && held === undefined) continue;
		const probe = await listening(port, '127.0.0.1');
		if (probe === undefined) {
			held?.close();
			continue;
		}
		await new Promise(resolve => probe.close(resolve));
		ports.push(port);
	}
	return ports;
}

/** Resolves once a port of 127.0.0.1 accepts a connection; throws after `timeout` milliseconds. */
export async function waitForPort(port: number, timeout: number = 15_000): Promise<void> {
	const end = performance.now() + timeout;
	for (;;) {
		const open = await new Promise<boolean>(resolve => {
			const socket = connect(port, '127.0.0.1');
			socket.once('connect', () => resolve(true));
			socket.once('error', () => resolve(false));
			socket.once('close', () => resolve(false));
			// A process that was stopped accepts nothing, and its backlog is soon full.
			socket.setTimeout(1000, () => socket.destroy());
			socket.once('connect', () => socket.destroy());
		});
		if (open) return;
		if (performance.now() > end) throw new Error(`nothing listens on 127.0.0.1:${port}`);
		await new Promise(resolve => setTimeout(resolve, 25));
	}
}

/** Waits until a condition holds; throws after half a minute: a machine may have much else to do. */
export async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
	const end = performance.now() + 30_000;
	while (!(await condition())) {
		if (performance.now() > end) throw new Error(`not within half a minute: ${what}`);
		await new Promise(resolve => setTimeout(resolve, 10));
	}
}

/** Lets milliseconds pass between the steps of a client, handler or upstream that is slow on purpose. */
export function pace(milliseconds: number): Promise<void> {
	return new Promise(resolve => setTimeout(resolve, milliseconds));
}

/** Lets milliseconds pass in which something must not happen. */
export const quiet: (milliseconds: number) => Promise<void> = pace;

/** Lets milliseconds pass because something goes by the clock: an age, an interval, a time-out. */
export const elapse: (milliseconds: number) => Promise<void> = pace;

/** Milliseconds within which a server says that it serves. */
const START_LIMIT = 60_000;

/** A server process. */
export interface ServerProcess {
	readonly child: ChildProcess;
	/** Standard output and standard error so far. */
	output(): string;
	/** SIGTERM, then waits for the end; SIGKILL after five seconds. Resolves to the exit status. */
	stop(): Promise<number | null>;
}

/** Starts `svc` with arguments, in a folder; it is killed when the test process ends. `command` is another than {@link SVC}. */
export function startServer(
	args: readonly string[],
	options: { cwd?: string; env?: Record<string, string>; stdin?: string; command?: string } = {},
): ServerProcess {
	const child = spawn(options.command ?? SVC, args, {
		cwd: options.cwd,
		env: environment(options.env),
		stdio: [options.stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
	});
	if (options.stdin !== undefined) child.stdin!.end(options.stdin);
	let text = '';
	child.stdout!.setEncoding('utf8').on('data', chunk => {
		text += chunk;
	});
	child.stderr!.setEncoding('utf8').on('data', chunk => {
		text += chunk;
	});
	const ended = once(child, 'close');
	ended.catch(() => {});
	const kill = (): void => endNow(child);
	process.on('exit', kill);
	return {
		child,
		output: () => text,
		async stop() {
			if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
			const timer = setTimeout(kill, 5000);
			await ended;
			clearTimeout(timer);
			process.off('exit', kill);
			return child.exitCode;
		},
	};
}

/** Ends a process; a child of its own that holds its output open must not keep the test waiting. */
function endNow(child: ChildProcess): void {
	child.kill('SIGKILL');
	child.stdout?.destroy();
	child.stderr?.destroy();
}

/**
 * Starts `svc run` and waits until it says that it serves, with all its threads and listeners; throws with the server's
 * output when it ends before.
 */
export async function serve(
	args: readonly string[],
	port: number,
	options: { cwd?: string; env?: Record<string, string>; command?: string } = {},
): Promise<ServerProcess> {
	const server = startServer(['run', ...args], options);
	const died = once(server.child, 'exit').then(([status]) => {
		throw new Error(`the server ended with status ${status}:\n${server.output()}`);
	});
	const serving = async (): Promise<void> => {
		const end = performance.now() + START_LIMIT;
		while (!server.output().includes('"serving"') && !server.output().includes('\tserving')) {
			if (server.child.exitCode !== null || server.child.signalCode !== null) return;
			// A machine that is busy makes a start slow; a start that never ends is told with what the server said.
			if (performance.now() > end) throw new Error(`the server does not say that it serves:\n${server.output()}`);
			await new Promise(resolve => setTimeout(resolve, 10));
		}
		await waitForPort(port).catch(error => {
			throw new Error(`${error.message}, but it says:\n${server.output()}`);
		});
	};
	await Promise.race([serving().then(() => (server.child.exitCode === null ? undefined : died)), died]).catch(
		async error => {
			await server.stop();
			throw error;
		},
	);
	died.catch(() => {});
	return server;
}

/** Sends bytes on a new connection and returns everything that comes back until the server closes it. */
export async function rawExchange(
	port: number,
	request: string | Uint8Array,
	timeout: number = 10_000,
): Promise<string> {
	const socket: Socket = connect(port, '127.0.0.1');
	const chunks: Buffer[] = [];
	socket.on('data', (chunk: Buffer) => chunks.push(chunk));
	// Not the socket's own timeout, which a response that drips without an end never reaches.
	const timer = setTimeout(() => socket.destroy(new Error(`no end of the response within ${timeout} ms`)), timeout);
	try {
		socket.write(request);
		await once(socket, 'close');
	} finally {
		clearTimeout(timer);
	}
	return Buffer.concat(chunks).toString('latin1');
}

/** What a command printed and how it ended. */
export interface CommandResult {
	readonly status: number | null;
	readonly stdout: string;
	readonly stderr: string;
}

/** Runs `svc` to its end. */
export async function runCommand(
	args: readonly string[],
	options: { cwd?: string; env?: Record<string, string>; stdin?: string } = {},
): Promise<CommandResult> {
	const child = spawn(SVC, args, { cwd: options.cwd, env: environment(options.env), stdio: 'pipe' });
	let stdout = '';
	let stderr = '';
	child.stdout.setEncoding('utf8').on('data', chunk => {
		stdout += chunk;
	});
	child.stderr.setEncoding('utf8').on('data', chunk => {
		stderr += chunk;
	});
	child.stdin.on('error', () => {});
	child.stdin.end(options.stdin ?? '');
	const timer = setTimeout(() => endNow(child), 60_000);
	await once(child, 'close');
	clearTimeout(timer);
	return { status: child.exitCode, stdout, stderr };
}
