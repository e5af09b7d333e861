/** Computes when a log file is rolled by time. */
import type { LogRolling } from '../../compiler/document/log-settings.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/**
 * Returns the first time after `now`, in milliseconds since 1970, at which a file that was opened at `openedAt` must be rolled;
 * Infinity if it is not rolled by time. Minutes and times of day are local with `local_time`, otherwise UTC.
 */
export function nextRoll({ interval, minutes, at, local_time }: LogRolling, openedAt: number, now: number): number {
	let nextRollAt = Number.POSITIVE_INFINITY;
	if (interval !== undefined) nextRollAt = Math.max(openedAt + interval, now + 1);
	for (const minute of minutes ?? []) {
		const date = new Date(now);
		// The minute of the hour is local, too, because some time zones are offset by half an hour.
		const offsetMs = local_time ? date.getTimezoneOffset() * MINUTE_MS : 0;
		const localNow = now - offsetMs;
		let candidate = Math.floor(localNow / HOUR_MS) * HOUR_MS + minute * MINUTE_MS;
		if (candidate <= localNow) candidate += HOUR_MS;
		nextRollAt = Math.min(nextRollAt, candidate + offsetMs);
	}
	for (const timeText of at ?? []) {
		const [hour, minute] = timeText.split(':').map(Number) as [number, number];
		nextRollAt = Math.min(nextRollAt, nextTimeOfDay(hour, minute, now, local_time === true));
	}
	return nextRollAt;
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
