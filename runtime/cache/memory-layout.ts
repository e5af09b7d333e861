/** The layout of a response cache's shared memory. Everything is Int32, except for the data blocks at the end. */

/** Size of a block in bytes. Bodies and heads are chains of blocks. */
export const BLOCK_BYTES = 512;

/** Offsets of the Int32 words in the header at the start of the shared memory. */
export const HEADER_WORD = {
	/** The number, counted from 1, of the thread that is changing the store; 0 if there is none. */
	lock: 0,
	lockWaiters: 1,
	/** The first free block; 0 means none. Blocks are numbered from 1. Blocks above `freshBlock` have never been used. */
	freeBlock: 2,
	freshBlock: 3,
	usedBlocks: 4,
	/** The first free entry; 0 means none. Entries are numbered from 1. Entries above `freshEntry` have never been used. */
	freeEntry: 5,
	freshEntry: 6,
	/** Number of entries that all threads can find. */
	entries: 7,
	/** The newest and the oldest entry of the small queue and of the main queue. */
	smallHead: 8,
	smallTail: 9,
	mainHead: 10,
	mainTail: 11,
	/** Number of blocks of the entries in the small queue. */
	smallBlocks: 12,
	/** Number of removed entries that are still being read. */
	zombies: 13,
	evictions: 14,
	purged: 15,
	seed: 16,
	/** Number of resets of the store. */
	resets: 17,
	/** 1 from the time a thread dies while changing the store until the store is reset; nothing is found or stored in between. */
	broken: 18,
	/** Number of purges, which is part of the epoch of every URL. */
	purges: 19,
	/** Number of in-memory files that contain bodies. */
	files: 20,
	/** Number of blocks that still use memory although their contents are also in in-memory files. */
	looseBlocks: 21,
} as const;

/** Number of words before the tables. */
const HEADER_WORDS = 64;

/** Offsets of the words in an entry. Entries and blocks are numbered from 1; 0 means none. */
export const ENTRY_WORD = {
	hashA: 0,
	hashB: 1,
	/** The next entry in the bucket of the key's hash; in a free entry, the next free entry. */
	chain: 2,
	/** The adjacent entry, toward the head, in the entry's queue. */
	newer: 3,
	/** The adjacent entry, toward the tail, in the entry's queue. */
	older: 4,
	state: 5,
	headBlock: 6,
	headLength: 7,
	bodyBlock: 8,
	bodyLast: 9,
	bodyLength: 10,
	/** Number of blocks of the head and the body. */
	blocks: 11,
	/** Number of recent uses, at most 3. */
	uses: 12,
	queue: 13,
	/** The thread that fills the entry, counted from 1. */
	owner: 14,
	/** A number that changes when the entry is reused. */
	serial: 15,
	urlHash: 16,
	/** The next entry in the bucket of the URL's hash. */
	urlChain: 17,
	/** Hash of the normalized path, without host and query. */
	pathHash: 18,
	/** 1 if the entry was purged while being filled. */
	doomed: 19,
	/** Descriptor plus 1 of the in-memory file that contains the entry's body; 0 if there is none. */
	file: 20,
	/** 1 if the memory of the blocks has been returned to the system, because the body is in a file. */
	memoryReturned: 21,
	/** Number of blocks whose memory has not been returned although the body is in a file. */
	looseBlocks: 22,
	/** Number of readers of the body's blocks. It is counted only for bodies that may be moved to a file. */
	readers: 23,
	/** The first of the words that contain one bit for each thread that reads the entry. */
	pins: 24,
} as const;

/** State of an unused entry. */
export const ENTRY_FREE = 0;
/** State of an entry that a thread is filling. */
export const ENTRY_FILLING = 1;
/** State of an entry that all threads can find. */
export const ENTRY_LIVE = 2;
/** State of a removed entry that is still being read. */
export const ENTRY_ZOMBIE = 3;

