/**
 * A normal client must not be slowed down while 5,000 clients send request heads slowly and 5,000 others send bodies slowly.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, serve, temporaryFolder } from '../../harness.ts';

const slow = suite('slow attackers');

const CONNECTIONS_OF_EACH_KIND = 5000;

/** Returns the milliseconds that each of a client's sequential requests took during the given seconds. */
async function requestTimes(port: number, seconds: number): Promise<number[]> {
	const agent = new Agent({ keepAlive: true, maxSockets: 1 });
	const durationsMs: number[] = [];
	const end = performance.now() + seconds * 1000;
	while (performance.now() < end) {
		const startedAt = performance.now();
		await new Promise<void>((resolve, reject) => {
			get({ port, host: '127.0.0.1', agent, path: '/' }, response => {
				if (response.statusCode !== 200) reject(new Error(`status ${response.statusCode}`));
				response.resume().on('end', resolve);
			}).on('error', reject);
		});
		durationsMs.push(performance.now() - startedAt);
		await new Promise(resolve => setTimeout(resolve, 2));
	}
	agent.destroy();
	return durationsMs;
}

const p99 = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[Math.floor(values.length * 0.99)]!;

slow("a normal client's p99 stays below three times its p99 without the attack", async () => {
	const [port, upstreamPort] = (await freePorts(2)) as [number, number];
	const file = path.join(temporaryFolder(), 'Configfile');
	writeFileSync(
		file,
		`{\n\tadmin off\n}\nhttp://:${port} {\n\treverse_proxy /up 127.0.0.1:${upstreamPort}\n\trespond "hello"\n}\n`,
	);
	const server = await serve([file], port);
	const windows = async (count: number): Promise<number> => {
		const found: number[] = [];
		for (let i = 0; i < count; i++) found.push(p99(await requestTimes(port, 4)));
		return Math.min(...found);
	};
	await requestTimes(port, 1);
	const before = await windows(2);
	const attacker = fork(path.join(import.meta.dirname, 'slow-attack.ts'), [
		...[String(port), String(upstreamPort), String(CONNECTIONS_OF_EACH_KIND), '1000'],
	]);
	try {
		await once(attacker, 'message');
		await new Promise(resolve => setTimeout(resolve, 1000));
		const during = await windows(3);
		attacker.send('report');
		const [report] = (await once(attacker, 'message')) as [{ open: number; closed: number }];
		attacker.disconnect();
		await once(attacker, 'exit');
		await new Promise(resolve => setTimeout(resolve, 1000));
		// The client is measured without an attack both before and after it, because other load on the machine varies.
		const own = Math.max(before, await windows(2));
		const said = `p99 ${during.toFixed(2)} ms with ${report.open} attacking connections, ${own.toFixed(2)} ms without`;
		console.log(said);
		assert.ok(report.open > CONNECTIONS_OF_EACH_KIND, said);
		assert.ok(during < 3 * Math.max(0.5, own), said);
	} finally {
		attacker.kill('SIGKILL');
		await server.stop();
	}
});

slow.run();
