/** Times and durations as values in templates. */
import { defineFunction, type TemplateFunction } from './function.ts';
import { DAY_NAMES, dayOfYear, formatTime, MONTH_NAMES } from './time-layout.ts';
import { isZone, type Zone, zoneFacts } from './time-zone.ts';
import { Callable, type TemplateObject, type Value } from './value.ts';

/** The layout in which Go prints a time. */
const GO_TIME_LAYOUT = '2006-01-02 15:04:05.999999999 -0700 MST';

/** A duration, in nanoseconds. */
export class DurationValue implements TemplateObject {
	readonly typeName = 'time.Duration';
	readonly nanoseconds: bigint;

	constructor(nanoseconds: bigint) {
		this.nanoseconds = BigInt.asIntN(64, nanoseconds);
	}

	member(name: string): Value | undefined {
		switch (name) {
			case 'String':
				return objectMethod('String', '', () => this.text());
			case 'Nanoseconds':
				return objectMethod(name, '', () => this.nanoseconds);
			case 'Milliseconds':
				return objectMethod(name, '', () => this.nanoseconds / 1_000_000n);
			case 'Seconds':
				return objectMethod(name, '', () => Number(this.nanoseconds) / 1e9);
			case 'Minutes':
				return objectMethod(name, '', () => Number(this.nanoseconds) / 60e9);
			case 'Hours':
				return objectMethod(name, '', () => Number(this.nanoseconds) / 3600e9);
			default:
				return undefined;
		}
	}

	/** Formats the duration, such as `1h2m3.5s`, `1.5ms` or `0s`. */
	text(): string {
		const magnitude = this.nanoseconds < 0n ? -this.nanoseconds : this.nanoseconds;
		const sign = this.nanoseconds < 0n ? '-' : '';
		if (magnitude === 0n) return '0s';
		if (magnitude < 1000n) return `${sign}${magnitude}ns`;
		if (magnitude < 1_000_000n) return `${sign}${formatDecimal(magnitude, 1000n)}µs`;
		if (magnitude < 1_000_000_000n) return `${sign}${formatDecimal(magnitude, 1_000_000n)}ms`;
		const minutes = magnitude / 60_000_000_000n;
		const seconds = `${formatDecimal(magnitude % 60_000_000_000n, 1_000_000_000n)}s`;
		if (minutes === 0n) return sign + seconds;
		return minutes < 60n ? `${sign}${minutes}m${seconds}` : `${sign}${minutes / 60n}h${minutes % 60n}m${seconds}`;
	}

	isEmpty(): boolean {
		return this.nanoseconds === 0n;
	}
}

function formatDecimal(value: bigint, unit: bigint): string {
	const fraction = value % unit;
	if (fraction === 0n) return String(value / unit);
	return `${value / unit}.${fraction
		.toString()
		.padStart(unit.toString().length - 1, '0')
		.replace(/0+$/, '')}`;
}

const DURATION_UNITS: { readonly [unit: string]: number } = {
	...{ ns: 1, us: 1e3, µs: 1e3, μs: 1e3, ms: 1e6, s: 1e9, m: 60e9, h: 3600e9 },
};

/** Parses a duration such as `1h30m` or `-1.5s` to nanoseconds; undefined if the text is not a duration. */
export function parseGoDuration(text: string): bigint | undefined {
	if (!/^[+-]?(?:0|(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)$/.test(text)) return undefined;
	let totalNanoseconds = 0;
	for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)/g)) {
		totalNanoseconds += Number(amount) * DURATION_UNITS[unit!]!;
	}
	if (!Number.isSafeInteger(Math.round(totalNanoseconds / 1000))) return undefined;
	return BigInt(Math.round(totalNanoseconds)) * (text[0] === '-' ? -1n : 1n);
}

/** A time with milliseconds and a zone. */
export class TimeValue implements TemplateObject {
	readonly typeName = 'time.Time';
	/** Milliseconds since 1970. */
	readonly timeMs: number;
	readonly zone: Zone;

	constructor(timeMs: number, zone: Zone) {
		// JavaScript's Date cannot represent times outside this range. They are replaced by the beginning of 1970.
		this.timeMs = Number.isFinite(timeMs) && Math.abs(timeMs) <= 8.64e15 - 1e9 ? timeMs : 0;
		this.zone = zone;
	}

	format(layout: string): string {
		return formatTime(this.timeMs, layout, this.zone);
	}

	text(): string {
		return this.format(GO_TIME_LAYOUT);
	}

