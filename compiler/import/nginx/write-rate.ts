/** Translates nginx's `limit_rate` and `limit_rate_after` to a single `limit_rate`. */
import type { ConfigfileWriter } from './configfile-writer.ts';
import { hasVariable, sizeOf } from './nginx-values.ts';
import type { Scope } from './scope.ts';
import { Untranslatable } from './untranslatable.ts';
import { translateOrKeep } from './write-rewrites.ts';

/** The lowest rate that `limit_rate` accepts, in bytes per second. */
const MIN_BYTES_PER_SECOND = 1024;

export function writeResponseRate(scope: Scope, out: ConfigfileWriter): void {
	const rateDirective = scope.lastDirective('limit_rate');
	const afterDirective = scope.lastDirective('limit_rate_after');
	const isLimited = rateDirective !== undefined && !isZero(rateDirective.args[0]);
	if (rateDirective !== undefined && !isLimited) out.countTranslated(rateDirective);
	const isWritten =
		isLimited &&
		translateOrKeep(rateDirective, out, () => {
			const limitLine = `limit_rate ${translateRate(rateDirective.args[0] ?? '')}`;
			const unlimitedSize = afterDirective?.args[0];
			out.writeLine(
				unlimitedSize === undefined || isZero(unlimitedSize)
					? limitLine
					: `${limitLine} after ${translateSize(unlimitedSize)}`,
			);
		});
	if (afterDirective === undefined) return;
	if (isWritten) out.countTranslated(afterDirective);
	else if (rateDirective !== undefined) out.keepAsComment(afterDirective, 'no rate is limited');
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
