/** A rapid reset attack of 100,000 streams a second beside a client that only wants its answers. */
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

const RATE = 100_000;
/** Seconds of attack on the server, and as long on nobody; in turns, because the machine may have more to do. */
const SECONDS = 10;
const TURNS = 4;

/** Cuts off every connection at its first bytes: an attack on it takes from the machine what its attacker costs, and no more. */
const NOBODY = `
const server = require('node:net').createServer(socket => socket.on('error', () => {}).on('data', () => socket.destroy()));
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
`;

/** Milliseconds that each of a client's requests took, for so long. */
async function times(client: ClientHttp2Session, seconds: number): Promise<number[]> {
	const taken: number[] = [];
	const end = performance.now() + seconds * 1000;
	while (performance.now() < end) {
		const begun = performance.now();
		const stream = client.request({ ':path': '/' });
		stream.resume();
		await new Promise((resolve, reject) => {
			stream.on('error', reject);
			stream.on('close', resolve);
		});
		taken.push(performance.now() - begun);
		await new Promise(resolve => setTimeout(resolve, 5));
	}
	return taken;
}

const p99 = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[Math.floor(values.length * 0.99)]!;

/** What an attacker has counted. */
interface Attacked {
	readonly sent: number;
	readonly connections: number;
	readonly calmed: number;
}

async function attack(port: number, seconds: number): Promise<Attacked> {
	const program = path.join(import.meta.dirname, 'rapid-reset-attack.ts');
	const words = [program, String(port), String(RATE), String(seconds)];
	return JSON.parse((await promisify(execFile)(process.execPath, words)).stdout);
}

test('the attacker is cut off, and the p99 of a client stays under five times what it is when somebody else is attacked', async () => {
	const [port] = (await freePorts(1)) as [number];
	const folder = temporaryFolder();
	const file = path.join(folder, 'Configfile');
	writeFileSync(
		file,
		`{\n\tadmin off\n\tservers {\n\t\tprotocols h2c\n\t}\n}\nhttp://127.0.0.1:${port} {\n\trespond "hello"\n}\n`,
	);
	const nobody = spawn(process.execPath, ['-e', NOBODY], { stdio: ['ignore', 'pipe', 'inherit'] });
	const server = await serve([file], port);
	const client = connect(`http://127.0.0.1:${port}`);
	try {
		const [announced] = (await once(nobody.stdout, 'data')) as [Buffer];
		await times(client, 1);
		const quiet: number[] = [];
		const during: number[] = [];
		let sent = 0;
		let connections = 0;
		let calmed = 0;
		for (let turn = 0; turn < TURNS; turn++) {
			const seconds = SECONDS / TURNS;
			const elsewhere = attack(Number(announced), seconds);
			quiet.push(...(await times(client, seconds)));
			await elsewhere;
			const here = attack(port, seconds);
			during.push(...(await times(client, seconds)));
			const counted = await here;
			sent += counted.sent;
			connections += counted.connections;
			calmed += counted.calmed;
		}
		const said = `p99 ${p99(quiet).toFixed(2)} ms beside an attack on nobody, ${p99(during).toFixed(2)} ms during; ${sent} streams on ${connections} connections, ${calmed} told to be calm`;
		console.log(said);
		// On a busy machine the attacker is slower too.
		assert.ok(sent >= RATE * SECONDS * 0.5, said);
		// None of its connections stood for a second of such a rate.
		assert.ok(sent / connections < 2000, said);
		assert.ok(calmed > connections / 2, said);
		assert.ok(p99(during) < 5 * Math.max(1, p99(quiet)), said);
	} finally {
		client.destroy();
		nobody.kill();
		await server.stop();
	}
});

test.run();
