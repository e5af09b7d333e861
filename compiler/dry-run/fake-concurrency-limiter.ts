/** A fake zone of `limit_concurrent` for dry runs. One request runs at a time, so that places are free unless the request says otherwise. */
import type { Exchange } from '../exchange/exchange.ts';
import type {
	ConcurrencyLimit,
	ConcurrencyLimiter,
	ConcurrencyPlace,
} from '../modules/directives/limit-concurrent/concurrency-limiter.ts';
import { FakeExchange } from './fake-exchange.ts';

const PLACE: ConcurrencyPlace = { leave: () => {} };

/** An exchange may say that all places of its key are taken. A request that may wait then waits in vain. */
export class FakeConcurrencyLimiter implements ConcurrencyLimiter {
	readonly #zone: string;

	constructor(zone: string) {
		this.#zone = zone;
	}

	enter(
		x: Exchange,
		_key: string,
		{ maxQueued: queue }: ConcurrencyLimit,
	): ConcurrencyPlace | 'refused' | Promise<'timed_out'> {
		if (!(x instanceof FakeExchange) || !x.isBusy(this.#zone)) return PLACE;
		return queue > 0 ? Promise.resolve('timed_out') : 'refused';
	}

	count(): void {}
}
