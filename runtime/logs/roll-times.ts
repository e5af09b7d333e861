/** When a log file is rolled next, by the clock. */
import type { LogRolling } from '../../compiler/modules/providers/log-writers/file-output.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/**
 * Milliseconds since 1970 of the first time after `now` at which a file that was opened at `opened` is to be rolled;
 * Infinity when the clock does not matter. Minutes and times of day are the machine's with `local_time`, else UTC.
 */
export function nextRoll({ interval, minutes, at, local_time }: LogRolling, opened: number, now: number): number {
	let next = Number.POSITIVE_INFINITY;
	if (interval !== undefined) next = Math.max(opened + interval, now + 1);
	for (const minute of minutes ?? []) {
		const date = new Date(now);
		// Minutes are those of the zone: some are half an hour off.
		const offset = local_time ? date.getTimezoneOffset() * MINUTE : 0;
		const local = now - offset;
		let time = Math.floor(local / HOUR) * HOUR + minute * MINUTE;
		if (time <= local) time += HOUR;
		next = Math.min(next, time + offset);
	}
	for (const text of at ?? []) {
		const [hour, minute] = text.split(':').map(Number) as [number, number];
		next = Math.min(next, nextTimeOfDay(hour, minute, now, local_time === true));
	}
	return next;
}

/** Days of the machine's zone may have 23 or 25 hours: the calendar says when the next one's time comes. */
function nextTimeOfDay(hour: number, minute: number, now: number, local: boolean): number {
	for (let day = 0; ; day++) {
		const date = new Date(now);
		if (local) {
			date.setDate(date.getDate() + day);
			date.setHours(hour, minute, 0, 0);
		} else {
			date.setUTCDate(date.getUTCDate() + day);
			date.setUTCHours(hour, minute, 0, 0);
		}
		if (date.getTime() > now) return date.getTime();
	}
}
