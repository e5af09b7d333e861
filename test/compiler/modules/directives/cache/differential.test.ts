/**
 * Compares our cache with the package `http-cache-semantics` on random responses: whether they are stored, their freshness
 * lifetime, and their age.
 */
import CachePolicy from 'http-cache-semantics';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { HeaderList } from '../../../../../compiler/exchange/header-list.ts';
import {
	currentAgeMs,
	type FreshnessRules,
	freshnessLifetime,
	initialAgeMs,
	responseDirectives,
} from '../../../../../compiler/modules/directives/cache/freshness.ts';
import { findStorageObjection } from '../../../../../compiler/modules/directives/cache/storable.ts';
import { createStoredHead } from '../../../../../compiler/modules/directives/cache/stored-head.ts';
import { fakeExchange } from '../../../fake-exchange.ts';

const ROUNDS = 4000;

/** Returns a random number generator with a fixed seed. */
function randomNumbers(seed: number): (below: number) => number {
	let state = seed;
	return below => {
		state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x297a2d39) | 0;
		return ((state ^ (state >>> 12)) >>> 0) % below;
	};
}

const DIRECTIVES: readonly string[] = [
	...['max-age=60', 'max-age=0', 's-maxage=30', 's-maxage=0', 'public', 'private', 'no-store', 'no-cache'],
	...['must-revalidate', 'proxy-revalidate', 'immutable', 'x=y', 'max-age=100'],
];
const STATUSES = [200, 203, 204, 206, 301, 302, 304, 307, 404, 410, 418, 500, 503];
const AGES = [0, 1, 10, 40, 99];
const RULES: FreshnessRules = {
	ttlMsByStatus: new Map(),
	heuristicFraction: 0.1,
	staleWhileRevalidateMs: 0,
	staleIfErrorMs: 0,
};

const judged = suite('comparison with http-cache-semantics');

judged('both agree on what is stored and for how long', () => {
	const random = randomNumbers(42);
	const pick = <T>(list: readonly T[]): T => list[random(list.length)]!;
	let kept = 0;
	for (let round = 0; round < ROUNDS; round++) {
		const now = Math.floor(Date.now() / 1000) * 1000;
		const date = (seconds: number): string => new Date(now + seconds * 1000).toUTCString();
		const headers: { [name: string]: string } = { date: date(0) };
		const control = [...new Set(Array.from({ length: random(4) }, () => pick(DIRECTIVES)))];
		// RFC 9111 §4.2.1 leaves open which value of a repeated directive applies, so our cache and the package may differ.
		const names = control.map(one => one.split('=')[0]);
		if (new Set(names).size !== names.length) continue;
		if (control.length > 0) headers['cache-control'] = control.join(', ');
		if (random(4) === 0) headers.expires = date(pick([-10, 0, 20, 500]));
		if (random(4) === 0) headers['last-modified'] = date(-pick([100, 5000]));
		if (random(3) === 0) headers.age = String(pick(AGES));
		if (random(8) === 0) headers.vary = pick(['*', 'Accept']);
		const authorized = random(4) === 0;
		const status = pick(STATUSES);
		// The package does not store responses with unknown statuses. RFC 9111 §3 requires this only with `must-understand`.
		const isUnknownStatus = status === 418;
		const description = `${status} ${JSON.stringify(headers)}${authorized ? ' authorized' : ''}`;

		const policy = new CachePolicy(
			{ url: '/', method: 'GET', headers: authorized ? { authorization: 'x' } : {} },
			{ status, headers },
			{ shared: true, cacheHeuristic: 0.1, immutableMinTimeToLive: 0 },
		);
		const list = new HeaderList(Object.entries(headers).flat());
		const x = fakeExchange({});
		x.response.status = status;
		x.response.headers = list;
		const said = responseDirectives(list);
		const lifetime = freshnessLifetime(status, list, said, RULES, now);
		const asked = { hasAuthorization: authorized, hasCookies: false, forbidsStoring: false };
		const objection = findStorageObjection(x, status, list, said.directives, lifetime, asked, true);

		// The package also stores partial responses and responses that are already stale. Our cache stores only what can be
		// reused.
		if (objection === undefined) {
			kept++;
			assert.ok(
				policy.storable() ||
					isUnknownStatus ||
					headers['cache-control']?.includes('max-age=0') ||
					lifetime.source === 'explicit',
				description,
			);
			const head = createStoredHead(
				x,
				'key',
				new HeaderList(),
				[],
				{ requestedAt: now, receivedAt: now, purgeEpoch: 0 },
				RULES,
			);
			assert.is(Math.round(currentAgeMs(head, now) / 1000), Math.round(policy.age()), `age of ${description}`);
			if (!head.noCache && head.lifetime > 0 && policy.maxAge() > 0) {
				assert.ok(
					Math.abs(head.lifetime / 1000 - policy.maxAge()) <= 1,
					`${head.lifetime} and ${policy.maxAge()} of ${description}`,
				);
			}
			if (!head.noCache && head.lifetime === 0) assert.is(policy.timeToLive(), 0, description);
		} else if (policy.storable() && policy.timeToLive() > 0) {
			// The package does not implement these checks.
			const isKnownDifference = ['vary', 'status', 'authorization'].includes(objection) || headers.vary === '*';
			assert.ok(isKnownDifference, `${objection}: ${description}`);
		}
	}
	assert.ok(kept > ROUNDS / 10, String(kept));
	assert.is(initialAgeMs(new HeaderList(['Age', '5']), 0, 3000), 8000);
});

judged.run();
