/** Shared test helpers: the server as a child process, raw sockets, free ports, and temporary folders. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import './unawaited-rejections.ts';

// Turns off the warning about many listeners: each server and each temporary folder of a test adds a listener for process exit.
process.setMaxListeners(0);

/** Absolute path of the repository's root folder. */
export const ROOT: string = path.resolve(import.meta.dirname, '..');

/** Absolute path of the checkout's launcher. */
export const LAUNCHER: string = path.join(ROOT, 'cli/svc');

/** The command under test: the launcher, or the build that SVC_BIN names. */
export const SVC: string = process.env.SVC_BIN ?? LAUNCHER;

/** Creates an empty folder and removes it when the process ends. */
export function temporaryFolder(): string {
	const folder = mkdtempSync(path.join(tmpdir(), 'svc-test-'));
	process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
	return folder;
}

/**
 * The folder in which servers under test save state for `run --resume`, so that they do not use the user's own. It is created when the
 * first of them starts: a thread of a test that imports this file and is terminated would not remove it.
 */
let stateFolder: string | undefined;

/** Returns the environment of a process under test, with the additional variables. */
function testEnvironment(more: Record<string, string> | undefined): NodeJS.ProcessEnv {
	stateFolder ??= temporaryFolder();
	return { ...process.env, XDG_STATE_HOME: stateFolder, ...more };
}

/**
 * The port range for test servers. It is below the ephemeral ports (32768 and above on Linux), because an outgoing
 * connection of another test could occupy such a port just before the server listens on it.
 */
const FIRST_PORT = 12_000;
const LAST_PORT = 32_767;

/** The next port that this process tries. Concurrent processes start at different ports. */
let nextPort = FIRST_PORT + Math.floor(Math.random() * (LAST_PORT - FIRST_PORT));

