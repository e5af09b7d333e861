/** A metric family with one series and no labels. */
import type { PlainFamily } from './exposition.ts';

const NO_LABELS = {};

/** Returns a family with one value, which `read` returns at every scrape. */
export function plainFamily(name: string, help: string, type: 'counter' | 'gauge', read: () => number): PlainFamily {
	return { name, help, type, samples: () => [{ labels: NO_LABELS, value: read() }] };
}
