/** Load-balancing policies select only available upstreams. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type {
	BalancerView,
	BalanceSettings,
	UpstreamChoice,
} from '../../../../../compiler/modules/providers/balancers/balancer.ts';
import { balancers, compileBalance } from '../../../../../compiler/modules/providers/balancers/index.ts';
import { fakeClientExchange } from '../../../../runtime/upstreams/scripted-upstream.ts';

const choices = suite('balancers');

interface Facts {
	readonly active?: readonly number[];
	readonly latency?: readonly (number | undefined)[];
	readonly prefix?: string;
}

function view(available: readonly boolean[], { active, latency, prefix = 'up' }: Facts = {}): BalancerView {
	let turn = 0;
	return {
		size: available.length,
		isAvailable: index => available[index]!,
		requestsInFlight: index => active?.[index] ?? 0,
		addressOf: index => `${prefix}${index}${prefix.includes(':') ? '' : ':80'}`,
		latencyMs: index => latency?.[index],
		nextTurn: () => ++turn,
		random: bound => Math.floor(Math.random() * bound),
	};
}

function choice(settings: BalanceSettings): UpstreamChoice {
	return compileBalance(settings, {
		clientIp: x => x.request.headers.get('x-client') ?? '',
		trustsPeer: x => x.request.headers.has('x-trusted'),
	});
}

/** The settings that some policies require, by the policy's name. */
const REQUIRED_SETTINGS: { readonly [id: string]: object } = {
	weighted_round_robin: { weights: [1, 1, 1] },
	query: { key: 'k' },
	header: { field: 'X-Key' },
};

function spread(settings: BalanceSettings, of: BalancerView, times: number): number[] {
	const counts = new Array<number>(of.size).fill(0);
	const choose = choice(settings);
	for (let i = 0; i < times; i++) counts[choose(of, fakeClientExchange())]!++;
	return counts;
}

choices('no policy chooses an unavailable upstream', () => {
	for (const { id } of balancers) {
		const choose = choice({ policy: id, ...REQUIRED_SETTINGS[id] });
		const x = fakeClientExchange('GET', [['X-Key', 'a']]);
		assert.is(choose(view([]), x), -1, id);
		assert.is(choose(view([false]), x), -1, id);
		assert.is(choose(view([false, false]), x), -1, id);
		for (let i = 0; i < 20; i++) assert.is(choose(view([false, true, false]), x), 1, id);
	}
});

choices('random spreads evenly, also if an upstream is unavailable', () => {
	for (const count of spread({ policy: 'random' }, view([true, true, true]), 3000))
		assert.ok(count > 850 && count < 1150, `${count}`);
	const [a, b, c] = spread({ policy: 'random' }, view([true, false, true]), 3000);
	assert.is(b, 0);
	assert.ok(Math.abs(a! - c!) < 350);
});

choices('random_choose selects the least busy of the upstreams it draws', () => {
	const [a, b, c] = spread(
		{ policy: 'random_choose', choose: 2 },
		view([true, true, true], { active: [5, 0, 9] }),
		3000,
	);
	assert.is(c, 0);
	assert.ok(b! > 1800 && a! > 800, `${a} ${b}`);
	assert.equal(
		spread({ policy: 'random_choose', choose: 3 }, view([true, true, true], { active: [5, 1, 9] }), 10),
		[0, 10, 0],
	);
});

choices('round_robin starts with the second upstream and visits each in turn', () => {
	const of = view([true, true, true]);
	const choose = choice({ policy: 'round_robin' });
	assert.equal(
		Array.from({ length: 4 }, () => choose(of, fakeClientExchange())),
		[1, 2, 0, 1],
	);
});

choices('weighted_round_robin gives each upstream its share, spread over the cycle', () => {
	const weights = { policy: 'weighted_round_robin', weights: [5, 1, 1, 0] };
	const of = view([true, true, true, true]);
	assert.equal(spread(weights, of, 70), [50, 10, 10, 0]);
	const choose = choice(weights);
	let run = 0;
	for (let i = 0; i < 14; i++) {
		run = choose(of, fakeClientExchange()) === 0 ? run + 1 : 0;
		assert.ok(run <= 5);
	}
	const without = spread(weights, view([false, true, true, true]), 70);
	assert.equal([without[0], without[3]], [0, 0]);
	assert.throws(() => choice({ policy: 'weighted_round_robin', weights: [0, 0] }), RangeError);
	assert.is(spread({ policy: 'weighted_round_robin', weights: [999_999_999, 1] }, of, 4096)[1]! > 0, true);
});

