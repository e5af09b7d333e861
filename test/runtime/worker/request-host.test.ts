/**
 * What happens to an exchange between the protocol and its handlers: a site is selected, and errors, counts and logs are handled.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { SiteTable } from '../../../compiler/codegen/site-table.ts';
import { Exchange, Request } from '../../../compiler/exchange/exchange.ts';
import type { Handler } from '../../../compiler/exchange/handler.ts';
import { HeaderList } from '../../../compiler/exchange/header-list.ts';
import { HttpError } from '../../../compiler/exchange/http-error.ts';
import type { LogEntry } from '../../../runtime/logs/log-entry.ts';
import { ROW_LENGTH, ROW_SLOT } from '../../../runtime/metrics/counter-row.ts';
import { DEFAULT_LIMITS } from '../../../runtime/protocols/http1/limits.ts';
import { CONTROL_SLOTS } from '../../../runtime/threads/control-words.ts';
import { LeaseRegistry } from '../../../runtime/threads/lease-registry.ts';
import { ThreadActivity } from '../../../runtime/threads/thread-activity.ts';
import { ThreadTls } from '../../../runtime/tls/thread-tls.ts';
import { Generation, Generations } from '../../../runtime/worker/generation.ts';
import { RequestHost, type RequestHostThread } from '../../../runtime/worker/request-host.ts';

function fakeExchange(host = 'a.example', path = '/'): Exchange {
	const received = { method: 'GET', path, query: 'token=s3cret', authority: host };
	const connection = {
		remoteAddress: '127.0.0.1',
		remotePort: 1,
		localAddress: '127.0.0.1',
		localPort: 80,
		tls: undefined,
	};
	const request = new Request(received, 'http', host, new HeaderList(['Authorization', 's3cret']), null);
	const transport = { sendInterim() {}, watch() {} };
	return new Exchange('HTTP/1.1', connection, received, request, transport, performance.now());
}

/** Creates a host with one site, `a.example`. */
function hostOf(handle: Handler, debug = false) {
	const entries: LogEntry[] = [];
	const control = new Int32Array(CONTROL_SLOTS);
	const generations = new Generations(control, new LeaseRegistry());
	const table = new SiteTable([{ site: 0, hosts: ['a.example'], paths: [] }]);
	const unit = { built: { name: 'a.example', runSite: handle, mainHandler: undefined, logs: [] }, leases: [] };
	generations.prepare(new Generation(1, [unit], new Map([['here', { table, servedHosts: undefined }]]), []));
	control[0] = 1;
	const row = new Float64Array(ROW_LENGTH);
	const thread: RequestHostThread = {
		generations,
		counters: row,
		activity: new ThreadActivity(),
		limits: DEFAULT_LIMITS,
		tls: new ThreadTls(() => {}),
		clientIp: x => x.connection.remoteAddress,
		isDraining: false,
		logsDebug: debug,
		log: entry => void entries.push(entry),
		onConnectionEnded() {},
	};
	return { host: new RequestHost('here', thread), entries, row, generations, control, table, unit };
}

const host = suite('request host');

host('a request without a site, and one that no handler answers, get an empty 200', () => {
	const { host } = hostOf(() => {});
	for (const name of ['a.example', 'b.example']) {
		const x = fakeExchange(name);
		assert.is(host.handle(x), undefined);
		assert.is(x.response.status, 200);
		assert.is(x.response.body, null);
	}
});

host('the first request of a generation is refused if the generation demands more of its client', () => {
	const { host, generations, control, table, unit } = hostOf(x => {
		x.response.status = 204;
	});
	const listenerTable = { table, servedHosts: undefined, tls: 'stricter' };
	host.onNewGeneration = given => {
		const isStricter = given?.tls === 'stricter';
		host.tlsChecks = {
			requiresSameHost: false,
			isOutdated: isStricter ? tls => tls.serverName === 'a.example' : undefined,
		};
	};
	const statusOf = (serverName: string): number => {
		const x = fakeExchange();
		Object.assign(x.connection, { tls: { serverName } });
		host.handle(x);
		return x.response.status;
	};
	assert.is(statusOf('a.example'), 204);
	generations.prepare(new Generation(2, [unit], new Map([['here', listenerTable]]), []));
	assert.is(statusOf('a.example'), 204, 'before shared memory names the generation');
	control[0] = 2;
	assert.is(statusOf('a.example'), 421);
	assert.is(statusOf('other.example'), 204);
});

