/**
 * `share` and `split`: which branch each key gets, how even the shares are, and that keys keep their branches when percentages
 * grow.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { murmurHash2 } from '../../../../compiler/modules/matchers/murmur-hash2.ts';
import { DryRunServer } from '../../compatfile/page.ts';

const shares = suite('shares of keys');

const KEYS = Array.from({ length: 4000 }, (_, i) => `visitor-${i}`);

/** Returns the branch of each key, for a site with `X-Key` as the key. */
async function branchesOf(lines: string, keys: readonly string[] = KEYS): Promise<string[]> {
	const server = new DryRunServer(`:8080 {\nsplit {header.X-Key} {\n${lines}\n}\nrespond "after"\n}\n`, {
		format: 'configfile',
	});
	const found: string[] = [];
	for (const key of keys) found.push((await server.ask('http://a:8080/', { headers: [['X-Key', key]] })).body);
	return found;
}

function branch(percentage: string, name: string): string {
	return `${percentage} {\nrespond "${name}"\n}`;
}

shares('hashes are those of MurmurHash2 with seed 0', () => {
	// test/peers/nginx-split-clients.test.ts shows that nginx computes the same hashes.
	const knownHashes = {
		'': 0,
		a: 0x92685f5e,
		ab: 0x1aa14063,
		abc: 0x13577c9b,
		abcd: 0x26873021,
		'203.0.113.9': 0xcb4bb3c5,
	};
	for (const [text, hash] of Object.entries(knownHashes)) assert.is(murmurHash2(text), hash, text);
});

shares('each branch gets its percentage', async () => {
	const found = await branchesOf([branch('10%', 'a'), branch('25.5%', 'b'), branch('*', 'c')].join('\n'));
	for (const [name, part] of [
		['a', 0.1],
		['b', 0.255],
		['c', 0.645],
	] as const) {
		const count = found.filter(body => body === name).length;
		// The tolerance is five standard deviations. The keys are always the same, so the test cannot fail by chance.
		const tolerance = 5 * Math.sqrt(KEYS.length * part * (1 - part));
		assert.ok(Math.abs(count - KEYS.length * part) < tolerance, `${name}: ${count}`);
	}
});

shares('keys of a share that grows remain in it', async () => {
	const before = await branchesOf([branch('10%', 'canary'), branch('*', 'stable')].join('\n'));
	const after = await branchesOf([branch('20%', 'canary'), branch('*', 'stable')].join('\n'));
	assert.is(before.filter((body, i) => body === 'canary' && after[i] !== 'canary').length, 0);
	assert.ok(after.filter(body => body === 'canary').length > before.filter(body => body === 'canary').length);
});

shares('0% gets no key, 100% gets all but the empty one, and the rest continues without `*`', async () => {
	assert.equal([...new Set(await branchesOf(branch('0%', 'a')))], ['after']);
	assert.equal([...new Set(await branchesOf([branch('0%', 'a'), branch('100%', 'b')].join('\n')))], ['b']);
	assert.equal(await branchesOf(branch('100%', 'a'), ['']), ['after']);
});

shares('two splits by one key choose alike, and independently if a text is added to the key', async () => {
	const server = new DryRunServer(
		`:8080 {
	header X-A off
	header X-B off
	header X-C off
	when share 50% {header.X-Key} {
		header X-A on
	}
	when share 50% {header.X-Key} {
		header X-B on
	}
	when share 50% {header.X-Key}/c {
		header X-C on
	}
	respond ok
}
`,
		{ format: 'configfile' },
	);
	const counts = { alike: 0, independent: 0 };
	for (const key of KEYS) {
		const { header } = await server.ask('http://a:8080/', { headers: [['X-Key', key]] });
		if (header('X-A') === header('X-B')) counts.alike++;
		if (header('X-A') === header('X-C')) counts.independent++;
	}
	assert.is(counts.alike, KEYS.length);
	assert.ok(
		Math.abs(counts.independent - KEYS.length / 2) < 5 * Math.sqrt(KEYS.length / 4),
		String(counts.independent),
	);
});

shares.run();
