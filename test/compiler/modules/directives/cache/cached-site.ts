/** A cache in front of a scripted origin, without a network and with a fake clock. */

import { FakeCache } from '../../../../../compiler/dry-run/fake-cache.ts';
import type { Body } from '../../../../../compiler/exchange/body.ts';
import { isStream } from '../../../../../compiler/exchange/body.ts';
import type { Exchange } from '../../../../../compiler/exchange/exchange.ts';
import { HttpError } from '../../../../../compiler/exchange/http-error.ts';
import { type CacheRules, createCacheHandler } from '../../../../../compiler/modules/directives/cache/cache-handler.ts';
import { type FakeExchange, fakeExchange, type RequestFields } from '../../../fake-exchange.ts';

/** The origin's response to one request. */
export interface OriginAnswer {
	readonly status?: number;
	readonly headers?: readonly (readonly [name: string, value: string])[];
	readonly body?: Body;
	/** True to fail like a proxy whose upstream is unreachable. */
	readonly fails?: boolean;
	/** Milliseconds that the response takes on the fake clock. */
	readonly takes?: number;
}

/** A request that reached the origin. */
export interface OriginRequest {
	readonly method: string;
	readonly target: string;
	readonly headers: ReadonlyMap<string, string>;
}

/** The response that the client received. */
export interface ClientAnswer {
	readonly status: number;
	readonly body: string;
	readonly cache: string;
	field(name: string): string | undefined;
	readonly x: FakeExchange;
}

/** The time at which every test starts. */
export const START_TIME_MS: number = Date.parse('2026-01-31T12:00:00Z');

/** Returns the value of a `Date` field for a time that is `seconds` after the start of the test. */
export function dateAt(seconds: number): string {
	return new Date(START_TIME_MS + seconds * 1000).toUTCString();
}

export class CachedSite {
	readonly asked: OriginRequest[] = [];
	now = START_TIME_MS;
	#answers: (OriginAnswer | ((x: Exchange) => OriginAnswer))[] = [];
	readonly #handle: (x: Exchange) => void | Promise<void>;

	constructor(rules: Partial<CacheRules> = {}) {
		this.#handle = createCacheHandler({
			cache: new FakeCache(),
			clusterTier: undefined,
			maxBodyBytes: 1_000_000,
			stepPlace: ' /pipeline/0 ',
			renderKey: undefined,
			selectingFields: [],
			bypass: undefined,
			maxWaitMs: 10_000,
			obeysClients: true,
			addsStatus: true,
			readAheadTotal: { bytes: 0 },
			ttlMsByStatus: new Map(),
			heuristicFraction: 0,
			staleWhileRevalidateMs: 0,
			staleIfErrorMs: 0,
			stepNumber: 0,
			...rules,
			next: x => this.#answer(x),
		});
	}

	/** Sets the origin's next responses; the last one is repeated. */
	script(...answers: (OriginAnswer | ((x: Exchange) => OriginAnswer))[]): this {
		this.#answers = answers;
		return this;
	}

	/** Advances the fake clock. */
	wait(seconds: number): this {
		this.now += seconds * 1000;
		return this;
	}

	async get(target = '/', fields: RequestFields = {}): Promise<ClientAnswer> {
		const x = fakeExchange({ target, ...fields });
		x.siteName = 'example.test';
		x.now = () => this.now;
		x.response.headers.add('Server', 'svc');
		try {
			await this.#handle(x);
		} catch (error) {
			if (!(error instanceof HttpError)) throw error;
			x.response.status = error.status;
			x.response.body = null;
		}
		const { response } = x;
		const text = await bodyText(response.body);
		const field = (name: string): string | undefined => response.headers.getCombined(name.toLowerCase());
		return { status: response.status, body: text, cache: x.cacheStatus, field, x };
	}

	#answer(x: Exchange): void {
		const { request, response } = x;
		const target = request.query === undefined ? request.path : `${request.path}?${request.query}`;
		this.asked.push({
			method: request.method,
			target,
			headers: new Map([...request.headers].map(([name, value]) => [name.toLowerCase(), value])),
		});
		const next = this.#answers.length > 1 ? this.#answers.shift()! : this.#answers[0]!;
		const answer = typeof next === 'function' ? next(x) : next;
		this.now += answer.takes ?? 0;
		if (answer.fails) throw new HttpError(502, 'the origin is unreachable');
		response.status = answer.status ?? 200;
		response.headers.delete('server');
		const dated = answer.headers?.some(([name]) => name === 'Date');
		if (!dated) response.headers.add('Date', new Date(this.now).toUTCString());
		for (const [name, value] of answer.headers ?? []) response.headers.add(name, value);
		response.body = answer.body === undefined ? `answer ${this.asked.length}` : answer.body;
		x.answeredBy = 'proxy';
	}
}

async function bodyText(body: Body): Promise<string> {
	if (body === null) return '';
	if (typeof body === 'string') return body;
	if (!isStream(body)) return Buffer.from(body).toString();
	const pieces: Buffer[] = [];
	for (let piece = await body.pull(); piece !== null; piece = await body.pull()) pieces.push(Buffer.from(piece));
	return Buffer.concat(pieces).toString();
}