/** Listens on a port or path. Resolves to undefined if it is in use. The server does not keep the process alive. */
async function tryListening(...where: [string] | [number, string]): Promise<Server | undefined> {
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
 * Returns distinct ports of 127.0.0.1 on which nothing listens. On Linux, no other test process gets the same port while this
 * process lives: a socket in the abstract namespace reserves each number, and the system closes it when this process ends.
 */
export async function freePorts(count: number): Promise<number[]> {
	const ports: number[] = [];
	while (ports.length < count) {
		const port = nextPort;
		nextPort = port < LAST_PORT ? port + 1 : FIRST_PORT;
		const hasNames = process.platform === 'linux';
		const held = hasNames ? await tryListening(`\0svc-test-port-${port}`) : undefined;
		if (hasNames && held === undefined) continue;
		const probe = await tryListening(port, '127.0.0.1');
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
export async function waitForPort(port: number, timeout: number = 60_000): Promise<void> {
	const end = performance.now() + timeout;
	for (;;) {
		const open = await new Promise<boolean>(resolve => {
			const socket = connect(port, '127.0.0.1');
			socket.once('connect', () => resolve(true));
			socket.once('error', () => resolve(false));
			socket.once('close', () => resolve(false));
			// A suspended process accepts no connections, and connections to it hang once its backlog is full.
			socket.setTimeout(1000, () => socket.destroy());
			socket.once('connect', () => socket.destroy());
		});
		if (open) return;
		if (performance.now() > end) throw new Error(`nothing listens on 127.0.0.1:${port}`);
		await new Promise(resolve => setTimeout(resolve, 25));
	}
}

/** Milliseconds after which {@link until} gives up. The limit is long because the machine may be busy. */
export const WAIT_LIMIT_MS = 120_000;

/** Waits until a condition holds. Throws an error that names `what` after two minutes. */
export async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
	const end = performance.now() + WAIT_LIMIT_MS;
	while (!(await condition())) {
		if (performance.now() > end) throw new Error(`timed out after ${WAIT_LIMIT_MS / 1000} s waiting for: ${what}`);
		await new Promise(resolve => setTimeout(resolve, 10));
	}
}

/** Waits until a process has written a text: what it has done may be known before its output arrives. */
export function untilOutput(process: { output(): string }, expected: string | RegExp): Promise<void> {
	const isThere = (): boolean =>
		typeof expected === 'string' ? process.output().includes(expected) : expected.test(process.output());
	return until(`${expected} in the output`, isThere).catch((error: Error) => {
		throw new Error(`${error.message}:\n${process.output()}`);
	});
}

/** Pauses between the steps of a client, handler or upstream that is slow on purpose. */
export function pauseFor(milliseconds: number): Promise<void> {
	return new Promise(resolve => setTimeout(resolve, milliseconds));
}

/** Waits for a while during which something must not happen. */
export const waitForNothing: (milliseconds: number) => Promise<void> = pauseFor;

/** Waits for a time that is itself the subject of a test: an age, an interval, a timeout. */
export const waitForClock: (milliseconds: number) => Promise<void> = pauseFor;

/** Milliseconds within which a server must report that it is serving. */
const START_LIMIT_MS = 180_000;

export interface ServerProcess {
	readonly child: ChildProcess;
	/** Returns standard output and standard error so far. */
	output(): string;
	/** Sends SIGTERM and waits for the end; sends SIGKILL after `limitMs`, by default five seconds. Resolves to the exit status. */
	stop(limitMs?: number): Promise<number | null>;
}

/** Starts `svc` with arguments in a folder, and kills it when the test process ends. `command` replaces {@link SVC}. */
export function startServer(
	args: readonly string[],
	options: { cwd?: string; env?: Record<string, string>; stdin?: string; command?: string } = {},
): ServerProcess {
	const child = spawn(options.command ?? SVC, args, {
		cwd: options.cwd,
		env: testEnvironment(options.env),
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
	const whenEnded = once(child, 'close');
	whenEnded.catch(() => {});
	const kill = (): void => endNow(child);
	process.on('exit', kill);
	return {
		child,
		output: () => text,
		async stop(limitMs = 5000) {
			if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
			const timer = setTimeout(kill, limitMs);
			await whenEnded;
			clearTimeout(timer);
			process.off('exit', kill);
			return child.exitCode;
		},
	};
}

/** Ends a process without waiting for a grandchild that holds its output open. */
function endNow(child: ChildProcess): void {
	child.kill('SIGKILL');
	child.stdout?.destroy();
	child.stderr?.destroy();
}

/**
 * Starts `svc run` and waits until it reports that it is serving, with all threads and listeners. If the server ends before that,
 * throws its output.
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
		const end = performance.now() + START_LIMIT_MS;
		while (!server.output().includes('"serving"') && !server.output().includes('\tserving')) {
			if (server.child.exitCode !== null || server.child.signalCode !== null) return;
			// Startup is slow on a busy machine, so only a startup that takes very long fails.
			if (performance.now() > end) throw new Error(`the server does not report that it serves:\n${server.output()}`);
			await new Promise(resolve => setTimeout(resolve, 10));
		}
		await waitForPort(port).catch(error => {
			throw new Error(`${error.message}; its output:\n${server.output()}`);
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

/** Sends bytes on a new connection. Returns all bytes received until the server closes the connection. */
export async function rawExchange(
	port: number,
	request: string | Uint8Array,
	timeout: number = 60_000,
): Promise<string> {
	const socket: Socket = connect(port, '127.0.0.1');
	const chunks: Buffer[] = [];
	socket.on('data', (chunk: Buffer) => chunks.push(chunk));
	// The socket's own timeout is not used, because it never fires while a response arrives byte by byte.
	const timer = setTimeout(() => socket.destroy(new Error(`no end of the response within ${timeout} ms`)), timeout);
	try {
		socket.write(request);
		await once(socket, 'close');
	} finally {
		clearTimeout(timer);
	}
	return Buffer.concat(chunks).toString('latin1');
}

/** The output and exit status of a command. */
export interface CommandResult {
	readonly status: number | null;
	readonly stdout: string;
	readonly stderr: string;
}

/** Runs `svc` until it ends. Kills it after `limitMs` milliseconds, by default three minutes; the exit status is then null. */
export async function runCommand(
	args: readonly string[],
	options: { cwd?: string; env?: Record<string, string>; stdin?: string; limitMs?: number } = {},
): Promise<CommandResult> {
	const child = spawn(SVC, args, { cwd: options.cwd, env: testEnvironment(options.env), stdio: 'pipe' });
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
	const timer = setTimeout(() => endNow(child), options.limitMs ?? 180_000);
	await once(child, 'close');
	clearTimeout(timer);
	return { status: child.exitCode, stdout, stderr };
}
