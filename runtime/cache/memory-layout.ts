/** How the shared memory of one response cache is divided. Everything is Int32 but the blocks of data at its end. */

/** Bytes of a block: bodies and heads are chains of them. */
export const BLOCK = 512;

/** Words at the beginning. */
export const WORD = {
	/** 0, or the thread that changes the store, from 1. */
	lock: 0,
	lockWaiters: 1,
	/** First of the free blocks, from 1, and the blocks that were never used, from this one on. */
	freeBlock: 2,
	freshBlock: 3,
	usedBlocks: 4,
	/** As of blocks. */
	freeEntry: 5,
	freshEntry: 6,
	entries: 7,
	smallHead: 8,
	smallTail: 9,
	mainHead: 10,
	mainTail: 11,
	/** Blocks of the entries in the small queue. */
	smallBlocks: 12,
	/** Entries that were removed while somebody read them, and still are being read. */
	zombies: 13,
	evictions: 14,
	purged: 15,
	seed: 16,
	/** Times that all was thrown away. */
	resets: 17,
	/** 1 from when a thread has died within a change until all is thrown away: nothing is found, taken or moved. */
	broken: 18,
	/** Counts purges. */
	purges: 19,
	/** Files in memory that bodies stand in, and blocks of which they take more than was given back for them. */
	files: 20,
	looseBlocks: 21,
} as const;

/** Words before the tables. */
const HEADER_WORDS = 64;

/** Words of an entry. References to entries and blocks are from 1; 0 is none. */
export const ENTRY = {
	hashA: 0,
	hashB: 1,
	chain: 2,
	/** Neighbours in its queue, nearer to its head and to its tail. */
	newer: 3,
	older: 4,
	state: 5,
	headBlock: 6,
	headLength: 7,
	bodyBlock: 8,
	bodyLast: 9,
	bodyLength: 10,
	blocks: 11,
	/** Times it was asked for of late, 0 to 3. */
	uses: 12,
	queue: 13,
	/** Thread that fills it, from 1. */
	owner: 14,
	/** Changes when the entry becomes another's. */
	serial: 15,
	urlHash: 16,
	urlChain: 17,
	/** Hash of the path in its one spelling, without host and query. */
	pathHash: 18,
	/** 1: it was purged while it was being filled. */
	doomed: 19,
	/** Descriptor and 1 of the file in memory that its body stands in, and whether memory was given back for that. */
	file: 20,
	given: 21,
	/** Blocks of the file for which no memory was given back. */
	loose: 22,
	/** Those who read the blocks of its body, where it is one that may get a file. */
	readers: 23,
	/** First of the words with a bit for each thread that reads it. */
	pins: 24,
} as const;

/** State of an entry that is nobody's. */
export const FREE = 0;
/** State of an entry that a thread is filling. */
export const FILLING = 1;
/** State of an entry that everybody finds. */
export const LIVE = 2;
/** State of an entry that was removed while somebody reads it. */
export const ZOMBIE = 3;

/** An entry that stands in no queue. */
export const NO_QUEUE = 0;
/** The queue of those that have just come. */
export const SMALL = 1;
/** The queue of those that were asked for again. */
export const MAIN = 2;

/** Fetches under way that other threads can wait for. */
export const FETCHES = 512;
/** Words of each: state, two hashes, owner, millisecond of its beginning. */
export const FETCH_WORDS = 5;

/** Keys that are known not to be worth waiting for. */
export const ALONE = 2048;
/** Words of each: hash, second until which. */
export const ALONE_WORDS = 2;

/** Places by hash of a URL, each with a count of invalidations. */
export const INVALIDATIONS = 4096;

/** Where what stands, in words from the beginning; `data` in bytes. */
export interface CacheLayout {
	readonly words: number;
	readonly bytes: number;
	readonly blocks: number;
	readonly entries: number;
	readonly entryWords: number;
	/** A power of two. */
	readonly buckets: number;
	readonly fetchesAt: number;
	readonly aloneAt: number;
	readonly invalidatedAt: number;
	/** Counts, a byte each, of what is on disk by hash; a power of two of them, or none. */
	readonly filterAt: number;
	readonly filterBytes: number;
	readonly bucketsAt: number;
	readonly versionsAt: number;
	readonly urlsAt: number;
	readonly ghostsAt: number;
	readonly entriesAt: number;
	readonly nextAt: number;
	readonly dataAt: number;
}

/** Divides `ceiling` bytes among at most `rows` threads and the main thread, which has the bit behind theirs; `disk` is how many bytes of a disk it stands before. */
export function cacheLayout(ceiling: number, rows: number, disk: number = 0): CacheLayout {
	const entryWords = ENTRY.pins + Math.ceil((rows + 1) / 32);
	const fixed = HEADER_WORDS + FETCHES * FETCH_WORDS + ALONE * ALONE_WORDS + INVALIDATIONS;
	// A response is some KiB: most counts are 0.
	const filterBytes = disk === 0 ? 0 : 2 ** Math.floor(Math.log2(Math.min(ceiling / 32, Math.max(4096, disk / 512))));
	// An entry has a block or two for its head and most often more for its body; four tables are as long as there are buckets.
	const bytesOfFourBlocks = 4 * (BLOCK + 4) + entryWords * 4 + 4 * 4;
	const entries = Math.max(16, Math.floor((ceiling - fixed * 4 - filterBytes) / bytesOfFourBlocks));
	const buckets = 2 ** Math.floor(Math.log2(entries));
	const fetchesAt = HEADER_WORDS;
	const aloneAt = fetchesAt + FETCHES * FETCH_WORDS;
	const invalidatedAt = aloneAt + ALONE * ALONE_WORDS;
	const filterAt = invalidatedAt + INVALIDATIONS;
	const bucketsAt = filterAt + filterBytes / 4;
	const versionsAt = bucketsAt + buckets;
	const urlsAt = versionsAt + buckets;
	const ghostsAt = urlsAt + buckets;
	const entriesAt = ghostsAt + buckets;
	const nextAt = entriesAt + entries * entryWords;
	const blocks = Math.max(16, Math.floor((ceiling - nextAt * 4) / (BLOCK + 4)));
	const dataAt = (nextAt + blocks) * 4;
	const bytes = dataAt + blocks * BLOCK;
	return {
		...{ words: Math.ceil(bytes / 4), bytes, blocks, entries, entryWords, buckets },
		...{
			fetchesAt,
			aloneAt,
			invalidatedAt,
			filterAt,
			filterBytes,
			bucketsAt,
			versionsAt,
			urlsAt,
			ghostsAt,
			entriesAt,
			nextAt,
			dataAt,
		},
	};
}
