/** Many handovers under load, and handovers during which a process is killed at a random moment. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { EchoClient, echoServer, startLoad } from '../cli/handover-load.ts';
import {
	freePorts,
	pauseFor,
	rawExchange,
	runCommand,
	serve,
	temporaryFolder,
	until,
	WAIT_LIMIT_MS,
} from '../harness.ts';

const handovers = suite('many handovers');

const HANDOVER_COUNT = Number(process.env.HANDOVERS ?? 25);
const KILLS = Number(process.env.KILLS ?? 12);

/** Returns the processes of the server whose configuration is in the folder. */
function processesOf(folder: string): number[] {
	return readdirSync('/proc')
		.filter(name => /^\d+$/.test(name))
		.map(Number)
		.filter(pid => {
			try {
				return readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(`\0run\0${folder}`);
			} catch {
				return false;
			}
		});
}

handovers('under load lose nothing, and leave nothing behind', async () => {
	const folder = temporaryFolder();
	const file = path.join(folder, 'Configfile');
	const [first, tls, ...others] = (await freePorts(4)) as [number, number, number, number];
	const echo = await echoServer();
	const { port: echoPort } = echo.address() as { port: number };
	const options = `{\n\tadmin unix/${folder}/admin.sock\n\tthreads 2\n\tgrace_period 3s\n\tskip_install_trust\n\tauto_https disable_redirects\n\tstorage file_system ${folder}/store\n}\n`;
	const sites = `http://127.0.0.1:${first} {\n\thandle /echo {\n\t\treverse_proxy 127.0.0.1:${echoPort}\n\t}\n\thandle {\n\t\trespond "plain"\n\t}\n\tlog {\n\t\toutput file ${folder}/access.log {\n\t\t\troll_size 100KiB\n\t\t\troll_keep 1000\n\t\t\troll_uncompressed\n\t\t}\n\t}\n}\n`;
	const secure = (round: number): string =>
		`https://localhost:${tls}${round % 2 ? `, https://name${round}.localhost:${tls}` : ''} {\n\ttls internal\n\trespond "tls"\n}\n`;
	const added = (round: number): string => `http://127.0.0.1:${others[round % 2]} {\n\trespond "round ${round}"\n}\n`;
	writeFileSync(file, `${options}${sites}${secure(0)}`);
	const server = await serve([file], first, { env: { XDG_STATE_HOME: folder } });
	const clients = startLoad({ plain: first, tls }, 16);
	try {
		let descriptors = 0;
		for (let round = 1; round <= HANDOVER_COUNT; round++) {
			const socket = await EchoClient.open(first, '/echo');
			writeFileSync(file, `${options}${sites}${secure(round)}${added(round)}`);
			const done = await runCommand(['reload', file, '--handover']);
			assert.is(done.status, 0, done.stderr);
			await socket.echo(`round ${round}`);
			const answer = await rawExchange(
				others[round % 2]!,
				'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n',
			);
			assert.match(answer, `round ${round}`);
			const pid = Number(/process (\d+)/.exec(done.stdout)?.[1]);
			await until('the first and the last process', () => processesOf(folder).length === 2);
			const open = readdirSync(`/proc/${pid}/fd`).length;
			if (round === 5) descriptors = open;
			else if (round > 5)
				assert.ok(open < descriptors + 40, `${open} descriptors in round ${round}, ${descriptors} at first`);
		}
		const report = await clients.stop();
		assert.equal(report.failures.slice(0, 10), []);
		const total = report.done['keep-alive']! + report.done['connection per request']!;
		assert.is(await server.stop(WAIT_LIMIT_MS), 0);
		// Every line is complete and occurs only once, whichever process wrote it or rolled the file.
		const lines = readdirSync(folder)
			.filter(name => name.startsWith('access'))
			.flatMap(name => readFileSync(path.join(folder, name), 'utf8').trimEnd().split('\n'));
		for (const line of lines) JSON.parse(line);
		assert.ok(lines.length >= total, `${lines.length} lines of ${total} requests`);
	} finally {
		await clients.stop();
		await server.stop();
		echo.close();
	}
});

