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
	const fixedMatch = FIXED_OFFSET.exec(zone);
	if (fixedMatch) {
		const minutes = Number(fixedMatch[2]) * 60 + Number(fixedMatch[3]);
		return {
			offsetMinutes: fixedMatch[1] === '-' ? -minutes : minutes,
			name: formatUtcOffset(fixedMatch[1] === '-' ? -minutes : minutes, ''),
		};
	}
	if (zone === 'Local') {
		const offsetMinutes = -new Date(timeMs).getTimezoneOffset();
		return { offsetMinutes, name: offsetMinutes === 0 ? 'UTC' : shortZoneName(undefined, timeMs) };
	}
	const longName = formatZoneName(zone, timeMs, 'longOffset');
	const offsetMatch = /GMT([+-])(\d{2}):(\d{2})/.exec(longName);
	const minutes = offsetMatch
		? (Number(offsetMatch[2]) * 60 + Number(offsetMatch[3])) * (offsetMatch[1] === '-' ? -1 : 1)
		: 0;
	return { offsetMinutes: minutes, name: shortZoneName(zone, timeMs) };
}

function formatZoneName(
	zone: Zone | undefined,
	timeMs: number,
	form: 'longOffset' | 'short',
	locale = 'en-US',
): string {
	const formatter = new Intl.DateTimeFormat(locale, { ...(zone ? { timeZone: zone } : {}), timeZoneName: form });
	return formatter.formatToParts(timeMs).find(({ type }) => type === 'timeZoneName')?.value ?? '';
}

/** English locales. Each has abbreviations, such as `CET`, for the time zones of its own region. */
const ENGLISH_LOCALES = ['en-US', 'en-GB', 'en-AU', 'en-IN', 'en-ZA', 'en-NZ'];

/** Returns the short name of a zone, such as `CET`. A zone without one gets its offset, such as `+05`, as in Go. */
function shortZoneName(zone: Zone | undefined, timeMs: number): string {
	let name = '';
	for (const locale of ENGLISH_LOCALES) {
		name = formatZoneName(zone, timeMs, 'short', locale);
		if (!/^(?:GMT|UTC)[+-]/.test(name)) return name;
	}
	const offsetMatch = /([+-])(\d+)(?::(\d+))?$/.exec(name);
	return offsetMatch ? `${offsetMatch[1]}${offsetMatch[2]!.padStart(2, '0')}${offsetMatch[3] ?? ''}` : name;
}

/** Formats an offset in minutes: `+0200` or, with a separator, `+02:00`. */
export function formatUtcOffset(minutes: number, separator: string): string {
	const absoluteMinutes = Math.abs(minutes);
	const padTwo = (n: number) => String(n).padStart(2, '0');
	return `${minutes < 0 ? '-' : '+'}${padTwo(Math.floor(absoluteMinutes / 60))}${separator}${padTwo(absoluteMinutes % 60)}`;
}
