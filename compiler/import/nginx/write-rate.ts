/** Writes `limit_rate` and `limit_rate_after`. */
import type { ConfigfileWriter } from './configfile-writer.ts';
import { hasVariable, sizeOf } from './nginx-values.ts';
import type { Scope } from './scope.ts';
import { Untranslatable } from './untranslatable.ts';
import { orKeep } from './write-rewrites.ts';

/** The lowest rate that `limit_rate` accepts, in bytes per second. */
const MIN_BYTES_PER_SECOND = 1024;

/** Writes the rate limit for the responses of a scope. */
export function writeResponseRate(scope: Scope, out: ConfigfileWriter): void {
	const rate = scope.last('limit_rate');
	const after = scope.last('limit_rate_after');
	const isLimited = rate !== undefined && !isZero(rate.args[0]);
	if (rate !== undefined && !isLimited) out.count(rate);
	const isWritten =
		isLimited &&
		orKeep(rate, out, () => {
			const line = `limit_rate ${translateRate(rate.args[0] ?? '')}`;
			const unlimitedSize = after?.args[0];
			out.line(
				unlimitedSize === undefined || isZero(unlimitedSize) ? line : `${line} after ${translateSize(unlimitedSize)}`,
			);
		});
	if (after === undefined) return;
	if (isWritten) out.count(after);
	else if (rate !== undefined) out.keep(after, 'no rate is limited');
}

function isZero(size: string | undefined): boolean {
	return /^0+[kmg]?$/i.test(size ?? '');
}

function translateRate(size: string): string {
	const rate = translateSize(size);
	if (/^\d+B$/.test(rate) && Number.parseInt(rate, 10) < MIN_BYTES_PER_SECOND) {
		throw new Untranslatable('a rate below 1 KiB per second has no counterpart');
	}
	return rate;
}

function translateSize(size: string): string {
	if (hasVariable(size)) {
		throw new Untranslatable('sizes in variables are written differently: compute the rate with `map`, as `100KiB`');
	}
	return sizeOf(size);
}
