/**
 * A fake zone of `limit_concurrent` for dry runs. Only one request runs at a time, so the zone is never full unless the script of
 * the exchange declares it busy.
 */
import type { Exchange } from '../exchange/exchange.ts';
import type {
	ConcurrencyLimit,
	ConcurrencyLimiter,
	ConcurrencyPlace,
} from '../modules/directives/limit-concurrent/concurrency-limiter.ts';
import { FakeExchange } from './fake-exchange.ts';

const FREE_PLACE: ConcurrencyPlace = { leave: () => {} };

/**
 * A concurrency limiter that is full only if the script of the exchange declares its zone busy. A request that may wait until
 * another request ends then times out.
 */
export class FakeConcurrencyLimiter implements ConcurrencyLimiter {
	readonly #zone: string;

	constructor(zone: string) {
		this.#zone = zone;
	}

	enter(
		x: Exchange,
		_key: string,
		{ maxQueued }: ConcurrencyLimit,
	): ConcurrencyPlace | 'refused' | Promise<'timed_out'> {
		if (!(x instanceof FakeExchange) || !x.isBusy(this.#zone)) return FREE_PLACE;
		return maxQueued > 0 ? Promise.resolve('timed_out') : 'refused';
	}

	countOutcome(): void {}
}
