/**
 * `rate_limit`: which requests are admitted, what each request costs, and what a refused client is told. The test sets the clock.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Step } from '../../../../compiler/document/document.ts';
import { FakeRateLimiter } from '../../../../compiler/dry-run/fake-rate-limiter.ts';
import type { Exchange } from '../../../../compiler/exchange/exchange.ts';
import { HttpError } from '../../../../compiler/exchange/http-error.ts';
import type { Leases } from '../../../../compiler/exchange/leases.ts';
import type { RateLimitZone } from '../../../../compiler/modules/directives/rate-limit/rate-limit-handler.ts';
import { buildTestSite, fakeExchange, type RequestFields } from '../../fake-exchange.ts';

const test = suite('rate_limit');

interface Answer {
	readonly status: number;
	/** Fields of the response or, if the handler failed, of the error. */
	readonly fields: { readonly [name: string]: string };
	readonly logged: unknown;
}

/** Returns a site with one `rate_limit` and a clock, which starts at 1,000 s. */
function limitedSite(zones: readonly RateLimitZone[], ...later: readonly Step[]) {
	const limiters = new Map<string, FakeRateLimiter>();
	const delays: number[] = [];
	let now = 1_000_000;
	const leases: Leases = {
		lease: (kind, settings) => {
			if (kind === 'access_log') return { record() {} } as never;
			const key = JSON.stringify([kind, settings]);
			const limiter = limiters.get(key) ?? new FakeRateLimiter();
			limiters.set(key, limiter);
			limiter.delay = async (_x?: Exchange, milliseconds?: number) => {
				delays.push(milliseconds!);
				return true;
			};
			return limiter as never;
		},
	};
	const site = buildTestSite([{ handler: 'rate_limit', zones } as Step, ...later, { handler: 'respond' }], { leases });
	const send = async (request: RequestFields = {}): Promise<Answer> => {
		const x = fakeExchange(request);
		x.now = () => now;
		const logged = () => x.log?.fields?.rate_limit;
		try {
			await site.runSite(x);
			for (const finish of x.finishListeners ?? []) finish(x);
			return { status: x.response.status, fields: fieldsOf(x), logged: logged() };
		} catch (error) {
			if (!(error instanceof HttpError)) throw error;
			x.response.status = error.status;
			for (const finish of x.finishListeners ?? []) finish(x);
			return { status: error.status, fields: Object.fromEntries(error.headers), logged: logged() };
		}
	};
	return {
		send,
		delays,
		after: (milliseconds: number) => {
			now += milliseconds;
		},
		/** Sends `count` requests and returns how many were admitted. */
		admitted: async (count: number, request?: RequestFields): Promise<number> => {
			let admitted = 0;
			for (let i = 0; i < count; i++) if ((await send(request)).status === 200) admitted++;
			return admitted;
		},
	};
}

/** Returns those fields of the response that a rate limit may add. */
function fieldsOf(x: Exchange): { [name: string]: string } {
	const names = ['Retry-After', 'RateLimit-Policy', 'RateLimit'];
	return Object.fromEntries(
		names.flatMap(name => x.response.headers.getAll(name.toLowerCase()).map(value => [name, value])),
	);
}

const from = (remoteAddress: string): RequestFields => ({ connection: { remoteAddress } });

test('a key may use its burst at once, and regains one request per interval', async () => {
	const site = limitedSite([{ name: 'a', requests: 10, window: 1000 }]);
	assert.is(await site.admitted(15), 10);
	site.after(99);
	assert.is(await site.admitted(1), 0);
	site.after(1);
	assert.is(await site.admitted(2), 1);
	site.after(10_000);
	assert.is(await site.admitted(15), 10);
});

test('a smaller burst admits fewer requests at once, but as many in the long run', async () => {
	const site = limitedSite([{ name: 'a', requests: 10, window: 1000, burst: 2 }]);
	assert.is(await site.admitted(10), 2);
	let admitted = 0;
	for (let i = 0; i < 50; i++) {
		site.after(100);
		admitted += await site.admitted(3);
	}
	assert.is(admitted, 50);
});

