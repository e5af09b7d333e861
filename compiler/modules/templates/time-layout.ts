/**
 * Formats and parses times by Go layouts, which show how the reference time `Mon Jan 2 15:04:05 MST 2006` would be written.
 */
import { formatUtcOffset, isZone, type Zone, zoneFacts } from './time-zone.ts';

export const MONTH_NAMES: readonly string[] = [
	...['January', 'February', 'March', 'April', 'May', 'June', 'July'],
	...['August', 'September', 'October', 'November', 'December'],
];
/** Names of the days of the week, starting with Sunday. */
export const DAY_NAMES: readonly string[] = [
	'Sunday',
	'Monday',
	'Tuesday',
	'Wednesday',
	'Thursday',
	'Friday',
	'Saturday',
];

const LAYOUT_ELEMENT =
	/January|Jan(?![a-z])|Monday|Mon(?![a-z])|MST|002|01|02|03|04|05|06|__2|_2(?!006)|2006|2|15|1|3|4|5|PM|pm|-07:00|-0700|-07|Z07:00|Z0700|Z07|[.,](?:0+|9+)(?!\d)/g;

function padNumber(value: number, length: number, fill = '0'): string {
	return String(value).padStart(length, fill);
}

/** Returns a regular expression, as a string, that matches what {@link formatTime} writes for a layout. */
export function timePattern(layout: string): string {
	let pattern = '';
	let literalStart = 0;
	for (const match of layout.matchAll(LAYOUT_ELEMENT)) {
		pattern += RegExp.escape(layout.slice(literalStart, match.index)) + elementPattern(match[0]);
		literalStart = match.index + match[0].length;
	}
	return pattern + RegExp.escape(layout.slice(literalStart));
}

function elementPattern(element: string): string {
	if (element === 'MST') return '[A-Za-z0-9+:-]+';
	if (/^(?:Z|-0)/.test(element)) return '(?:Z|[+-][0-9:]+)';
	if (/^[A-Za-z]/.test(element)) return '[A-Za-z]+';
	if (/^[.,]/.test(element)) return `(?:[.,][0-9]{1,${element.length - 1}})?`;
	if (element.startsWith('_')) return `[ 0-9]{${element.length}}`;
	return element.length === 1 || element === '15' ? '[0-9]{1,2}' : `[0-9]{${element.length}}`;
}

/** Formats a time in milliseconds since 1970 by a layout. */
export function formatTime(timeMs: number, layout: string, zone: Zone): string {
	const { offsetMinutes, name: zoneName } = zoneFacts(zone, timeMs);
	const date = new Date(timeMs + offsetMinutes * 60_000);
	const hour = date.getUTCHours();
	const year = date.getUTCFullYear();
	const month = MONTH_NAMES[date.getUTCMonth()]!;
	const weekday = DAY_NAMES[date.getUTCDay()]!;
	return layout.replace(LAYOUT_ELEMENT, element => {
		switch (element) {
			case 'January':
				return month;
			case 'Jan':
				return month.slice(0, 3);
			case 'Monday':
				return weekday;
			case 'Mon':
				return weekday.slice(0, 3);
			case 'MST':
				return zoneName;
			case '2006':
				return padNumber(year, 4);
			case '06':
				return padNumber(year % 100, 2);
			case '01':
				return padNumber(date.getUTCMonth() + 1, 2);
			case '1':
				return String(date.getUTCMonth() + 1);
			case '02':
				return padNumber(date.getUTCDate(), 2);
			case '_2':
				return padNumber(date.getUTCDate(), 2, ' ');
			case '2':
				return String(date.getUTCDate());
			case '002':
				return padNumber(dayOfYear(date), 3);
			case '__2':
				return padNumber(dayOfYear(date), 3, ' ');
			case '15':
				return padNumber(hour, 2);
			case '03':
				return padNumber(hour % 12 || 12, 2);
			case '3':
				return String(hour % 12 || 12);
			case '04':
				return padNumber(date.getUTCMinutes(), 2);
			case '4':
				return String(date.getUTCMinutes());
			case '05':
				return padNumber(date.getUTCSeconds(), 2);
			case '5':
				return String(date.getUTCSeconds());
			case 'PM':
				return hour < 12 ? 'AM' : 'PM';
			case 'pm':
				return hour < 12 ? 'am' : 'pm';
			default:
				return element[0] === '-' || element[0] === 'Z'
					? formatOffset(element, offsetMinutes)
					: formatFraction(element, date);
		}
	});
}

