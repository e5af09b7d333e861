/** Counters of served files and content encodings. They are slots of the counter row (see counter-row.ts). */
import type { CodingName } from '../../compiler/exchange/leases.ts';
import type { PlainFamily } from './exposition.ts';
import { plainFamily } from './plain-family.ts';
import type { ThreadTotals } from './thread-totals.ts';

/** Slots of the counters about files. */
export const FILE_SLOT = {
	/** Counters: files served from memory, files served from a cached descriptor, and files opened for the request. */
	memory: 128,
	held: 129,
	disk: 130,
	/** Gauge: number of bytes of files cached in memory. */
	keptBytes: 131,
	/** Gauge: number of cached descriptors. */
	heldOpen: 132,
} as const;

/** Slots of the counters about content encodings. */
export const ENCODING_SLOT = {
	/** Counter: responses whose encoded form was taken from the cache. */
	kept: 133,
	/** Counter: responses not encoded because too many were being encoded. */
	skipped: 134,
} as const;

/** First slot of each content coding. Each has three slots: responses, bytes before encoding, and bytes after encoding. */
const FIRST_CODING_SLOTS: { readonly [coding in CodingName]: number } = { gzip: 135, br: 138, zstd: 141 };
const CODINGS = Object.keys(FIRST_CODING_SLOTS) as CodingName[];

/** The first slot after the counters of this file. */
export const FILE_SLOTS_END = 144;

/**
 * Counts an encoded response. If the response was cut short, `bytesIn` and `bytesOut` count only the bytes processed until then.
 */
export function countEncodedResponse(row: Float64Array, coding: CodingName, bytesIn: number, bytesOut: number): void {
	const firstSlot = FIRST_CODING_SLOTS[coding];
	row[firstSlot]!++;
	row[firstSlot + 1]! += bytesIn;
	row[firstSlot + 2]! += bytesOut;
}

/** Returns the metric families of the counters in this file, summed over all threads. */
export function fileFamilies(totals: ThreadTotals): PlainFamily[] {
	const codingFamily = (name: string, help: string, offset: number): PlainFamily => ({
		name,
		help,
		type: 'counter',
		samples: () =>
			CODINGS.map(encoding => ({
				labels: { encoding },
				value: totals.slotTotal(FIRST_CODING_SLOTS[encoding] + offset),
			})),
	});
	return [
		{
			name: 'svc_files_total',
			help: 'Files that were served or read, by source.',
			type: 'counter',
			samples: () =>
				(['memory', 'held', 'disk'] as const).map(from => ({
					labels: { from },
					value: totals.slotTotal(FILE_SLOT[from]),
				})),
		},
		plainFamily('svc_files_kept_bytes', 'Bytes of files cached in memory.', 'gauge', () =>
			totals.slotTotal(FILE_SLOT.keptBytes),
		),
		plainFamily('svc_files_held_open', 'Files kept open for further requests.', 'gauge', () =>
			totals.slotTotal(FILE_SLOT.heldOpen),
		),
		codingFamily('svc_encode_responses_total', 'Responses that were encoded.', 0),
		codingFamily('svc_encode_bytes_in_total', 'Bytes of encoded responses before encoding.', 1),
		codingFamily('svc_encode_bytes_out_total', 'Bytes of encoded responses after encoding.', 2),
		plainFamily('svc_encode_kept_total', 'Responses whose encoded form was cached.', 'counter', () =>
			totals.slotTotal(ENCODING_SLOT.kept),
		),
		plainFamily(
			'svc_encode_skipped_total',
			'Responses that were sent unencoded because too many were being encoded.',
			'counter',
			() => totals.slotTotal(ENCODING_SLOT.skipped),
		),
	];
}
