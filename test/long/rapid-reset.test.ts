/** A rapid reset attack of 100,000 streams a second beside a client that only wants its answers. */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { type ClientHttp2Session, connect } from 'node:http2';
import path from 'node:path';
import { promisify } from 'node:util';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, serve, temporaryFolder } from '../harness.ts';

const test = suite('rapid reset');

const RATE = 100_000;
const SECONDS = 10;

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

test('the attacker is cut off, and the p99 of a client stays under five times its own', async () => {
	const [port] = (await freePorts(1)) as [number];
	const folder = temporaryFolder();
	const file = path.join(folder, 'Configfile');
	writeFileSync(
		file,
		`{\n\tadmin off\n\tservers {\n\t\tprotocols h2c\n\t}\n}\nhttp://127.0.0.1:${port} {\n\trespond "hello"\n}\n`,
	);
	const server = await serve([file], port);
	const client = connect(`http://127.0.0.1:${port}`);
	try {
		await times(client, 1);
		const before = await times(client, 5);
		const attack = promisify(execFile)(process.execPath, [
			...[path.join(import.meta.dirname, 'rapid-reset-attack.ts'), String(port), String(RATE), String(SECONDS)],
		]);
		const during = await times(client, SECONDS);
		const { sent, connections, calmed } = JSON.parse((await attack).stdout);
		const said = `p99 ${p99(before).toFixed(2)} ms before, ${p99(during).toFixed(2)} ms during; ${sent} streams on ${connections} connections, ${calmed} told to be calm`;
		console.log(said);
		assert.ok(sent >= RATE * SECONDS * 0.9, said);
		// None of its connections stood for a second of such a rate.
		assert.ok(sent / connections < 2000, said);
		assert.ok(calmed > connections / 2, said);
		assert.ok(p99(during) < 5 * Math.max(1, p99(before)), said);
	} finally {
		client.destroy();
		await server.stop();
	}
});

test.run();