/** Returns the day of the year, starting at 1. `date` has the local time in its UTC fields. */
export function dayOfYear(date: Date): number {
	return Math.floor((date.getTime() - Date.UTC(date.getUTCFullYear(), 0, 1)) / 86_400_000) + 1;
}

function formatOffset(element: string, offsetMinutes: number): string {
	if (element[0] === 'Z' && offsetMinutes === 0) return 'Z';
	const text = formatUtcOffset(offsetMinutes, element.includes(':') ? ':' : '');
	return element.length === 3 ? text.slice(0, 3) : text;
}

function formatFraction(element: string, date: Date): string {
	const digits = padNumber(date.getUTCMilliseconds(), 3)
		.padEnd(9, '0')
		.slice(0, element.length - 1);
	if (element[1] === '0') return element[0] + digits;
	const significantDigits = digits.replace(/0+$/, '');
	return significantDigits === '' ? '' : element[0] + significantDigits;
}

interface TimeFields {
	year: number;
	month: number;
	day: number;
	hour: number;
	minute: number;
	second: number;
	milliseconds: number;
	isAfternoon: boolean | undefined;
	zone: Zone | undefined;
}

/** Parses a time and its zone according to a layout; undefined if the text does not match. */
export function parseTime(text: string, layout: string, defaultZone: Zone): { time: number; zone: Zone } | undefined {
	const fields: TimeFields = {
		...{ year: 0, month: 1, day: 1, hour: 0, minute: 0, second: 0, milliseconds: 0 },
		isAfternoon: undefined,
		zone: undefined,
	};
	let textPosition = 0;
	let layoutPosition = 0;
	for (const match of layout.matchAll(LAYOUT_ELEMENT)) {
		const literal = layout.slice(layoutPosition, match.index);
		if (!text.startsWith(literal, textPosition)) return undefined;
		textPosition += literal.length;
		layoutPosition = match.index + match[0].length;
		const consumedLength = readElement(match[0], text.slice(textPosition), fields);
		if (consumedLength === undefined) return undefined;
		textPosition += consumedLength;
		// A fraction may follow the seconds even if the layout has none, as in Go.
		const extraFraction =
			/^[05]{1,2}$/.test(match[0]) && !/^[.,][09]/.test(layout.slice(layoutPosition))
				? /^[.,]\d+/.exec(text.slice(textPosition))
				: null;
		if (extraFraction) textPosition += readElement('.9', extraFraction[0], fields)!;
	}
	if (text.slice(textPosition) !== layout.slice(layoutPosition)) return undefined;
	if (fields.isAfternoon !== undefined) fields.hour = (fields.hour % 12) + (fields.isAfternoon ? 12 : 0);
	const { year, month, day, hour, minute, second, milliseconds } = fields;
	if (month > 12 || month < 1 || hour > 23 || minute > 59 || second > 59) return undefined;
	const date = new Date(0);
	date.setUTCFullYear(year, month - 1, day);
	if (date.getUTCDate() !== day) return undefined;
	date.setUTCHours(hour, minute, second, milliseconds);
	const resultZone = fields.zone ?? defaultZone;
	const localTime = date.getTime();
	// The zone's offset depends on the time that is being computed. Two iterations suffice, except in an hour that daylight
	// saving time skips.
	const utcGuess = localTime - zoneFacts(resultZone, localTime).offsetMinutes * 60_000;
	return { time: localTime - zoneFacts(resultZone, utcGuess).offsetMinutes * 60_000, zone: resultZone };
}

