/** The quick check accepts no document that the full schema check refuses. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { Ajv } from 'ajv';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { QuickChecks } from '../../../compiler/schema/quick-check.ts';
import { documentSchema } from '../../../compiler/schema/schema.ts';
import { withIds } from '../../../compiler/schema/with-ids.ts';
import { ROOT } from '../../harness.ts';
import { roundCount } from '../../round-count.ts';
import { Random } from '../syntax/random-text.ts';

/** Returns the CPU milliseconds that this process has used; the load of other processes does not matter. */
const cpuMilliseconds = (): number => process.cpuUsage().user / 1000;

const ajv = new Ajv({ discriminator: true, strict: false, validateSchema: false, meta: false });
ajv.addKeyword('secret');
ajv.addKeyword('startup');
const full = ajv.compile(withIds(documentSchema()));
const { rootCheck: quick } = new QuickChecks(documentSchema());

/** Returns documents that the adapter has made from fixtures. */
function adaptedDocuments(): unknown[] {
	const folder = path.join(ROOT, 'fixtures/adapt');
	return readdirSync(folder).flatMap(name => {
		try {
			return [JSON.parse(readFileSync(path.join(folder, name, 'expected.json'), 'utf8')) as unknown];
		} catch {
			return [];
		}
	});
}

const VALUES: readonly unknown[] = [
	...[null, true, false, 0, -1, 1.5, 70_000, '', 'x', '404', '4xx', 'off', [], ['x'], {}, { type: 'path' }],
	...[{ handler: 'respond' }, { handler: 'respnd' }, { type: 'not', of: { type: 'host', hosts: ['a'] } }],
];
const NAMES = [
	'handler',
	'type',
	'body',
	'status',
	'when',
	'of',
	'patterns',
	'addresses',
	'@id',
	'name',
	'x',
	'__proto__',
];

/** Changes one value somewhere in a document. */
function mutate(document: unknown, random: Random): void {
	let at = document as { [key: string]: unknown };
	for (;;) {
		const keys = Object.keys(at);
		const key = keys.length > 0 && random.below(8) > 0 ? random.of(keys) : random.of(NAMES);
		const next = Object.hasOwn(at, key) ? at[key] : undefined;
		if (typeof next === 'object' && next !== null && random.below(6) > 0) {
			at = next as { [key: string]: unknown };
			continue;
		}
		if (random.below(4) === 0) delete at[key];
		else
			Object.defineProperty(at, key, {
				value: structuredClone(random.of(VALUES)),
				enumerable: true,
				configurable: true,
				writable: true,
			});
		return;
	}
}

const checking = suite('quick check');

checking('the quick check accepts every document made by the adapter', () => {
	const found = adaptedDocuments();
	assert.ok(found.length > 20);
	for (const document of found) assert.ok(quick(document), JSON.stringify(document));
});
checking('the quick check accepts no invalid document', () => {
	const random = new Random(5);
	const found = adaptedDocuments().map(document => JSON.stringify(document));
	// Rounds are run until they have used a certain number of CPU milliseconds.
	const end = cpuMilliseconds() + roundCount({ few: 700, many: 10_000 });
	const counts = { valid: 0, invalid: 0, vouched: 0 };
	for (let round = 0; round < 1_000_000 && cpuMilliseconds() < end; round++) {
		const document = JSON.parse(random.of(found)) as unknown;
		for (let count = random.below(3); count >= 0; count--) mutate(document, random);
		const valid = full(document);
		const vouched = quick(document);
		counts[valid ? 'valid' : 'invalid']++;
		if (vouched) counts.vouched++;
		assert.ok(valid || !vouched, JSON.stringify(document));
	}
	assert.ok(counts.invalid > 300 && counts.valid > 150, JSON.stringify(counts));
	assert.ok(counts.vouched > counts.valid * 0.95, JSON.stringify(counts));
});

checking.run();
