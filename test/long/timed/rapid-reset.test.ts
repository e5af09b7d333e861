/** A rapid reset attack of 100,000 streams a second must not slow down the requests of a normal client. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type ClientHttp2Session, connect } from 'node:http2';
import path from 'node:path';
import { promisify } from 'node:util';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, serve, temporaryFolder } from '../../harness.ts';

const test = suite('rapid reset');

const STREAMS_PER_SECOND = 100_000;
/**
 * Seconds for which the server and a dummy server are each attacked, and the number of turns into which this time is divided. The
 * attacks alternate, because the machine's load may vary.
 */
const SECONDS = 10;
const TURNS = 4;

/**
 * A dummy server that closes every connection at its first bytes, so that nearly all CPU time of an attack on it is the
 * attacker's.
 */
const DUMMY = `
const server = require('node:net').createServer(socket => socket.on('error', () => {}).on('data', () => socket.destroy()));
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
`;

/** Sends requests one after another for `seconds`. Returns the duration of each in milliseconds. */
async function requestTimes(client: ClientHttp2Session, seconds: number): Promise<number[]> {
	const durationsMs: number[] = [];
	const end = performance.now() + seconds * 1000;
	while (performance.now() < end) {
		const startedAt = performance.now();
		const stream = client.request({ ':path': '/' });
		stream.resume();
		await new Promise((resolve, reject) => {
			stream.on('error', reject);
			stream.on('close', resolve);
		});
		durationsMs.push(performance.now() - startedAt);
		await new Promise(resolve => setTimeout(resolve, 5));
	}
	return durationsMs;
}

const p99 = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[Math.floor(values.length * 0.99)]!;

/** The attacker's counts. */
interface AttackReport {
	readonly sent: number;
	readonly connections: number;
	readonly calmed: number;
}

async function attack(port: number, seconds: number): Promise<AttackReport> {
	const program = path.join(import.meta.dirname, 'rapid-reset-attack.ts');
	const words = [program, String(port), String(STREAMS_PER_SECOND), String(seconds)];
	return JSON.parse((await promisify(execFile)(process.execPath, words)).stdout);
}

test("the attacker is cut off, and a client's p99 stays below five times its p99 during an attack on another server", async () => {
	const [port] = (await freePorts(1)) as [number];
	const folder = temporaryFolder();
	const file = path.join(folder, 'Configfile');
	writeFileSync(
		file,
		`{\n\tadmin off\n\tservers {\n\t\tprotocols h2c\n\t}\n}\nhttp://127.0.0.1:${port} {\n\trespond "hello"\n}\n`,
	);
	const dummy = spawn(process.execPath, ['-e', DUMMY], { stdio: ['ignore', 'pipe', 'inherit'] });
	const server = await serve([file], port);
	const client = connect(`http://127.0.0.1:${port}`);
	try {
		const [announced] = (await once(dummy.stdout, 'data')) as [Buffer];
		await requestTimes(client, 1);
		const quiet: number[] = [];
		const during: number[] = [];
		let sent = 0;
		let connections = 0;
		let calmed = 0;
		for (let turn = 0; turn < TURNS; turn++) {
			const seconds = SECONDS / TURNS;
			const elsewhere = attack(Number(announced), seconds);
			quiet.push(...(await requestTimes(client, seconds)));
			await elsewhere;
			const here = attack(port, seconds);
			during.push(...(await requestTimes(client, seconds)));
			const counted = await here;
			sent += counted.sent;
			connections += counted.connections;
			calmed += counted.calmed;
		}
		const said = `p99 ${p99(quiet).toFixed(2)} ms during an attack on the dummy, ${p99(during).toFixed(2)} ms during one on the server; ${sent} streams on ${connections} connections, ${calmed} ended with ENHANCE_YOUR_CALM`;
		console.log(said);
		// The attacker is slower on a busy machine, so a tenth of the intended number of streams is sufficient.
		assert.ok(sent >= STREAMS_PER_SECOND * SECONDS * 0.1, said);
		// At this rate of resets, the server soon closes each connection.
		assert.ok(sent / connections < 2000, said);
		assert.ok(calmed > connections / 2, said);
		assert.ok(p99(during) < 5 * Math.max(1, p99(quiet)), said);
	} finally {
		client.destroy();
		dummy.kill();
		await server.stop();
	}
});

test.run();