/**
 * Parses one element at the start of the text into the fields. Returns the length consumed, or undefined if the text does not
 * match.
 */
function readElement(element: string, text: string, fields: TimeFields): number | undefined {
	const matchElement = (pattern: RegExp, store: (matched: string) => boolean | undefined): number | undefined => {
		const matchedText = pattern.exec(text)?.[0];
		return matchedText === undefined || store(matchedText) === false ? undefined : matchedText.length;
	};
	const readNumber = (digitsPattern: RegExp, field: 'year' | 'month' | 'day' | 'hour' | 'minute' | 'second') =>
		matchElement(digitsPattern, matched => {
			fields[field] = Number(matched);
		});
	const readName = (names: readonly string[], isShort: boolean, store: (index: number) => void): number | undefined => {
		const lowerText = text.toLowerCase();
		const index = names.findIndex(name => lowerText.startsWith((isShort ? name.slice(0, 3) : name).toLowerCase()));
		if (index === -1) return undefined;
		store(index);
		return isShort ? 3 : names[index]!.length;
	};
	switch (element) {
		case 'January':
		case 'Jan':
			return readName(MONTH_NAMES, element === 'Jan', index => {
				fields.month = index + 1;
			});
		case 'Monday':
		case 'Mon':
			return readName(DAY_NAMES, element === 'Mon', () => {});
		case 'MST':
			return matchElement(/^(?:[A-Z]{3,4}|[+-]\d{2})/, matched => {
				if (matched === 'UTC' || matched === 'GMT') fields.zone = 'UTC';
			});
		case '2006':
			return readNumber(/^\d{4}/, 'year');
		case '06':
			return matchElement(/^\d{2}/, matched => {
				fields.year = Number(matched) + (Number(matched) >= 69 ? 1900 : 2000);
			});
		case '01':
			return readNumber(/^\d{2}/, 'month');
		case '1':
			return readNumber(/^\d{1,2}/, 'month');
		case '02':
			return readNumber(/^\d{2}/, 'day');
		case '2':
			return readNumber(/^\d{1,2}/, 'day');
		case '_2':
			return readNumber(/^ ?\d{1,2}/, 'day');
		case '002':
		case '__2':
			return matchElement(/^[ \d]{3}/, matched => {
				fields.month = 1;
				fields.day = Number(matched);
				return fields.day >= 1 && fields.day <= 31;
			});
		case '15':
		case '03':
			return readNumber(/^\d{2}/, 'hour');
		case '3':
			return readNumber(/^\d{1,2}/, 'hour');
		case '04':
			return readNumber(/^\d{2}/, 'minute');
		case '4':
			return readNumber(/^\d{1,2}/, 'minute');
		case '05':
			return readNumber(/^\d{2}/, 'second');
		case '5':
			return readNumber(/^\d{1,2}/, 'second');
		case 'PM':
		case 'pm':
			return matchElement(/^[AaPp][Mm]/, matched => {
				fields.isAfternoon = matched[0]!.toLowerCase() === 'p';
			});
		default:
			break;
	}
	if (element[0] === '.' || element[0] === ',') {
		const pattern = element[1] === '0' ? new RegExp(`^[.,]\\d{${element.length - 1}}`) : /^(?:[.,]\d+)?/;
		return matchElement(pattern, matched => {
			fields.milliseconds = Number(matched.slice(1, 4).padEnd(3, '0'));
		});
	}
	return matchElement(/^(?:Z(?![A-Z])|[+-]\d{2}(?::?\d{2})?)/, matched => {
		if (matched === 'Z' && element[0] !== 'Z') return false;
		fields.zone = matched === 'Z' ? 'UTC' : matched.length === 3 ? `${matched}:00` : matched;
		return isZone(fields.zone);
	});
}