test('clients have limits of their own; IPv6 clients with the same prefix share one', async () => {
	const site = limitedSite([{ name: 'a', requests: 1, window: 1000 }]);
	assert.is(await site.admitted(2, from('192.0.2.1')), 1);
	assert.is(await site.admitted(2, from('192.0.2.2')), 1);
	assert.is(await site.admitted(2, from('2001:db8:0:1::1')), 1);
	assert.is(await site.admitted(2, from('2001:db8:0:1:ffff::2')), 0);
	assert.is(await site.admitted(2, from('2001:db8:0:2::1')), 1);
	const wide = limitedSite([{ name: 'a', requests: 1, window: 1000, ipv6_prefix: 48 }]);
	assert.is(await wide.admitted(2, from('2001:db8:0:1::1')), 1);
	assert.is(await wide.admitted(2, from('2001:db8:0:2::1')), 0);
});

test('a key may be any text, and is not a template itself', async () => {
	const site = limitedSite([{ name: 'a', requests: 1, window: 1000, key: '{http.request.header.X-Key}' }]);
	const keyed = (key: string): RequestFields => ({ headers: [['X-Key', key]] });
	assert.is(await site.admitted(2, keyed('a')), 1);
	assert.is(await site.admitted(2, keyed('{http.request.host}')), 1);
	assert.is(await site.admitted(2, keyed('example.test')), 1);
	assert.is(await site.admitted(2), 1);
});

test('addresses that are allowed and requests that do not match are not counted', async () => {
	const site = limitedSite([
		{
			name: 'a',
			requests: 1,
			window: 1000,
			allow: ['192.0.2.0/24'],
			when: { type: 'method', methods: ['GET'] },
		},
	]);
	assert.is(await site.admitted(5, from('192.0.2.1')), 5);
	assert.is(await site.admitted(5, { method: 'POST' }), 5);
	assert.is(await site.admitted(5), 1);
});

test('a request may cost more than one, by a number or by a placeholder', async () => {
	const site = limitedSite([{ name: 'a', requests: 10, window: 1000, cost: '{http.request.header.X-Cost}' }]);
	const costing = (cost: string): RequestFields => ({ headers: [['X-Cost', cost]] });
	assert.is(await site.admitted(3, costing('4')), 2);
	assert.is(await site.admitted(3, costing('many')), 2);
	assert.is(await site.admitted(1, costing('-5')), 0);
});

test('a response may cost more by its status; requests that cost nothing are refused once that is used up', async () => {
	const site = limitedSite([{ name: 'a', requests: 4, window: 4000, cost: 0, status_cost: { 401: 1, '4xx': 100 } }], {
		handler: 'respond',
		status: 401,
		when: { type: 'path', patterns: ['/wrong'] },
	} as Step);
	const statuses: number[] = [];
	for (const target of ['/', '/', '/', '/', '/', '/', '/wrong', '/wrong', '/wrong', '/wrong', '/wrong', '/']) {
		statuses.push((await site.send({ target })).status);
	}
	assert.equal(statuses, [200, 200, 200, 200, 200, 200, 401, 401, 401, 401, 429, 429]);
	site.after(1000);
	assert.is((await site.send()).status, 200);
});

test('a charge by status does not exceed the burst', async () => {
	const site = limitedSite([{ name: 'a', requests: 4, window: 4000, status_cost: { 200: 1000 } }]);
	assert.is(await site.admitted(2), 1);
	site.after(1000);
	assert.is(await site.admitted(2), 1);
});

test('a request that is refused by one zone is not counted by the others', async () => {
	const site = limitedSite([
		{ name: 'all', requests: 10, window: 10_000, key: 'static' },
		{ name: 'each', requests: 2, window: 10_000 },
	]);
	assert.is(await site.admitted(20, from('192.0.2.1')), 2);
	assert.is(await site.admitted(20, from('192.0.2.2')), 2);
	let rest = 0;
	for (let i = 3; i < 20; i++) rest += await site.admitted(1, from(`192.0.2.${i}`));
	assert.is(rest, 6);
});

