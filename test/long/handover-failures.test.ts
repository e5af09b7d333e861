/**
 * Handovers that fail, at each step and in each way: the old server continues, logs the reason, and leaves nothing behind. The
 * successor is either a program that misbehaves, or a real server behind a proxy that forwards the messages of the handover and
 * tampers with one of them.
 */
import { readdirSync, readFileSync, readlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import path from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, rawExchange, SVC, serve, temporaryFolder, until } from '../harness.ts';

const failures = suite('failing handovers');

/** A program that runs in place of the successor, and the error message that the operator must get. */
interface Failure {
	readonly name: string;
	/** The source text of the program. */
	readonly program: string;
	readonly message: RegExp;
	/** The time limit within which the process must become ready, such as `6s`. */
	readonly within?: string;
	/** The file mode of the program. */
	readonly mode?: number;
}

const shellProgram = (script: string): string => `#!/bin/sh\n${script}\n`;
const nodeProgram = (script: string): string => `#!${process.execPath}\n${script}\n`;

const PROGRAMS: readonly Failure[] = [
	{
		name: 'ends at once',
		program: shellProgram('exit 7'),
		message: /ended with status 7 before it served\. It was starting\./,
	},
	{
		name: 'kills itself',
		program: shellProgram('kill -9 $$'),
		message: /ended with SIGKILL \(.*\) before it served\. It was starting\./,
	},
	{
		name: 'is not executable',
		program: shellProgram('exit'),
		mode: 0o600,
		message: /cannot be started: EACCES, it may not be executed\./,
	},
	{ name: 'is not a program', program: '\x7fELF nonsense', message: /cannot be started: |ended with status 12\d/ },
	{
		name: 'does nothing, nor does a process that it has started',
		program: shellProgram('sleep 1000 & wait'),
		within: '500ms',
		message: /did not become ready in time \(500 ms\)/,
	},
	{
		name: 'is another program that reads the channel',
		program: shellProgram('cat <&3 >/dev/null'),
		within: '500ms',
		message: /did not become ready in time/,
	},
	{
		name: 'sends what is not JSON',
		program: nodeProgram('require("fs").writeSync(3, "garbage\\n"); setInterval(() => {}, 1000);'),
		message: /violated the handover protocol/,
	},
	...['null', '7', '[]', '{"type":7}', '{"cmd":"NODE_HANDLE"}', '{"type":"unknown"}'].map(message => ({
		name: `sends ${message}`,
		program: nodeProgram(`require("fs").writeSync(3, ${JSON.stringify(`${message}\n`)}); setInterval(() => {}, 1000);`),
		message: /violated the handover protocol/,
	})),
	{
		name: 'sends half a message and ends',
		program: nodeProgram('require("fs").writeSync(3, "{\\"type\\":\\"rea"); process.exit(5);'),
		message: /ended with status 5/,
	},
	{
		name: 'closes the channel and goes on',
		program: nodeProgram('require("fs").closeSync(3); setInterval(() => {}, 1000);'),
		within: '2s',
		message: /did not become ready in time/,
	},
	{
		name: 'claims to serve before it was told to',
		program: nodeProgram(
			'require("fs").writeSync(3, JSON.stringify({type:"done",generation:1,warnings:[]}) + "\\n"); setInterval(() => {}, 1000);',
		),
		message: /violated the handover protocol/,
	},
	{
		name: 'is ready, but says nonsense about serving',
		program: nodeProgram(
			'require("fs").writeSync(3, JSON.stringify({type:"ready"}) + "\\n"); setTimeout(() => require("fs").writeSync(3, JSON.stringify({type:"done"}) + "\\n"), 500);setInterval(() => {}, 1000);',
		),
		message: /violated the handover protocol/,
	},
	{
		name: 'is a server that runs out of memory',
		program: shellProgram(`ulimit -v 400000; exec ${SVC} "$@"`),
		message: /ended with |cannot|did not become ready/,
	},
];

type Step = 'offer' | 'ready' | 'go' | 'done';

/** Returns a program that runs the real server and forwards the messages of the handover, but tampers with one of them. */
const interferingProgram = (step: Step, action: string): string =>
	nodeProgram(`
const { spawn } = require('node:child_process');
const { readdirSync, writeSync, fstatSync } = require('node:fs');
const { Socket } = require('node:net');
const inherited = readdirSync('/proc/self/fd').map(Number).filter(fd => fd > 3).filter(fd => {
	try { return fstatSync(fd).isSocket() || fstatSync(fd).isFIFO(); } catch { return false; }
});
const last = Number(process.env.LAST_INHERITED ?? Math.max(3, ...inherited));
const stdio = ['inherit', 'inherit', 'inherit', 'pipe'];
for (let fd = 4; fd <= last; fd++) stdio.push(inherited.includes(fd) ? fd : 'ignore');
const child = spawn(${JSON.stringify(SVC)}, process.argv.slice(2), { stdio });
child.on('exit', (status, signal) => process.exit(signal ? 99 : status));
const up = new Socket({ fd: 3 });
const down = child.stdio[3];
const pass = (from, to) => {
	let rest = '';
	from.setEncoding('utf8').on('data', text => {
		const lines = (rest + text).split('\\n');
		rest = lines.pop();
		for (const line of lines) {
			const { type } = JSON.parse(line);
			if (type !== ${JSON.stringify(step)}) to.write(line + '\\n');
			else { ${action} }
		}
	});
	from.on('error', () => {});
	to.on('error', () => {});
};
pass(up, down);
pass(down, up);
`);

