/** Access log entries that are written by updating the previous line equal entries that are built from scratch. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Exchange } from '../../../compiler/exchange/exchange.ts';
import { HeaderList } from '../../../compiler/exchange/header-list.ts';
import { AccessLogger } from '../../../runtime/logs/access-log.ts';
import { Random } from '../../compiler/syntax/random-text.ts';

const templates = suite('lines from templates');

const SETTINGS = { logger: 'http.log.access.a', format: { encoder: 'default' }, output: { writer: 'stdout' } } as const;
const DEPS = {
	isTerminal: false,
	clientIp: (x: Exchange) => x.connection.remoteAddress,
	expand: (text: string) => text,
};

function exchange(random: Random): Exchange {
	const headers = new HeaderList();
	headers.add('Host', 'a.example');
	if (random.below(5) === 0) headers.add('Cookie', 'secret');
	if (random.below(5) === 0) headers.add('User-Agent', random.of(['a', 'ü', '"size":1}']));
	const path = random.of(['/', '/', '/', '/x', '/ü', '/"remote_port":"1"']);
	const asked = { method: random.of(['GET', 'GET', 'POST']), path, query: undefined, authority: 'a.example', headers };
	const connection = {
		...{
			remoteAddress: random.of(['127.0.0.1', '127.0.0.1', '::1']),
			remotePort: random.of([1, 80, 999, 1000, 54321, 65535]),
		},
		...{ localAddress: '127.0.0.1', localPort: 80, tls: undefined },
	};
	// biome-ignore lint/suspicious/noExplicitAny: only what a log reads
	const request = { ...asked, host: 'a.example', scheme: 'http', body: null } as any;
	const age = random.of([0.0001, 0.002, 0.5, 12, 999.5, 1000, 70_000]);
	// biome-ignore lint/suspicious/noExplicitAny: no response is sent
	const x = new Exchange('HTTP/1.1', connection, asked as any, request, {} as any, performance.now() - age);
	x.response.status = random.of([200, 200, 200, 404, 502]);
	x.response.bytesSent = random.of([14, 14, 15]);
	x.bytesReceived = random.of([0, 0, 3]);
	x.answeredBy = random.of(['respond', 'respond', '']);
	if (random.below(6) === 0) x.variables.set('http.auth.user.id', random.of(['bob', 'ü']));
	if (random.below(6) === 0) x.variables.set('http.request.uuid', 'u');
	if (random.below(6) === 0) x.log = { fields: { more: random.below(3) } };
	if (random.below(6) === 0) x.error = { status: 502, message: 'e' };
	return x;
}

templates('equal the lines of a log without templates, for any sequence of requests', () => {
	const random = new Random(Number(process.env.SEED ?? 1));
	let line = '';
	let plain = '';
	let over = 0;
	const write = (text: string): void => {
		line = text;
	};
	const writeBytes = (bytes: Buffer): void => {
		line = bytes.toString();
		over++;
	};
	const writePlain = (text: string): void => {
		plain = text;
	};
	const quick = new AccessLogger(SETTINGS as never, { write, writeBytes }, DEPS);
	const slow = new AccessLogger(SETTINGS as never, { write: writePlain }, DEPS);
	let x = exchange(random);
	for (let i = 0; i < 10_000; i++) {
		if (random.below(4) === 0) x = exchange(random);
		const at = random.of(['Configfile:12', 'Configfile:12', 'ü:3', undefined]);
		quick.record(x, false, at);
		slow.record(x, false, at);
		assert.ok(line.endsWith('}\n') && !line.slice(0, -1).includes('\n'));
		const { ts, duration, ...rest } = JSON.parse(line);
		const { ts: slowTs, duration: slowDuration, ...slowRest } = JSON.parse(plain);
		assert.equal(rest, slowRest);
		assert.ok(Math.abs(ts - slowTs) < 1, `${ts} ${slowTs}`);
		assert.ok(duration <= slowDuration && slowDuration - duration < 1, `${duration} ${slowDuration}`);
	}
	assert.ok(over > 1000, `${over} lines were written by updating others`);
});

templates.run();
