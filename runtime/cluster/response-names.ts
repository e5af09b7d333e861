/** The names in Redis of the responses that the machines of a cluster share. */
import { createHmac, hkdfSync } from 'node:crypto';
import type { CachedHead, RequestedUrl } from '../../compiler/exchange/response-cache.ts';
import { urlText } from '../cache/key-hash.ts';
import type { RedisAccess } from './redis-access.ts';

/** Bytes of names in Redis that are derived from keys, URLs and variants. */
const NAME_BYTES = 16;

/** The names of the values in Redis that belong to one key of a cache. */
export interface KeyNames {
	readonly responses: string;
	readonly lease: string;
	readonly waiters: string;
	/** Name of the set that contains the keys of the requested URL. */
	readonly url: string;
}

/** Derives names from the keys, URLs and variants of a cluster's responses. */
export class ResponseNames {
	readonly #redis: Pick<RedisAccess, 'redisKey'>;
	readonly #secret: Buffer;

	/** @param key The cluster's key, in base64. */
	constructor(redis: Pick<RedisAccess, 'redisKey'>, key: string) {
		this.#redis = redis;
		this.#secret = Buffer.from(hkdfSync('sha256', Buffer.from(key, 'base64'), '', 'svc names of shared responses', 32));
	}

	/** Returns the names for a key of a cache, and for the URL whose request asks for it. */
	of(key: string, url: RequestedUrl): KeyNames {
		const responses = this.responsesOf(key);
		return { responses, lease: `${responses}:lease`, waiters: `${responses}:waiters`, url: this.urlKeyOf(url) };
	}

	/** Returns the name of the hash with the responses of a key. */
	responsesOf(key: string): string {
		return this.#redis.redisKey(`cache:${this.#derive(`key ${key}`)}`);
	}

	/** Returns the name of the set that contains the keys of a URL. */
	urlKeyOf({ host, path, query }: RequestedUrl): string {
		return this.#redis.redisKey(`cache:url:${this.#derive(`url ${urlText(host, path, query)}`)}`);
	}

	/** Returns the name of a response among those of its key. */
	variantOf({ selecting }: CachedHead): string {
		return this.#derive(`variant ${selecting.join('\n')}`);
	}

	/** Returns a name that reveals nothing about the text without the cluster's key, because URLs and fields may contain secrets. */
	#derive(text: string): string {
		return createHmac('sha256', this.#secret).update(text).digest().subarray(0, NAME_BYTES).toString('base64url');
	}
}
