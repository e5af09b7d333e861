/** Handovers that give up a listening socket: the connections that wait in its queue are served, and no others get there. */
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { connect, type NetConnectOpts, type Socket } from 'node:net';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { runCommand, until } from '../harness.ts';
import { relayProgram } from './handover-relay.ts';
import { bodyOf, isRefused, siteText, withServer } from './handover-server.ts';

const moved = suite('handovers that give up a socket');

/** More connections than a thread accepts before it handles other events. */
const CLIENTS = 400;

const REQUEST = 'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n';

/** Connects, sends a request, and collects the answer. */
class WaitingClient {
	readonly socket: Socket;
	answer = '';
	failure: string | undefined;
	readonly whenClosed: Promise<unknown>;

	constructor(target: NetConnectOpts) {
		this.socket = connect(target);
		this.whenClosed = new Promise(resolve => this.socket.once('close', resolve));
		this.socket.on('error', error => {
			this.failure = error.message;
		});
		this.socket.setEncoding('latin1').on('data', chunk => {
			this.answer += chunk;
		});
		this.socket.write(REQUEST);
	}

	get outcome(): string {
		return this.failure ?? this.answer.split('\r\n')[0]!;
	}
}

/** The sites before and after a handover. */
interface Move {
	readonly before: (port: number) => string;
	readonly after: (port: number, otherPort: number) => string;
	/** Where clients connect; by default, to the port. */
	readonly target?: (folder: string) => NetConnectOpts;
	/** Checks what new clients get after the handover. */
	readonly check: (port: number, folder: string) => Promise<void>;
}

const site = (port: number, text: string, bind?: string): string =>
	`http://127.0.0.1:${port} {\n${bind === undefined ? '' : `\tbind ${bind}\n`}\trespond "${text}"\n}\n`;

const isServed = async (port: number): Promise<void> => assert.is(await bodyOf(port), 'after');

const MOVES: { readonly [name: string]: Move } = {
	'from every address to one': {
		before: port => site(port, 'before'),
		after: port => site(port, 'after', '127.0.0.1'),
		check: isServed,
	},
	'from one address to every address': {
		before: port => site(port, 'before', '127.0.0.1'),
		after: port => site(port, 'after'),
		check: isServed,
	},
	'to another text of the same address': {
		before: port => site(port, 'before'),
		after: port => site(port, 'after', '::'),
		check: isServed,
	},
	'from a name to its address': {
		before: port => site(port, 'before', 'localhost'),
		after: port => site(port, 'after', '127.0.0.1'),
		check: isServed,
	},
	'from an address to its name': {
		before: port => site(port, 'before', '127.0.0.1'),
		after: port => site(port, 'after', 'localhost'),
		check: isServed,
	},
	'to another port': {
		before: port => site(port, 'before'),
		after: (_, otherPort) => siteText(otherPort, 'after'),
		check: async port => assert.ok(await isRefused(port)),
	},
	'from a Unix socket': {
		before: port => `${siteText(port, 'other')}${site(1, 'before', 'unix/{env.XDG_STATE_HOME}/site.sock')}`,
		after: port => siteText(port, 'after'),
		target: folder => ({ path: path.join(folder, 'site.sock') }),
		check: async (port, folder) => {
			await isServed(port);
			assert.not.ok(existsSync(path.join(folder, 'site.sock')));
		},
	},
};

for (const [name, { before, after, target, check }] of Object.entries(MOVES)) {
	moved(`${name}: connections that wait for the old process are served`, async () => {
		await withServer(
			ports => before(ports[0]!),
			async ({ file, folder, ports, server }) => {
				const [first, second] = ports as [number, number];
				const sign = (word: string): string => path.join(folder, word);
				const program = path.join(folder, 'program');
				const mark = (word: string): string => `writeFileSync(${JSON.stringify(sign(word))}, '')`;
				// The old process is stopped before the new one begins to accept, and goes on after it has.
				const go = `process.kill(predecessor, 'SIGSTOP'); ${mark('stopped')};
						const timer = setInterval(() => {
							if (!existsSync(${JSON.stringify(sign('go'))})) return;
							clearInterval(timer);
							pass();
						}, 5);`;
				const done = `pass(); setImmediate(() => ${mark('done')});`;
				const text = readFileSync(file, 'utf8').replace(before(first), () => after(first, second));
				const input = { format: 'configfile', text, name: 'Configfile' };
				const offer = `message.input = ${JSON.stringify(input)}; pass();`;
				writeFileSync(program, relayProgram({ offer, go, done }), { mode: 0o700 });
				const words = ['upgrade', '--binary', program, '--address', `unix/${folder}/admin.sock`];
				const upgrading = runCommand(words, { cwd: folder });
				const failed = upgrading.then(({ stderr }) => Promise.reject(new Error(stderr)));
				await Promise.race([failed, until('the old process is stopped', () => existsSync(sign('stopped')))]);
				failed.catch(() => {});
				const clients = Array.from(
					{ length: CLIENTS },
					() => new WaitingClient(target?.(folder) ?? { port: first, host: '127.0.0.1' }),
				);
				await Promise.all(clients.map(({ socket }) => socket.connecting && once(socket, 'connect')));
				writeFileSync(sign('go'), '');
				await until('the new process accepts', () => existsSync(sign('done')));
				server.child.kill('SIGCONT');
				const { status, stderr } = await upgrading;
				assert.is(status, 0, stderr);
				await Promise.all(clients.map(({ whenClosed }) => whenClosed));
				const outcomes = new Map<string, number>();
				for (const { outcome } of clients) outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
				assert.equal([...outcomes], [['HTTP/1.1 200 OK', CLIENTS]]);
				await check(first, folder);
			},
		);
	});
}

moved.run();