host('an HttpError sets its status and fields over earlier ones, and removes earlier content', () => {
	const { host, entries } = hostOf(x => {
		x.response.status = 200;
		x.response.headers.add('X-Frame-Options', 'DENY');
		x.response.headers.add('Allow', 'POST');
		x.response.headers.add('Content-Type', 'text/half');
		x.response.headers.add('Content-Security-Policy', 'sandbox');
		x.response.headers.add('Etag', '"half"');
		x.response.body = 'half';
		throw new HttpError(405, 'no', { headers: [['Allow', 'GET']] });
	});
	const x = fakeExchange();
	assert.is(host.handle(x), undefined);
	assert.is(x.response.status, 405);
	assert.not(x.response.headers.has('connection'), 'an intended error keeps the connection open');
	assert.equal([...x.response.headers].sort(), [
		['Allow', 'GET'],
		['Content-Security-Policy', 'sandbox'],
		['X-Frame-Options', 'DENY'],
	]);
	assert.is(x.response.body, null);
	assert.equal(entries, [], 'a client error is logged at debug level only');
});

host('a handler that throws or rejects gives 500, closes the connection, and is logged without secrets', async () => {
	const bug = new TypeError('boom');
	const handlers: Handler[] = [
		() => {
			throw bug;
		},
		async () => {
			throw bug;
		},
	];
	for (const handle of handlers) {
		const { host, entries } = hostOf(handle);
		const x = fakeExchange();
		await host.handle(x);
		assert.is(x.response.status, 500);
		assert.is(x.response.headers.get('connection'), 'close');
		assert.is(entries[0]!.level, 'error');
		assert.is(entries[0]!.message, 'http: panic serving 127.0.0.1: boom');
		assert.not.match(JSON.stringify(entries), 's3cret');
	}
});

host('a bug is logged even if an error route answered', () => {
	const handled = (status: number, cause?: unknown) => {
		const { host, entries } = hostOf(x => {
			x.error = { status, message: 'm', cause: new HttpError(status, 'm', cause ? { cause } : {}) };
			x.response.status = status;
		});
		host.handle(fakeExchange());
		return entries.map(({ level }) => level);
	};
	assert.equal(handled(404), []);
	assert.equal(handled(502, new Error('refused')), []);
	assert.equal(handled(500, new TypeError('boom')), ['error']);
});

host('an unforeseen 500 closes the connection, an intended one does not', () => {
	const closes = (unforeseen: boolean): boolean => {
		const { host } = hostOf(() => {
			throw new HttpError(500, 'm', { cause: new Error('m'), unforeseen });
		});
		const x = fakeExchange();
		host.handle(x);
		return x.response.headers.has('connection');
	};
	assert.ok(closes(true));
	assert.not(closes(false));
});

host('a handler that throws something other than an error gives 500', async () => {
	const { host } = hostOf(() => Promise.reject(undefined));
	const x = fakeExchange();
	await host.handle(x);
	assert.is(x.response.status, 500);
});

host('an exchange holds its generation until it has finished', () => {
	const { host, row, generations } = hostOf(() => {});
	const x = fakeExchange();
	host.handle(x);
	assert.is(row[ROW_SLOT.inFlight], 1);
	assert.is(generations.newest.openExchangeCount, 1);
	host.onExchangeFinished(x);
	host.onExchangeFinished(x);
	assert.is(row[ROW_SLOT.inFlight], 0);
	assert.is(row[ROW_SLOT.requests], 1);
	assert.is(generations.newest.openExchangeCount, 0);
});

host('access logs record finished exchanges, unless the exchange is excluded', () => {
	const recorded: Exchange[] = [];
	const { host } = hostOf(x => {
		x.accessLogs = [{ record: entry => void recorded.push(entry) }];
		if (x.request.path === '/quiet') x.log = { skip: true };
	});
	const [loud, quiet] = [fakeExchange(), fakeExchange('a.example', '/quiet')];
	for (const x of [loud, quiet]) {
		host.handle(x);
		host.onExchangeFinished(x);
	}
	assert.equal(recorded, [loud]);
});

host.run();