choices('weighted_round_robin without spreading selects each in consecutive turns, like Caddy', () => {
	const turns = (weights: readonly number[], available: readonly boolean[], count: number) => {
		const of = view(available);
		const choose = choice({ policy: 'weighted_round_robin', weights, spread: false });
		return Array.from({ length: count }, () => choose(of, fakeClientExchange())).join('');
	};
	assert.is(turns([5, 1, 1], [true, true, true], 14), '00001200000120');
	assert.is(turns([1, 0, 2, 0, 3], [true, true, true, true, true], 12), '224440224440');
	assert.is(turns([9], [true, true], 3), '000');
	assert.is(turns([5, 1, 1], [false, true, true], 7), '1111211');
	assert.is(turns([1, 1], [true, true, true], 4), '1010');
	assert.is(turns([1, 1], [false, false], 1), '-1');
	assert.throws(() => turns([0, 0], [true, true], 1), RangeError);
});

choices('least_conn selects the least busy upstream, at random among equals', () => {
	const settings = { policy: 'least_conn' };
	assert.equal(spread(settings, view([true, true, true], { active: [2, 1, 3] }), 10), [0, 10, 0]);
	assert.equal(spread(settings, view([true, false, true], { active: [2, 0, 3] }), 10), [10, 0, 0]);
	const [a, b] = spread(settings, view([true, true, true], { active: [1, 1, 2] }), 1000);
	assert.ok(a! > 380 && b! > 380);
});

choices('first selects the first available upstream', () => {
	assert.equal(spread({ policy: 'first' }, view([false, true, true]), 5), [0, 5, 0]);
});

choices('peak_ewma avoids slow and busy upstreams and tries unknown ones', () => {
	const all = [true, true, true];
	const slow = spread({ policy: 'peak_ewma' }, view(all, { latency: [2000, 5, 5] }), 1000);
	assert.is(slow[0], 0);
	assert.is(spread({ policy: 'peak_ewma' }, view(all, { latency: [5, 5, 5], active: [9, 0, 0] }), 1000)[0], 0);
	const unknown = spread({ policy: 'peak_ewma' }, view(all, { latency: [undefined, 5, 5] }), 1000);
	assert.ok(unknown[0]! > 500, `${unknown}`);
	assert.is(spread({ policy: 'peak_ewma' }, view(all, { latency: [undefined, 5, 5], active: [1, 0, 0] }), 1000)[0], 0);
});

choices('hashing keeps a key on its upstream, spreads keys, and moves few when an upstream leaves', () => {
	const choose = choice({ policy: 'header', field: 'x-key' });
	const all = new Array<boolean>(10).fill(true);
	const of = (key: string, available: readonly boolean[]) =>
		choose(view(available, { prefix: '10.0.0.' }), fakeClientExchange('GET', [['X-Key', key]]));
	const keys = Array.from({ length: 5000 }, (_, i) => `client-${i}`);
	const before = keys.map(key => of(key, all));
	assert.equal(
		keys.map(key => of(key, all)),
		before,
	);
	for (let i = 0; i < 10; i++) {
		const share = before.filter(index => index === i).length;
		assert.ok(share > 350 && share < 650, `${i}: ${share}`);
	}
	const without3 = all.map((_, i) => i !== 3);
	keys.forEach((key, i) => {
		if (before[i] !== 3) assert.is(of(key, without3), before[i]);
		else assert.is.not(of(key, without3), 3);
	});
});

/**
 * Upstreams that Caddy (2.11.7) chooses for the keys below, among 127.0.0.1:28100 and the following ports. Each
 * digit is the index of an upstream.
 */
const REFERENCE_CHOICES: { readonly [upstreams: number]: string } = {
	2: '0011010000011101010100110010101000000100100001000111101101110011010111101111001110000000001100011011',
	3: '0222010000021101210100210010201200022100100221020111101122110012212111201211202110200200001200012012',
	4: '0322010303031131210100210033203203022100130221020111303132110032212111231233203130200230033230013012',
	5: '0322010443431141210100240034203403022100134221020114303142110434414144231233204134204440034240013042',
	7: '0322010443636141610100240036203503522555634255020154363142110636514144261233504164604460056260015642',
	10: '0372717443937841810190240736208783522575684259728157363142110636714189261283504168604490096260085649',
};

choices('hashing selects the same upstreams as Caddy', () => {
	const choose = choice({ policy: 'header', field: 'X-Key' });
	for (const [upstreams, chosen] of Object.entries(REFERENCE_CHOICES)) {
		const of = view(new Array<boolean>(Number(upstreams)).fill(true), { prefix: '127.0.0.1:2810' });
		const ours = Array.from(chosen, (_, i) =>
			choose(of, fakeClientExchange('GET', [['X-Key', `key-${i}${'-more'.repeat(i % 9)}`]])),
		);
		assert.is(ours.join(''), chosen, upstreams);
	}
});

choices('keys of any length and bytes are hashed, and decoded text as UTF-8', () => {
	const of = view([true, true, true, true, true]);
	const byHeader = choice({ policy: 'header', field: 'X-Key' });
	const byQuery = choice({ policy: 'query', key: 'k' });
	const x = fakeClientExchange();
	for (const text of ['ä€𝄞', 'x'.repeat(9000), 'é'.repeat(3000)]) {
		x.request.query = `k=${encodeURIComponent(text)}`;
		const bytes = Buffer.from(text, 'utf8').toString('latin1');
		assert.is(byQuery(of, x), byHeader(of, fakeClientExchange('GET', [['X-Key', bytes]])), text.slice(0, 5));
	}
});