const INTERFERENCES: readonly Failure[] = (['offer', 'ready', 'go', 'done'] as const).flatMap(step => {
	const early = step === 'offer' || step === 'ready';
	// A handover that is to fail after the step `ready` needs enough time to reach this step on a slow machine.
	const within = early ? '6s' : '15s';
	const late = early ? /did not become ready in time|did not say what/ : /did not accept connections in time/;
	return [
		{ name: `${step} is lost`, program: interferingProgram(step, ''), within, message: late },
		{
			name: `the process hangs at ${step}`,
			program: interferingProgram(step, 'process.kill(child.pid, "SIGSTOP"); to.write(line + "\\n");'),
			within: step === 'ready' ? '15s' : within,
			// Messages that a process sent before it hung are still received.
			message: step === 'ready' ? /did not accept connections in time/ : late,
		},
		{
			name: `the process is killed at ${step}`,
			program: interferingProgram(step, 'child.kill("SIGKILL");'),
			message: /ended with status 99/,
		},
		{
			name: `${step} is garbled`,
			program: interferingProgram(step, 'to.write("{{{\\n");'),
			within: '60s',
			message: /violated the handover protocol|did not say what to take over|ended with|did not accept/,
		},
	].filter(({ name }) => name !== 'the process hangs at done');
});

/** Returns the files and sockets that a process has open. */
function descriptorsOf(pid: number): string[] {
	return readdirSync(`/proc/${pid}/fd`).flatMap(fd => {
		try {
			return [readlinkSync(`/proc/${pid}/fd/${fd}`)];
		} catch {
			return [];
		}
	});
}

/** Returns the processes whose command line or working directory is in the folder. */
function processesOf(folder: string): number[] {
	return readdirSync('/proc')
		.filter(name => /^\d+$/.test(name))
		.map(Number)
		.filter(pid => {
			try {
				return readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(folder);
			} catch {
				return false;
			}
		});
}

failures('change nothing, whatever the new process does', async () => {
	const folder = temporaryFolder();
	const [port] = (await freePorts(1)) as [number];
	const socketPath = path.join(folder, 'admin.sock');
	const file = path.join(folder, 'Configfile');
	const program = path.join(folder, 'program');
	writeFileSync(
		file,
		`{\n\tadmin unix/${socketPath}\n\tthreads 1\n\tstorage file_system ${folder}/store\n}\nhttp://127.0.0.1:${port} {\n\trespond "served"\n}\n`,
	);
	const server = await serve([file], port, { env: { XDG_STATE_HOME: folder, NOTIFY_SOCKET: '' } });
	const ask = async (method: string, at: string, body = ''): Promise<{ status: number; text: string }> => {
		const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>();
		const headers = { host: 'svc', connection: 'close', 'content-type': 'application/json' };
		const clientRequest = request({ socketPath, method, path: at, headers }, async response =>
			resolve({ status: response.statusCode!, text: await textOf(response) }),
		);
		clientRequest.on('error', reject).end(body);
		return promise;
	};
	const isServed = async (): Promise<boolean> =>
		(await rawExchange(port, 'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n')).endsWith('served');
	try {
		const before = new Set(descriptorsOf(server.child.pid!));
		let failed = 0;
		for (const { name, program: text, message, within, mode } of [...PROGRAMS, ...INTERFERENCES]) {
			writeFileSync(program, text, { mode: mode ?? 0o700 });
			const asking = ask('POST', '/upgrade', JSON.stringify({ binary: program, ...(within && { within }) }));
			assert.ok(await isServed(), `${name}: served meanwhile`);
			const answer = await asking;
			assert.is(answer.status, 503, `${name}: ${answer.text}`);
			const { error } = JSON.parse(answer.text) as { error: { code: string; message: string } };
			assert.is(error.code, 'handover_failed', name);
			assert.match(error.message, message, `${name}: ${error.message}`);
			failed++;
			// The entry in the log may be written after the reply is sent.
			const logged = () => server.output().split('the handover failed; serving on as before').length - 1;
			await until(`${name}: an entry in the log`, () => logged() === failed);
			for (let i = 0; i < 5; i++) assert.ok(await isServed(), `${name}: served afterwards`);
			await until(`${name}: no process is left`, () => processesOf(folder).every(pid => pid === server.child.pid));
			unlinkSync(program);
		}
		const remainingDescriptors = descriptorsOf(server.child.pid!).filter(one => !before.has(one));
		assert.ok(remainingDescriptors.length < 6, remainingDescriptors.join());
		// After the failures, the server can still hand over.
		const answer = await ask('POST', '/upgrade');
		assert.is(answer.status, 200, answer.text);
		assert.ok(await isServed());
	} finally {
		await server.stop();
	}
});

failures.run();
