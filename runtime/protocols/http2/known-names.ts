/**
 * Finds frequent field names in bytes. Clients spell out names that are not in the static table in each request; converting such
 * a name to a string and looking up its kind takes longer than comparing its bytes with a known name.
 */
import { nameKind } from './field.ts';

/** A frequent name, with its kind: one of `FIELD_KIND`. */
export interface KnownName {
	readonly name: string;
	readonly kind: number;
}

/** Frequent names of request fields, in lowercase, of at least {@link MIN_NAME_BYTES}. */
export const FREQUENT_NAMES: readonly string[] = [
	...[':authority', ':method', ':path', ':protocol', ':scheme', 'accept', 'accept-encoding', 'accept-language'],
	...['access-control-request-headers', 'access-control-request-method', 'authorization', 'cache-control'],
	...['content-encoding', 'content-length', 'content-type', 'cookie', 'downlink', 'early-data', 'expect'],
	...['forwarded', 'from', 'host', 'if-match', 'if-modified-since', 'if-none-match', 'if-range', 'if-unmodified-since'],
	...['origin', 'pragma', 'priority', 'purpose', 'range', 'referer', 'save-data', 'sec-ch-prefers-color-scheme'],
	...['sec-ch-ua', 'sec-ch-ua-arch', 'sec-ch-ua-bitness', 'sec-ch-ua-full-version-list', 'sec-ch-ua-mobile'],
	...['sec-ch-ua-model', 'sec-ch-ua-platform', 'sec-ch-ua-platform-version', 'sec-fetch-dest', 'sec-fetch-mode'],
	...[
		'sec-fetch-site',
		'sec-fetch-user',
		'sec-gpc',
		'sec-purpose',
		'sec-websocket-extensions',
		'sec-websocket-protocol',
	],
	...['sec-websocket-version', 'traceparent', 'tracestate', 'trailer', 'upgrade-insecure-requests', 'user-agent'],
	...['x-api-key', 'x-correlation-id', 'x-csrf-token', 'x-forwarded-for', 'x-forwarded-host'],
	...['x-forwarded-proto', 'x-real-ip', 'x-request-id', 'x-requested-with', 'x-xsrf-token'],
];

const MIN_NAME_BYTES = 4;
/** Number of slots of the hash table, a power of two. */
const SLOT_COUNT = 512;

/** The names by their hashes, which differ. */
const SLOTS: readonly (KnownName | undefined)[] = buildSlots();

/** Returns the frequent name in `bytes[start, end)`, if it is one. */
export function knownName(bytes: Uint8Array, start: number, end: number): KnownName | undefined {
	const length = end - start;
	if (length < MIN_NAME_BYTES) return undefined;
	const found = SLOTS[slotOf(length, bytes[start + 2]!, bytes[end - 4]!, bytes[end - 1]!)];
	if (found === undefined) return undefined;
	const { name } = found;
	if (name.length !== length) return undefined;
	for (let i = 0; i < length; i++) if (name.charCodeAt(i) !== bytes[start + i]) return undefined;
	return found;
}

/** Returns the slot of a name with this length and these bytes: the third one, the fourth from the end, and the last one. */
function slotOf(length: number, third: number, fourthLast: number, last: number): number {
	return (length * 13 + third * 15 + fourthLast * 52 + last * 44) & (SLOT_COUNT - 1);
}

function buildSlots(): (KnownName | undefined)[] {
	const slots: (KnownName | undefined)[] = new Array(SLOT_COUNT).fill(undefined);
	for (const name of FREQUENT_NAMES) {
		const { length } = name;
		const slot = slotOf(length, name.charCodeAt(2), name.charCodeAt(length - 4), name.charCodeAt(length - 1));
		slots[slot] = { name, kind: nameKind(name) };
	}
	return slots;
}
