/** Times and durations as log entries write them. */
import { formatTime } from '../../compiler/modules/templates/time-layout.ts';

/** Layouts of the named times. */
const LAYOUTS: { readonly [name: string]: string } = {
	iso8601: '2006-01-02T15:04:05.000Z0700',
	rfc3339: '2006-01-02T15:04:05Z07:00',
	rfc3339_nano: '2006-01-02T15:04:05.999999999Z07:00',
	wall: '2006/01/02 15:04:05',
	wall_milli: '2006/01/02 15:04:05.000',
	wall_nano: '2006/01/02 15:04:05.000000000',
	common_log: '02/Jan/2006:15:04:05 -0700',
};

/** Writes a time, given in milliseconds since the epoch, in a format: a number or a text. */
export function writeTime(format: string, local: boolean): (at: number) => string | number {
	switch (format) {
		case 'unix_seconds_float':
			return at => at / 1000;
		case 'unix_milli_float':
			return at => at;
		case 'unix_nano':
			// Beyond what a JSON number holds exactly in other hands, but that is what the format is.
			return at => at * 1e6;
		default: {
			const layout = Object.hasOwn(LAYOUTS, format) ? LAYOUTS[format]! : format;
			return at => formatTime(at, layout, local ? 'Local' : 'UTC');
		}
	}
}

/** `2026/11/21 05:46:45.123`, UTC. */
export function wallTime(at: number): string {
	return new Date(at).toISOString().slice(0, 23).replace('T', ' ').replace('-', '/').replace('-', '/');
}

/** Writes a duration, given in milliseconds, as JSON. */
export function writeDuration(format: 's' | 'ms' | 'ns' | 'string'): (milliseconds: number) => string {
	switch (format) {
		case 's':
			return secondsText;
		case 'ms':
			return milliseconds => String(Math.round(milliseconds * 1e6) / 1e6);
		case 'ns':
			return milliseconds => String(Math.round(milliseconds * 1e6));
		case 'string':
			return milliseconds => `"${durationText(Math.round(milliseconds * 1e6))}"`;
	}
}

/** Seconds with nine decimals. Writing a whole number is three times as fast as a number with a fraction. */
function secondsText(milliseconds: number): string {
	const nanoseconds = Math.round(milliseconds * 1e6);
	// Long ones are few.
	if (!(nanoseconds >= 0 && nanoseconds < 1e9)) return String(nanoseconds / 1e9);
	return `0.${String(nanoseconds).padStart(9, '0')}`;
}

/** `1h2m3.5s`, `1.5ms`, `750ns`: a duration in nanoseconds with its units. */
export function durationText(nanoseconds: number): string {
	if (nanoseconds === 0) return '0s';
	if (nanoseconds < 1e3) return `${nanoseconds}ns`;
	if (nanoseconds < 1e6) return `${nanoseconds / 1e3}µs`;
	if (nanoseconds < 1e9) return `${nanoseconds / 1e6}ms`;
	const hours = Math.floor(nanoseconds / 3.6e12);
	const minutes = Math.floor((nanoseconds % 3.6e12) / 6e10);
	const seconds = Number(((nanoseconds % 6e10) / 1e9).toFixed(9));
	return `${hours > 0 ? `${hours}h` : ''}${hours > 0 || minutes > 0 ? `${minutes}m` : ''}${seconds}s`;
}
