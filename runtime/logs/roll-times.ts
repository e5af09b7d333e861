/** Computes when a log file is rolled by time. */
import type { LogRolling } from '../../compiler/document/log-settings.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/**
 * Returns the first time after `now`, in milliseconds since 1970, at which a file that was opened at `openedAt` must be rolled;
 * Infinity if it is not rolled by time. Minutes and times of day are local with `local_time`, otherwise UTC.
 */
export function nextRoll({ interval, minutes, at, local_time }: LogRolling, openedAt: number, now: number): number {
	let next = Number.POSITIVE_INFINITY;
	if (interval !== undefined) next = Math.max(openedAt + interval, now + 1);
	for (const minute of minutes ?? []) {
		const date = new Date(now);
		// Some time zones are offset by half an hour.
		const offset = local_time ? date.getTimezoneOffset() * MINUTE_MS : 0;
		const local = now - offset;
		let candidate = Math.floor(local / HOUR_MS) * HOUR_MS + minute * MINUTE_MS;
		if (candidate <= local) candidate += HOUR_MS;
		next = Math.min(next, candidate + offset);
	}
	for (const text of at ?? []) {
		const [hour, minute] = text.split(':').map(Number) as [number, number];
		next = Math.min(next, nextTimeOfDay(hour, minute, now, local_time === true));
	}
	return next;
}

/** Returns the next occurrence of a time of day. The calendar is used, because local days may have 23 or 25 hours. */
function nextTimeOfDay(hour: number, minute: number, now: number, isLocal: boolean): number {
	for (let day = 0; ; day++) {
		const date = new Date(now);
		if (isLocal) {
			date.setDate(date.getDate() + day);
			date.setHours(hour, minute, 0, 0);
		} else {
			date.setUTCDate(date.getUTCDate() + day);
			date.setUTCHours(hour, minute, 0, 0);
		}
		if (date.getTime() > now) return date.getTime();
	}
}