/** Value of `queue` for an entry that is in no queue. */
export const NO_QUEUE = 0;
/** The queue of new entries. */
export const SMALL_QUEUE = 1;
/** The queue of entries that were requested again. */
export const MAIN_QUEUE = 2;

/** Maximum number of concurrent fetches for which requests on other threads can wait. */
export const MAX_FETCHES = 512;
/** Number of words that describe a fetch: state, two hashes, owner, start time in milliseconds. */
export const FETCH_WORDS = 5;

/** Maximum number of keys whose requests are not coalesced, because an earlier response was not shareable. */
export const UNCOALESCED_KEYS = 2048;
/** Number of words for each of these keys: its hash, and the second until which its requests are not coalesced. */
export const UNCOALESCED_KEY_WORDS = 2;

/** Number of invalidation counters, indexed by a URL's hash. */
export const INVALIDATION_COUNTERS = 4096;

/** The parts of the memory. Positions (`…At`) are in words, except for `dataAt`, which is in bytes. */
export interface CacheLayout {
	readonly words: number;
	readonly bytes: number;
	readonly blocks: number;
	readonly entries: number;
	readonly entryWords: number;
	/** Number of buckets, a power of two. */
	readonly buckets: number;
	readonly fetchesAt: number;
	readonly uncoalescedAt: number;
	readonly invalidatedAt: number;
	/** Byte-sized counters of responses on disk, by hash. Their number is a power of two, or 0. */
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

/**
 * Divides `maxBytes` into parts, for at most `maxThreads` worker threads and the main thread, whose pin bit follows those of the
 * worker threads. `diskBytes` is the maximum size of the disk tier; 0 if there is none.
 */
export function cacheLayout(maxBytes: number, maxThreads: number, diskBytes: number = 0): CacheLayout {
	const entryWords = ENTRY_WORD.pins + Math.ceil((maxThreads + 1) / 32);
	const fixedWords =
		HEADER_WORDS + MAX_FETCHES * FETCH_WORDS + UNCOALESCED_KEYS * UNCOALESCED_KEY_WORDS + INVALIDATION_COUNTERS;
	// There is a counter for every 512 to 1,024 bytes of disk. Responses are longer, so most counters are 0.
	const filterBytes =
		diskBytes === 0 ? 0 : 2 ** Math.floor(Math.log2(Math.min(maxBytes / 32, Math.max(4096, diskBytes / 512))));
	// Assumes one entry for every four blocks: one or two blocks for its head, and the others for its body. The last term is the
	// entry's share of four tables that have a word for each bucket.
	const bytesOfFourBlocks = 4 * (BLOCK_BYTES + 4) + entryWords * 4 + 4 * 4;
	const entries = Math.max(16, Math.floor((maxBytes - fixedWords * 4 - filterBytes) / bytesOfFourBlocks));
	const buckets = 2 ** Math.floor(Math.log2(entries));
	const fetchesAt = HEADER_WORDS;
	const uncoalescedAt = fetchesAt + MAX_FETCHES * FETCH_WORDS;
	const invalidatedAt = uncoalescedAt + UNCOALESCED_KEYS * UNCOALESCED_KEY_WORDS;
	const filterAt = invalidatedAt + INVALIDATION_COUNTERS;
	const bucketsAt = filterAt + filterBytes / 4;
	const versionsAt = bucketsAt + buckets;
	const urlsAt = versionsAt + buckets;
	const ghostsAt = urlsAt + buckets;
	const entriesAt = ghostsAt + buckets;
	const nextAt = entriesAt + entries * entryWords;
	const blocks = Math.max(16, Math.floor((maxBytes - nextAt * 4) / (BLOCK_BYTES + 4)));
	const dataAt = (nextAt + blocks) * 4;
	const bytes = dataAt + blocks * BLOCK_BYTES;
	return {
		...{ words: Math.ceil(bytes / 4), bytes, blocks, entries, entryWords, buckets },
		...{
			fetchesAt,
			uncoalescedAt,
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
