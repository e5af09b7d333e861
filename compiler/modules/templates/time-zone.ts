/** Computes the offsets and names of time zones. */

/** A time zone: `Local`, `UTC`, a name such as `Europe/Paris`, or a fixed offset such as `+02:00`. */
export type Zone = string;

/** A zone's offset in minutes east of UTC, and its short name, at a certain time. */
export interface ZoneFacts {
	readonly offsetMinutes: number;
	readonly name: string;
}

const FIXED_OFFSET = /^([+-])(\d{2}):?(\d{2})$/;

/** Reports whether a zone is known. */
export function isZone(zone: Zone): boolean {
	if (zone === 'Local' || zone === 'UTC' || FIXED_OFFSET.test(zone)) return true;
	try {
		return /^[A-Za-z]/.test(zone) && new Intl.DateTimeFormat('en-US', { timeZone: zone }) !== undefined;
	} catch {
		return false;
	}
}

/** Returns the offset and short name of a zone at a time in milliseconds since 1970. */
export function zoneFacts(zone: Zone, timeMs: number): ZoneFacts {
	if (zone === 'UTC') return { offsetMinutes: 0, name: 'UTC' };
	const fixedOffset = FIXED_OFFSET.exec(zone);
	if (fixedOffset) {
		const minutes = Number(fixedOffset[2]) * 60 + Number(fixedOffset[3]);
		return {
			offsetMinutes: fixedOffset[1] === '-' ? -minutes : minutes,
			name: offsetText(fixedOffset[1] === '-' ? -minutes : minutes, ''),
		};
	}
	if (zone === 'Local') {
		const offset = -new Date(timeMs).getTimezoneOffset();
		return { offsetMinutes: offset, name: offset === 0 ? 'UTC' : shortName(undefined, timeMs) };
	}
	const longName = zonePart(zone, timeMs, 'longOffset');
	const offset = /GMT([+-])(\d{2}):(\d{2})/.exec(longName);
	const minutes = offset ? (Number(offset[2]) * 60 + Number(offset[3])) * (offset[1] === '-' ? -1 : 1) : 0;
	return { offsetMinutes: minutes, name: shortName(zone, timeMs) };
}

function zonePart(zone: Zone | undefined, time: number, form: 'longOffset' | 'short', locale = 'en-US'): string {
	const format = new Intl.DateTimeFormat(locale, { ...(zone ? { timeZone: zone } : {}), timeZoneName: form });
	return format.formatToParts(time).find(({ type }) => type === 'timeZoneName')?.value ?? '';
}

/** English locales. Each has abbreviations, such as `CET`, for the time zones of its own region. */
const LOCALES = ['en-US', 'en-GB', 'en-AU', 'en-IN', 'en-ZA', 'en-NZ'];

/** Returns the short name of a zone, such as `CET`. A zone without one gets its offset, such as `+05`, as in Go. */
function shortName(zone: Zone | undefined, time: number): string {
	let name = '';
	for (const locale of LOCALES) {
		name = zonePart(zone, time, 'short', locale);
		if (!/^(?:GMT|UTC)[+-]/.test(name)) return name;
	}
	const offset = /([+-])(\d+)(?::(\d+))?$/.exec(name);
	return offset ? `${offset[1]}${offset[2]!.padStart(2, '0')}${offset[3] ?? ''}` : name;
}

/** Formats an offset in minutes: `+0200` or, with a separator, `+02:00`. */
export function offsetText(minutes: number, separator: string): string {
	const absoluteMinutes = Math.abs(minutes);
	const padTwo = (n: number) => String(n).padStart(2, '0');
	return `${minutes < 0 ? '-' : '+'}${padTwo(Math.floor(absoluteMinutes / 60))}${separator}${padTwo(absoluteMinutes % 60)}`;
}
