/** Formats times and durations for log entries. */
import { formatTime } from '../../compiler/modules/templates/time-layout.ts';

/** Layouts of named time formats, in the notation of Go's `time` package. */
const NAMED_LAYOUTS: { readonly [name: string]: string } = {
	iso8601: '2006-01-02T15:04:05.000Z0700',
	rfc3339: '2006-01-02T15:04:05Z07:00',
	rfc3339_nano: '2006-01-02T15:04:05.999999999Z07:00',
	wall: '2006/01/02 15:04:05',
	wall_milli: '2006/01/02 15:04:05.000',
	wall_nano: '2006/01/02 15:04:05.000000000',
	common_log: '02/Jan/2006:15:04:05 -0700',
};

/** Returns a function that formats milliseconds since the epoch as a number or text. */
export function createTimeFormatter(format: string, isLocal: boolean): (timeMs: number) => string | number {
	switch (format) {
		case 'unix_seconds_float':
			return timeMs => timeMs / 1000;
		case 'unix_milli_float':
			return timeMs => timeMs;
		case 'unix_nano':
			// The result exceeds the integers that JSON readers represent exactly, but the format is defined this way.
			return timeMs => timeMs * 1e6;
		default: {
			const layout = Object.hasOwn(NAMED_LAYOUTS, format) ? NAMED_LAYOUTS[format]! : format;
			return timeMs => formatTime(timeMs, layout, isLocal ? 'Local' : 'UTC');
		}
	}
}

/** Returns `2026/11/21 05:46:45.123`, in UTC. */
export function formatWallTime(timeMs: number): string {
	return new Date(timeMs).toISOString().slice(0, 23).replace('T', ' ').replace('-', '/').replace('-', '/');
}

/** Returns a function that formats milliseconds as a duration in JSON. */
export function createDurationFormatter(format: 's' | 'ms' | 'ns' | 'string'): (milliseconds: number) => string {
	switch (format) {
		case 's':
			return formatSeconds;
		case 'ms':
			return milliseconds => String(Math.round(milliseconds * 1e6) / 1e6);
		case 'ns':
			return milliseconds => String(Math.round(milliseconds * 1e6));
		case 'string':
			return milliseconds => `"${formatNanoseconds(Math.round(milliseconds * 1e6))}"`;
	}
}

/**
 * Formats a duration in seconds, with nine decimals if it is below a second: formatting its nanoseconds, which are an integer, is
 * three times as fast as formatting a fraction.
 */
function formatSeconds(milliseconds: number): string {
	const nanoseconds = Math.round(milliseconds * 1e6);
	// Long durations are rare and need not be fast.
	if (!(nanoseconds >= 0 && nanoseconds < 1e9)) return String(nanoseconds / 1e9);
	return `0.${String(nanoseconds).padStart(9, '0')}`;
}

/** Formats nanoseconds with units: `1h2m3.5s`, `1.5ms`, `750ns`. */
export function formatNanoseconds(nanoseconds: number): string {
	if (nanoseconds === 0) return '0s';
	if (nanoseconds < 1e3) return `${nanoseconds}ns`;
	if (nanoseconds < 1e6) return `${nanoseconds / 1e3}µs`;
	if (nanoseconds < 1e9) return `${nanoseconds / 1e6}ms`;
	const hours = Math.floor(nanoseconds / 3.6e12);
	const minutes = Math.floor((nanoseconds % 3.6e12) / 6e10);
	const seconds = Number(((nanoseconds % 6e10) / 1e9).toFixed(9));
	return `${hours > 0 ? `${hours}h` : ''}${hours > 0 || minutes > 0 ? `${minutes}m` : ''}${seconds}s`;
}