test('a request within the permitted delay waits for its turn, and counts', async () => {
	const site = limitedSite([{ name: 'a', requests: 1, window: 1000, delay: 2000 }]);
	assert.is(await site.admitted(5), 3);
	assert.equal(site.delays, [1000, 2000]);
	site.after(1000);
	const { status, logged } = await site.send();
	assert.is(status, 200);
	assert.is(logged, 'a: delayed');
	assert.equal(site.delays, [1000, 2000, 2000]);
});

test('a dry run lets everything pass, and logs what it would refuse', async () => {
	const site = limitedSite([{ name: 'a', requests: 1, window: 1000, dry_run: true }]);
	assert.is((await site.send()).logged, undefined);
	const { status, logged } = await site.send();
	assert.is(status, 200);
	assert.is(logged, 'a: would_refuse');
});

test('a refused request learns when to come again; the seconds are rounded up', async () => {
	const site = limitedSite([{ name: 'a', requests: 2, window: 60_000 }]);
	await site.admitted(2);
	site.after(500);
	const { status, fields, logged } = await site.send();
	assert.is(status, 429);
	assert.equal(fields, {
		'Retry-After': '30',
		'RateLimit-Policy': '"a";q=2;w=60',
		RateLimit: '"a";r=0;t=30',
	});
	assert.is(logged, 'a: refused');
});

test('responses announce the limit if they should', async () => {
	const always = limitedSite([{ name: 'a', requests: 3, window: 1500, announce: 'always' }]);
	const { fields } = await always.send();
	assert.equal(fields, { 'RateLimit-Policy': '"a";q=3;w=2', RateLimit: '"a";r=2;t=1' });
	const never = limitedSite([{ name: 'a', requests: 1, window: 1000, announce: 'never' }]);
	await never.send();
	assert.equal((await never.send()).fields, { 'Retry-After': '1' });
});

test('the remaining requests that a response announces are those that would be admitted', async () => {
	for (const requests of [3, 6, 7, 9, 11, 13, 17, 1999]) {
		const site = limitedSite([{ name: 'a', requests, window: 60_000, announce: 'always' }]);
		for (let remaining = requests - 1; remaining >= Math.max(0, requests - 12); remaining--)
			assert.match((await site.send()).fields.RateLimit!, `"a";r=${remaining};`, `${requests} requests per minute`);
	}
});

test('a request that costs nothing announces the whole limit', async () => {
	const site = limitedSite(
		[{ name: 'a', requests: 2, window: 60_000, cost: 0, status_cost: { 401: 1 }, announce: 'always' }],
		{ handler: 'respond', status: 401, when: { type: 'path', patterns: ['/wrong'] } } as Step,
	);
	const announced = async (target: string) => (await site.send({ target })).fields.RateLimit;
	assert.is(await announced('/'), '"a";r=2;t=0');
	await site.send({ target: '/wrong' });
	assert.is(await announced('/'), '"a";r=1;t=30');
	await site.send({ target: '/wrong' });
	assert.is(await announced('/'), '"a";r=0;t=30');
});

test('a zone does not take back a request that it let pass without counting it', async () => {
	const site = limitedSite([
		{ name: 'tried', requests: 4, window: 60_000, dry_run: true, cost: '{http.request.header.X-Cost}' },
		{ name: 'each', requests: 1, window: 600_000, key: '{http.request.header.X-Key}' },
	]);
	const send = async (key: string, cost: string) =>
		(
			await site.send({
				headers: [
					['X-Key', key],
					['X-Cost', cost],
				],
			})
		).logged;
	await send('a', '1');
	await send('b', '3');
	assert.is(await send('c', '1'), 'tried: would_refuse');
	assert.is(await send('c', '4'), 'each: refused');
	assert.is(await send('d', '1'), 'tried: would_refuse');
});

test('zones of the same name share their counts', async () => {
	const zone = { name: 'a', requests: 2, window: 1000 };
	const site = limitedSite([zone], { handler: 'rate_limit', zones: [zone] } as Step);
	assert.is(await site.admitted(3), 1);
});

test.run();