choices("a hash of X-Forwarded-For uses the forwarded value, not an untrusted client's", () => {
	const choose = choice({ policy: 'header', field: 'X-Forwarded-For', fallback: { policy: 'first' } });
	const byKey = choice({ policy: 'header', field: 'X-Key' });
	const of = view(new Array<boolean>(20).fill(true));
	const peer = fakeClientExchange().connection.remoteAddress;
	const expected = (key: string) => byKey(of, fakeClientExchange('GET', [['X-Key', key]]));
	assert.is(choose(of, fakeClientExchange()), expected(peer));
	assert.is(choose(of, fakeClientExchange('GET', [['X-Forwarded-For', '1.2.3.4']])), expected(peer));
	const trusted: [string, string][] = [
		['X-Forwarded-For', '1.2.3.4'],
		['X-Trusted', 'yes'],
	];
	assert.is(choose(of, fakeClientExchange('GET', trusted)), expected(`1.2.3.4, ${peer}`));
});

choices('each hash policy has its key, and a fallback for requests without it', () => {
	const of = view([true, true, true, true]);
	const same = (settings: BalanceSettings, ...requests: Parameters<typeof fakeClientExchange>[]) => {
		const choose = choice(settings);
		return new Set(requests.map(request => choose(of, fakeClientExchange(...request)))).size === 1;
	};
	assert.ok(same({ policy: 'ip_hash' }, ['GET'], ['POST'], ['GET', [['X-Client', 'a']]]));
	assert.ok(same({ policy: 'client_ip_hash' }, ['GET', [['X-Client', 'a']]], ['POST', [['X-Client', 'a']]]));
	assert.ok(same({ policy: 'uri_hash' }, ['GET'], ['POST']));
	const choose = choice({ policy: 'query', key: 'k', fallback: { policy: 'first' } });
	const x = fakeClientExchange();
	assert.is(choose(of, x), 0);
	const chosen = new Set<number>();
	for (let i = 0; i < 50; i++) {
		x.request.query = `a=1&k=${i}`;
		chosen.add(choose(of, x));
		x.request.query = `%6b=${i}&b=2`;
		chosen.add(choose(of, x));
	}
	assert.is(chosen.size, 4);
	for (const without of ['%zz=%', 'k=', 'k', 'k=%zz']) {
		x.request.query = without;
		assert.is(choose(of, x), 0, without);
	}
	assert.is(
		choice({ policy: 'header', field: 'Host', fallback: { policy: 'first' } })(of, fakeClientExchange()) >= 0,
		true,
	);
});

choices('a cookie keeps its client; it is signed, and secure behind TLS', () => {
	const settings = {
		policy: 'cookie',
		name: 'sticky',
		secret: 's3cret',
		max_age: 3_600_000,
		fallback: { policy: 'first' },
	};
	const choose = choice(settings);
	const of = view([false, true, true]);
	const x = fakeClientExchange();
	assert.is(choose(of, x), 1);
	const set = x.response.headers.get('set-cookie')!;
	assert.match(set, /^sticky=[0-9a-f]{64}; Path=\/; Max-Age=3600; HttpOnly; SameSite=Lax$/);
	const cookie = set.slice(0, set.indexOf(';'));
	const back = fakeClientExchange('GET', [['Cookie', `a=b; ${cookie}`]]);
	assert.is(choose(view([true, true, true]), back), 1);
	assert.is(back.response.headers.get('set-cookie'), undefined);
	// The cookie's upstream is down, so another upstream is chosen and gets a new cookie. Two attempts set only one cookie.
	const clientWithCookie = fakeClientExchange('GET', [['Cookie', cookie]]);
	assert.is(choose(view([false, false, true]), clientWithCookie), 2);
	assert.is(choose(view([true, false, false]), clientWithCookie), 0);
	assert.is(clientWithCookie.response.headers.getAll('set-cookie').length, 1);
	// A cookie signed with another secret, or forged, is ignored.
	assert.is(choice({ ...settings, secret: 'other' })(view([true, true, true]), back), 0);
	assert.is(choose(view([true, true, true]), fakeClientExchange('GET', [['Cookie', 'sticky=up1:80']])), 0);
	const secure = fakeClientExchange('GET', [
		['X-Forwarded-Proto', 'https'],
		['X-Trusted', '1'],
	]);
	choose(of, secure);
	assert.match(secure.response.headers.get('set-cookie')!, /; HttpOnly; Secure; SameSite=None$/);
	const untrusted = fakeClientExchange('GET', [['X-Forwarded-Proto', 'https']]);
	choose(of, untrusted);
	assert.match(untrusted.response.headers.get('set-cookie')!, /; SameSite=Lax$/);
});

choices.run();