handovers('change the number of threads, and move a port to another address', async () => {
	const folder = temporaryFolder();
	const file = path.join(folder, 'Configfile');
	const [first, tls] = (await freePorts(2)) as [number, number];
	const text = (threads: number, body: string, more = ''): string =>
		`{\n\tadmin unix/${folder}/admin.sock\n\tthreads ${threads}\n\tskip_install_trust\n\tauto_https disable_redirects\n\tstorage file_system ${folder}/store\n}\nhttp://127.0.0.1:${first} {\n${more}\trespond "${body}"\n}\nhttps://localhost:${tls} {\n\ttls internal\n\trespond "tls"\n}\n`;
	writeFileSync(file, text(4, 'four'));
	const server = await serve([file], first, { env: { XDG_STATE_HOME: folder } });
	const clients = startLoad({ plain: first, tls });
	try {
		await until('load', () => clients.done('HTTP/2') > 0);
		const change = async (wanted: string): Promise<void> => {
			writeFileSync(file, wanted);
			const done = await runCommand(['reload', file, '--handover']);
			assert.is(done.status, 0, done.stderr);
			const count = clients.done('connection per request');
			await until('more requests', () => clients.done('connection per request') > count + 100);
		};
		// First, one thread takes over the sockets of four threads. Then three threads share these four sockets, and then six
		// threads do.
		for (const threads of [1, 3, 6]) await change(text(threads, `${threads} threads`));
		// The port moves to one address and back to every address.
		for (let move = 1; move <= 4; move++) {
			await change(text(2, `moved ${move} times`, move % 2 ? '\tbind 127.0.0.1\n' : ''));
			const answer = await rawExchange(first, 'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n');
			assert.match(answer, `moved ${move} times`);
		}
		const { failures } = await clients.stop();
		assert.equal(failures, []);
	} finally {
		await clients.stop();
		await server.stop();
	}
});

handovers('with processes that are killed at random never leave nobody serving', async () => {
	const folder = temporaryFolder();
	const file = path.join(folder, 'Configfile');
	const [port, ...others] = (await freePorts(3)) as [number, number, number];
	const options = `{\n\tadmin unix/${folder}/admin.sock\n\tthreads 2\n}\n`;
	const site = (at: number, text: string): string => `http://127.0.0.1:${at} {\n\trespond "${text}"\n}\n`;
	const env = { XDG_STATE_HOME: folder, NOTIFY_SOCKET: '' };
	const text = (round: number): string =>
		`${options}${site(port, `round ${round}`)}${site(others[round % 2]!, 'more')}`;
	writeFileSync(file, text(0));
	let first = await serve([file], port, { env });
	try {
		for (let round = 1; round <= KILLS; round++) {
			writeFileSync(file, text(round));
			const before = processesOf(folder);
			let isFinished = false;
			const reload = runCommand(['reload', file, '--handover']).finally(() => {
				isFinished = true;
			});
			await pauseFor(Math.random() * 5000);
			// A new process cannot take over before it has received its predecessor's offer.
			const newProcesses = processesOf(folder).filter(
				pid => first.output().includes(`started","pid":${pid}}`) && !before.includes(pid),
			);
			// Kills the old process and its successor in turn.
			const victim = (round % 2 ? newProcesses : before).at(-1);
			const kills = !isFinished && newProcesses.length > 0 && victim !== undefined;
			if (kills) process.kill(victim, 'SIGKILL');
			const { status } = await reload;
			if (kills && round % 2 && status === 0) {
				// The handover had already finished, so the killed process was the only server.
				await first.stop();
				first = await serve([file], port, { env });
			}
			await until(`an answer in round ${round}`, async () =>
				/round \d+$/.test(
					await rawExchange(port, 'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n').catch(() => ''),
				),
			);
			await until('few processes', () => processesOf(folder).length <= 2);
		}
	} finally {
		for (const pid of processesOf(folder)) process.kill(pid, 'SIGKILL');
		await first.stop();
	}
});

handovers.run();
