/** Sites on Unix sockets: every thread serves the same socket file, which exists as long as the server runs. */
import { existsSync, lstatSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { createServer } from 'node:net';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Document } from '../../../compiler/document/document.ts';
import { ListenerSockets } from '../../../runtime/listeners/listener-sockets.ts';
import { temporaryFolder } from '../../harness.ts';
import { eventually, jsonInput, withServer } from '../running-server.ts';

const unix = suite('site listeners on Unix sockets');
const folder = temporaryFolder();

function documentOn(file: string, body = 'here', more: Document['settings'] = {}): Document {
	return {
		settings: more,
		sites: [
			{ addresses: ['http://a.test'], bind: [`unix/${file}`], logs: [{}], pipeline: [{ handler: 'respond', body }] },
		],
	};
}

function ask(socketPath: string, headers: { [name: string]: string } = {}): Promise<string> {
	return new Promise((resolve, reject) => {
		const request = get({ socketPath, headers: { host: 'a.test', connection: 'close', ...headers } }, response => {
			let body = '';
			response.setEncoding('utf8').on('data', chunk => {
				body += chunk;
			});
			response.on('end', () => resolve(body));
		});
		request.on('error', reject);
	});
}

unix(
	'all threads serve the socket, also after one dies; a reload keeps it and applies new permissions; its clients have no address',
	async () => {
		const file = path.join(folder, 'site.sock');
		const settings = { trusted_proxies_unix: true } as const;
		await withServer(documentOn(`${file}|0660`, 'here', settings), {}, async ({ runtime, log }) => {
			const { ino, mode } = lstatSync(file);
			assert.is(mode & 0o777, 0o660);
			assert.equal(log.entries.find(({ msg }) => msg === 'serving')!.listeners, [`unix/${file}`]);
			assert.equal(new Set(await Promise.all(Array.from({ length: 40 }, () => ask(file)))), new Set(['here']));
			await eventually('logged', () => log.text().includes('"remote_ip":"","remote_port":"0"'));
			for (const thread of [0, 1]) {
				await runtime.terminateWorker(thread);
				assert.is(await ask(file), 'here');
				const replaced = (): number => log.entries.filter(({ msg }) => msg === 'a worker thread was replaced').length;
				await eventually('replaced', () => replaced() > thread);
			}
			const loaded = await runtime.load(jsonInput(documentOn(`${file}|0606`, 'new {http.vars.client_ip}', settings)));
			assert.is(loaded.result, 'applied');
			assert.is(await ask(file), 'new ');
			// A trusted proxy determines the client's address by `X-Forwarded-For`.
			assert.is(await ask(file, { 'x-forwarded-for': '203.0.113.9' }), 'new 203.0.113.9');
			// A client has no address, either, if its PROXY header has none or is missing.
			const servers = [{ listener_wrappers: [{ wrapper: 'proxy_protocol' }] }] as const;
			const wrapped = jsonInput(documentOn(`${file}|0606`, 'new {http.vars.client_ip}', { ...settings, servers }));
			assert.is((await runtime.load(wrapped)).result, 'applied');
			assert.is(await ask(file), 'new ');
			assert.is(await ask(file, { 'x-forwarded-for': '203.0.113.9' }), 'new 203.0.113.9');
			assert.is(lstatSync(file).mode & 0o777, 0o606);
			assert.is(lstatSync(file).ino, ino);
			const other = path.join(folder, 'other.sock');
			const moved = await runtime.load(jsonInput(documentOn(other, '', settings)));
			assert.equal('reasons' in moved && moved.reasons.map(({ code, subject }) => `${code} ${subject}`), [
				`listener_added unix/${other}`,
				`listener_removed unix/${file}`,
			]);
			assert.not.ok(existsSync(other));
		});
		assert.not.ok(existsSync(file));
	},
);

unix('a process without a configuration can add a socket, and a failed load leaves none behind', async () => {
	const file = path.join(folder, 'added.sock');
	await withServer(undefined, {}, async ({ runtime }) => {
		const broken = documentOn(file, '{http.vars.client_ip}');
		const refused = await runtime.load(
			jsonInput({
				...broken,
				settings: { logs: { default: { output: { writer: 'file', path: '/proc/no/such.log' } } } },
			}),
		);
		assert.is(refused.result, 'refused');
		assert.not.ok(existsSync(file));
		assert.is((await runtime.load(jsonInput(broken))).result, 'applied');
		assert.is(lstatSync(file).mode & 0o777, 0o600);
		// The peer of this Unix socket is not configured as trusted, so its `X-Forwarded-For` is ignored.
		assert.is(await ask(file, { 'x-forwarded-for': '203.0.113.9' }), '');
	});
});

unix(
	"a killed server's socket is replaced; a running server's socket, a file and a symbolic link are not",
	async () => {
		const file = path.join(folder, 'taken.sock');
		const sockets = new ListenerSockets(
			text => text,
			() => {},
		);
		const open = (at: string) =>
			sockets.prepareAddresses([{ key: `unix/${at}`, host: `unix/${at}`, port: 0, scheme: 'http' }]).then(
				([address]) => `descriptor ${address!.descriptor}`,
				error => (error as Error).message,
			);
		const other = createServer().listen(file);
		await new Promise(resolve => other.once('listening', resolve));
		assert.is(await open(file), `Cannot listen on unix/${file}: the address is in use.`);
		assert.ok(existsSync(file));
		renameSync(file, `${file}.kept`);
		await new Promise(resolve => other.close(resolve));
		renameSync(`${file}.kept`, file);
		assert.match(await open(file), /^descriptor \d+$/);
		sockets.discardUnserved();
		assert.not.ok(existsSync(file));
		writeFileSync(file, 'mine');
		assert.match(await open(file), /a file with this name exists that is not a socket/);
		assert.ok(existsSync(file));
		unlinkSync(file);
		symlinkSync('/etc/passwd', file);
		assert.match(await open(file), /that is not a socket/);
		assert.ok(lstatSync(file).isSymbolicLink());
		assert.match(await open(path.join(folder, 'x'.repeat(120))), /the path of the socket is too long/);
		assert.match(await open('/no/such/folder/a.sock'), /the folder of the socket does not exist/);

		// When a listener closes, it does not remove its socket path if another server has taken the path over.
		const given = path.join(folder, 'given.sock');
		await open(given);
		unlinkSync(given);
		writeFileSync(given, 'of another');
		sockets.close();
		sockets.close();
		assert.ok(existsSync(given));
	},
);

unix.run();
