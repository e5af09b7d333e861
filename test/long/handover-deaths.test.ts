/** Handovers during which the predecessor dies or hangs, at each step, and random kills of the predecessor or the successor. */
import { readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import path from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { relayProgram } from '../cli/handover-relay.ts';
import { freePorts, pauseFor, rawExchange, type ServerProcess, serve, temporaryFolder, until } from '../harness.ts';

const deaths = suite('deaths during handovers');

/** Number of random kills. Each kill takes a few seconds. */
const KILLS = Number(process.env.KILLS ?? 20);
const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));

/** A server with one site, and its folder. */
class RunningServer {
	readonly folder = temporaryFolder();
	readonly #socket = path.join(this.folder, 'admin.sock');
	readonly program = path.join(this.folder, 'program');
	readonly #port: number;
	server!: ServerProcess;

	constructor(port: number) {
		this.#port = port;
	}

	async start(): Promise<this> {
		const file = path.join(this.folder, 'Configfile');
		writeFileSync(
			file,
			`{\n\tadmin unix/${this.#socket}\n\tthreads 1\n\tgrace_period 2s\n\tstorage file_system ${this.folder}/store\n}\nhttp://127.0.0.1:${this.#port} {\n\trespond "served"\n}\n`,
		);
		this.server = await serve([file], this.#port, { env: { XDG_STATE_HOME: this.folder, NOTIFY_SOCKET: '' } });
		return this;
	}

	/** Asks the server for a handover. Resolves to the status and text of the reply; the status is 0 if there is no reply. */
	handOver(terms: { readonly [name: string]: string } = {}): Promise<{ status: number; text: string }> {
		return new Promise(resolve => {
			const headers = { host: 'svc', connection: 'close', 'content-type': 'application/json' };
			const options = { socketPath: this.#socket, method: 'POST', path: '/upgrade', headers };
			const clientRequest = request(options, response => {
				textOf(response).then(
					text => resolve({ status: response.statusCode!, text }),
					error => resolve({ status: 0, text: String(error) }),
				);
			});
			clientRequest.on('error', error => resolve({ status: 0, text: error.message })).end(JSON.stringify(terms));
		});
	}

	async isServed(): Promise<boolean> {
		const text = 'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n';
		return (await rawExchange(this.#port, text).catch(() => '')).endsWith('served');
	}

	/** Returns all running processes whose command line contains the folder. */
	processes(): number[] {
		return readdirSync('/proc')
			.filter(name => /^\d+$/.test(name))
			.map(Number)
			.filter(pid => {
				try {
					return readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(this.folder);
				} catch {
					return false;
				}
			});
	}

	/** Returns the processes that hold the site's listening socket, except for relay programs. */
	listeningProcesses(): number[] {
		const hexPort = this.#port.toString(16).toUpperCase().padStart(4, '0');
		const sockets = ['tcp', 'tcp6']
			.map(table => readFileSync(`/proc/net/${table}`, 'latin1'))
			.join('\n')
			.split('\n')
			.map(line => line.trim().split(/\s+/))
			.filter(([, local, , state]) => local?.endsWith(`:${hexPort}`) && state === '0A')
			.map(fields => `socket:[${fields[9]}]`);
		return this.processes().filter(pid => {
			try {
				if (readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(this.program)) return false;
				return readdirSync(`/proc/${pid}/fd`).some(fd => sockets.includes(readlinkSync(`/proc/${pid}/fd/${fd}`)));
			} catch {
				return false;
			}
		});
	}

	async end(): Promise<void> {
		for (const pid of this.processes()) {
			try {
				process.kill(pid, 'SIGKILL');
			} catch {
				// The process ended after its entry in /proc was listed.
			}
		}
		await this.server.stop();
	}
}

async function withRunningServer(test: (trial: RunningServer) => Promise<void>): Promise<void> {
	const [port] = (await freePorts(1)) as [number];
	const one = await new RunningServer(port).start();
	try {
		await test(one);
	} finally {
		await one.end();
	}
}

for (const at of ['offer', 'compile', 'bind', 'threads', 'check', 'ready', 'go', 'done', 'after done']) {
	deaths(`the predecessor is killed at ${at}`, async () => {
		await withRunningServer(async one => {
			const kill = 'process.kill(predecessor, "SIGKILL")';
			const action = at === 'after done' ? `pass(); setImmediate(() => ${kill})` : `${kill}; pass();`;
			writeFileSync(one.program, relayProgram({ [at === 'after done' ? 'done' : at]: action }), { mode: 0o700 });
			await one.handOver({ binary: one.program });
			await until('the death', () => one.server.child.signalCode === 'SIGKILL');
			// If the new process has received its predecessor's offer of a handover, it takes over. In the end, only one process may be
			// left.
			await until('served', () => one.isServed());
			await until('one process accepts', () => one.listeningProcesses().length === 1);
			for (let i = 0; i < 5; i++) assert.ok(await one.isServed());
			process.kill(one.listeningProcesses()[0]!, 'SIGTERM');
			await until('stopped', () => one.processes().length === 0);
		});
	});
}

deaths('a new process that has not been told what to take over ends, if its predecessor dies', async () => {
	await withRunningServer(async one => {
		writeFileSync(one.program, relayProgram({ offer: 'process.kill(predecessor, "SIGKILL");' }), { mode: 0o700 });
		await one.handOver({ binary: one.program });
		await until('no process is left', () => one.processes().length === 0);
	});
});

deaths('a predecessor that hangs after the switch has been replaced', async () => {
	await withRunningServer(async one => {
		const action = 'process.kill(predecessor, "SIGSTOP"); pass();';
		writeFileSync(one.program, relayProgram({ done: action }), { mode: 0o700 });
		const asking = one.handOver({ binary: one.program });
		const state = () => readFileSync(`/proc/${one.server.child.pid}/stat`, 'latin1').split(') ')[1]![0];
		await until('it hangs', () => state() === 'T');
		for (let i = 0; i < 5; i++) assert.ok(await one.isServed());
		process.kill(one.server.child.pid!, 'SIGCONT');
		assert.is((await asking).status, 200);
		await until('one process accepts', () => one.listeningProcesses().length === 1);
		assert.ok(await one.isServed());
	});
});

deaths(
	'a predecessor that hangs before the switch goes on when it can, and the new process has ended by itself',
	async () => {
		await withRunningServer(async one => {
			const action = 'process.kill(predecessor, "SIGSTOP"); pass();';
			writeFileSync(one.program, relayProgram({ ready: action }), { mode: 0o700 });
			const asking = one.handOver({ binary: one.program, within: '1h' });
			const state = () => readFileSync(`/proc/${one.server.child.pid}/stat`, 'latin1').split(') ')[1]![0];
			await until('it hangs', () => state() === 'T');
			const end = performance.now() + 120_000;
			while (one.processes().length > 1 && performance.now() < end) await pauseFor(100);
			assert.equal(one.processes(), [one.server.child.pid]);
			process.kill(one.server.child.pid!, 'SIGCONT');
			const { status, text } = await asking;
			assert.is(status, 503, text);
			assert.match(text, /did not say when to take over|ended with status/);
			assert.ok(await one.isServed());
		});
	},
);

/** Returns a seeded generator of random numbers from 0 to 1. */
function randomNumbers(seed: number): () => number {
	let state = seed;
	return () => {
		state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
		return (state >>> 8) / 2 ** 23;
	};
}

deaths(`random kills leave exactly one process that accepts (${KILLS} kills, SEED=${SEED})`, async () => {
	const random = randomNumbers(SEED);
	const [port] = (await freePorts(1)) as [number];
	const one = await new RunningServer(port).start();
	const kills = { predecessor: 0, successor: 0, afterwards: 0 };
	let took = 3000;
	try {
		while (kills.predecessor + kills.successor < KILLS) {
			const round = `SEED=${SEED}, kills ${JSON.stringify(kills)}`;
			const [before] = one.listeningProcesses() as [number];
			const startedAt = performance.now();
			let isEnded = false;
			const asking = one.handOver().finally(() => {
				isEnded = true;
			});
			const victim = random() < 0.5 ? 'predecessor' : 'successor';
			await pauseFor(random() * took);
			// If the old process dies before the new one has received the offer, no process can take over. This is an ordinary crash.
			const processes = one.processes();
			const isStarted = (pid: number) => one.server.output().includes(`started","pid":${pid}}`);
			const successor = processes.find(pid => pid !== before && isStarted(pid));
			const target = isEnded || successor === undefined || !processes.includes(before) ? undefined : victim;
			if (target) process.kill(target === 'successor' ? successor! : before, 'SIGKILL');
			const { status, text } = await asking;
			if (status === 200 && target === undefined) took = (took + performance.now() - startedAt) / 2;
			const isKilledServer = status === 200 && target === 'successor';
			if (isKilledServer) {
				// The handover was complete, so the killed process was the only server.
				kills.afterwards++;
				await one.end();
				await one.start();
			} else if (target) {
				kills[target]++;
				if (target === 'successor') assert.is(status, 503, `${text} (${round})`);
			}
			await until(`served (${round})`, () => one.isServed());
			await until(`one process accepts (${round})`, () => one.listeningProcesses().length === 1);
			await until(`few processes (${round})`, () => one.processes().length <= 2);
			for (let i = 0; i < 3; i++) assert.ok(await one.isServed(), round);
		}
	} finally {
		await one.end();
	}
	process.stdout.write(`kills ${JSON.stringify(kills)} with SEED=${SEED}\n`);
});

deaths.run();
