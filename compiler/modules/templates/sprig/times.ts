/** sprig's functions for dates and durations. */
import { defineFunction, type FunctionList } from '../function.ts';
import type { TemplateRun } from '../run.ts';
import { parseTime } from '../time-layout.ts';
import { DurationValue, parseGoDuration, TimeValue, zoneByName } from '../time-value.ts';
import type { Value } from '../value.ts';
import { toInteger } from './casts.ts';

const NANOSECONDS_PER_SECOND = 1_000_000_000n;

const dateInZone = defineFunction('string any string', (run, layout: string, value: Value, zone: string) =>
	// An unknown zone is treated as UTC, as in sprig.
	formatInZone(run, layout, value, zoneByName(zone) ?? 'UTC'),
);
const dateModify = defineFunction('string any', (run, durationText: string, value: Value) => {
	const nanoseconds = parseGoDuration(durationText);
	const time = toTime(run, value);
	if (nanoseconds === undefined) return run.fail(`time: invalid duration "${durationText}"`);
	return new TimeValue(time.timeMs + Number(nanoseconds / 1_000_000n), time.zone);
});
const toDate = defineFunction('string string', (run, layout: string, text: string) => {
	run.budget.spendSteps((layout.length * text.length) >> 6);
	const parsedTime = parseTime(text, layout, 'Local');
	return parsedTime
		? new TimeValue(parsedTime.time, parsedTime.zone)
		: run.fail(`cannot read "${text}" as "${layout}"`);
});

export const TIME_FUNCTIONS: FunctionList = {
	now: defineFunction('', run => new TimeValue(run.deps.now(), 'Local')),
	date: defineFunction('string any', (run, layout: string, value: Value) => formatInZone(run, layout, value, 'Local')),
	dateInZone,
	date_in_zone: dateInZone,
	htmlDate: defineFunction('any', (run, value: Value) => formatInZone(run, '2006-01-02', value, 'Local')),
	htmlDateInZone: defineFunction('any string', (run, value: Value, zone: string) =>
		formatInZone(run, '2006-01-02', value, zoneByName(zone) ?? 'UTC'),
	),
	dateModify,
	date_modify: dateModify,
	mustDateModify: dateModify,
	must_date_modify: dateModify,
	toDate,
	mustToDate: toDate,
	unixEpoch: defineFunction('any', (run, value: Value) => String(Math.floor(toTime(run, value).timeMs / 1000))),
	ago: defineFunction('any', (run, value: Value) => {
		const seconds = Math.round((run.deps.now() - toTime(run, value).timeMs) / 1000);
		return new DurationValue(BigInt(seconds) * NANOSECONDS_PER_SECOND).text();
	}),
	duration: defineFunction('any', (_, value: Value) =>
		new DurationValue(toInteger(value) * NANOSECONDS_PER_SECOND).text(),
	),
	durationRound: defineFunction('any', (run, value: Value) => {
		if (value instanceof TimeValue) {
			return formatRoundedDuration(BigInt(Math.round(run.deps.now() - value.timeMs)) * 1_000_000n);
		}
		if (value instanceof DurationValue) return formatRoundedDuration(value.nanoseconds);
		if (typeof value === 'string') return formatRoundedDuration(parseGoDuration(value) ?? 0n);
		return formatRoundedDuration(toInteger(value));
	}),
};

function formatInZone(run: TemplateRun, layout: string, value: Value, zone: string): string {
	// One character of the layout may expand to as many as nine characters.
	run.budget.chargeText(layout.length * 9);
	run.budget.spendSteps(20);
	return new TimeValue(toTime(run, value).timeMs, zone).format(layout);
}

/**
 * Converts a value to a time. A number is interpreted as seconds since 1970. Any other value that is not a time becomes the
 * current time.
 */
function toTime(run: TemplateRun, value: Value): TimeValue {
	if (value instanceof TimeValue) return value;
	if (typeof value === 'bigint') return new TimeValue(Number(value) * 1000, 'Local');
	if (typeof value === 'number') return new TimeValue(value * 1000, 'Local');
	return new TimeValue(run.deps.now(), 'Local');
}

/** Formats a duration as a whole number of its largest unit: `2h`, `3d`, `1mo`, `5y`. */
function formatRoundedDuration(nanoseconds: bigint): string {
	const magnitude = nanoseconds < 0n ? -nanoseconds : nanoseconds;
	const hourNanoseconds = 3600n * NANOSECONDS_PER_SECOND;
	const units: readonly [bigint, string][] = [
		[hourNanoseconds * 24n * 365n, 'y'],
		[hourNanoseconds * 24n * 30n, 'mo'],
		[hourNanoseconds * 24n, 'd'],
		[hourNanoseconds, 'h'],
		[60n * NANOSECONDS_PER_SECOND, 'm'],
		[NANOSECONDS_PER_SECOND, 's'],
	];
	const unit = units.find(([length]) => magnitude > length);
	return unit ? `${magnitude / unit[0]}${unit[1]}` : '0s';
}
