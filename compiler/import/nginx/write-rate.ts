/** Writes `limit_rate` and `limit_rate_after`. */
import type { ConfigfileWriter } from './configfile-writer.ts';
import { hasVariable, sizeOf } from './nginx-values.ts';
import type { Scope } from './scope.ts';
import { Untranslatable } from './untranslatable.ts';
import { orKeep } from './write-rewrites.ts';

/** The lowest rate that `limit_rate` accepts, in bytes per second. */
const MIN_RATE = 1024;

/** Writes the rate at which responses are sent in a scope. */
export function writeResponseRate(scope: Scope, out: ConfigfileWriter): void {
	const rate = scope.last('limit_rate');
	const after = scope.last('limit_rate_after');
	const isLimited = rate !== undefined && !isZero(rate.args[0]);
	if (rate !== undefined && !isLimited) out.count(rate);
	const isWritten =
		isLimited &&
		orKeep(rate, out, () => {
			const line = `limit_rate ${rateOf(rate.args[0] ?? '')}`;
			const free = after?.args[0];
			out.line(free === undefined || isZero(free) ? line : `${line} after ${constantSize(free)}`);
		});
	if (after === undefined) return;
	if (isWritten) out.count(after);
	else if (rate !== undefined) out.keep(after, 'no rate is limited');
}

function isZero(size: string | undefined): boolean {
	return /^0+[kmg]?$/i.test(size ?? '');
}

function rateOf(size: string): string {
	const rate = constantSize(size);
	if (/^\d+B$/.test(rate) && Number.parseInt(rate, 10) < MIN_RATE) {
		throw new Untranslatable('a rate below 1 KiB per second has no counterpart');
	}
	return rate;
}

function constantSize(size: string): string {
	if (hasVariable(size)) {
		throw new Untranslatable('sizes in variables are written differently: compute the rate with `map`, as `100KiB`');
	}
	return sizeOf(size);
}