	isEmpty(): boolean {
		return this.timeMs === ZERO_TIME_MS;
	}

	member(name: string): Value | undefined {
		const method = TIME_METHODS[name as keyof typeof TIME_METHODS];
		if (!Object.hasOwn(TIME_METHODS, name) || !method) return undefined;
		return new Callable(name, method.parameters.slice(1), (run, args) => method.call(run, [this, ...args]));
	}
}

/** Go's zero time, the beginning of year 1, in milliseconds since 1970. */
const ZERO_TIME_MS = -62_135_596_800_000;

/** Returns a date whose UTC getters return the local time in the value's zone. */
function toLocalDate({ timeMs, zone }: TimeValue): Date {
	return new Date(timeMs + zoneFacts(zone, timeMs).offsetMinutes * 60_000);
}

const defineDateMethod = (read: (date: Date) => number): TemplateFunction =>
	defineFunction('any', (_, time: TimeValue) => BigInt(read(toLocalDate(time))));

const TIME_METHODS = {
	Format: defineFunction('any string', (run, time: TimeValue, layout: string) => {
		run.budget.chargeText(layout.length * 4);
		return time.format(layout);
	}),
	String: defineFunction('any', (_, time: TimeValue) => time.text()),
	Year: defineDateMethod(date => date.getUTCFullYear()),
	Month: defineFunction('any', (_, time: TimeValue) => MONTH_NAMES[toLocalDate(time).getUTCMonth()]!),
	Day: defineDateMethod(date => date.getUTCDate()),
	Hour: defineDateMethod(date => date.getUTCHours()),
	Minute: defineDateMethod(date => date.getUTCMinutes()),
	Second: defineDateMethod(date => date.getUTCSeconds()),
	Nanosecond: defineDateMethod(date => date.getUTCMilliseconds() * 1_000_000),
	YearDay: defineDateMethod(dayOfYear),
	Weekday: defineFunction('any', (_, time: TimeValue) => DAY_NAMES[toLocalDate(time).getUTCDay()]!),
	Unix: defineFunction('any', (_, time: TimeValue) => BigInt(Math.floor(time.timeMs / 1000))),
	UnixMilli: defineFunction('any', (_, time: TimeValue) => BigInt(Math.floor(time.timeMs))),
	UTC: defineFunction('any', (_, time: TimeValue) => new TimeValue(time.timeMs, 'UTC')),
	Local: defineFunction('any', (_, time: TimeValue) => new TimeValue(time.timeMs, 'Local')),
	IsZero: defineFunction('any', (_, time: TimeValue) => time.isEmpty()),
	Add: defineFunction('any any', (run, time: TimeValue, duration: Value) => {
		if (!(duration instanceof DurationValue)) return run.fail('Add takes a duration');
		return new TimeValue(time.timeMs + Number(duration.nanoseconds / 1_000_000n), time.zone);
	}),
	AddDate: defineFunction('any int int int', (_, time: TimeValue, years: bigint, months: bigint, days: bigint) => {
		const date = toLocalDate(time);
		const zoneOffsetMs = zoneFacts(time.zone, time.timeMs).offsetMinutes * 60_000;
		date.setUTCFullYear(
			date.getUTCFullYear() + Number(years),
			date.getUTCMonth() + Number(months),
			date.getUTCDate() + Number(days),
		);
		return new TimeValue(date.getTime() - zoneOffsetMs, time.zone);
	}),
	Sub: defineFunction('any any', (run, a: TimeValue, b: Value) =>
		b instanceof TimeValue
			? new DurationValue(BigInt(Math.round(a.timeMs - b.timeMs)) * 1_000_000n)
			: run.fail('Sub takes a time'),
	),
	Before: defineFunction('any any', (_, a: TimeValue, b: Value) => b instanceof TimeValue && a.timeMs < b.timeMs),
	After: defineFunction('any any', (_, a: TimeValue, b: Value) => b instanceof TimeValue && a.timeMs > b.timeMs),
	Equal: defineFunction('any any', (_, a: TimeValue, b: Value) => b instanceof TimeValue && a.timeMs === b.timeMs),
};

export function objectMethod(name: string, signature: string, body: (...args: never[]) => Value): Callable {
	const fn = defineFunction(signature, (_, ...args: never[]) => body(...args));
	return new Callable(name, fn.parameters, fn.call);
}

/** Returns the zone with a name, which may be `Local`; undefined for unknown names. */
export function zoneByName(name: string): Zone | undefined {
	if (name === '' || name === 'UTC') return 'UTC';
	return isZone(name) ? name : undefined;
}
