/** Placeholders that do not depend on the request: environment, files, system and time. */
import { resolve } from 'node:path';
import { definePlaceholder, definePlaceholderFamily, type Placeholder } from './placeholder.ts';

/** Maximum bytes of a file that `{file.*}` reads. */
const MAX_FILE_BYTES = 1024 * 1024;

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

function decodeText(bytes: Uint8Array | undefined): string {
	return bytes === undefined ? '' : Buffer.from(bytes).toString('utf8').replace(/\n$/, '');
}

function padTwo(n: number): string {
	return n < 10 ? `0${n}` : String(n);
}

function utcOffsetText(date: Date): string {
	const offsetMinutes = -date.getTimezoneOffset();
	const absoluteMinutes = Math.abs(offsetMinutes);
	return `${offsetMinutes < 0 ? '-' : '+'}${padTwo(Math.floor(absoluteMinutes / 60))}${padTwo(absoluteMinutes % 60)}`;
}

function clockTimeText(date: Date): string {
	return `${padTwo(date.getHours())}:${padTwo(date.getMinutes())}:${padTwo(date.getSeconds())}`;
}

/** Formats a date as in the Common Log Format, `02/Jan/2006:15:04:05 -0700`, in local time. */
function commonLogDate(date: Date): string {
	return `${padTwo(date.getDate())}/${MONTHS[date.getMonth()]}/${date.getFullYear()}:${clockTimeText(date)} ${utcOffsetText(date)}`;
}

/** Formats a date as `2006-01-02 15:04:05.000 -0700`, in local time. */
function timeText(date: Date): string {
	const dateText = `${date.getFullYear()}-${padTwo(date.getMonth() + 1)}-${padTwo(date.getDate())}`;
	return `${dateText} ${clockTimeText(date)}.${String(date.getMilliseconds()).padStart(3, '0')} ${utcOffsetText(date)}`;
}

/**
 * The placeholders `env.*`, `file.*`, `system.*` and `time.*`, and the placeholders about a delayed stop. Values that cannot
 * change while the process runs become constants when a site is built.
 */
export const MACHINE_PLACEHOLDERS: readonly Placeholder[] = [
	definePlaceholderFamily(
		'env.*',
		'An environment variable, empty if it is not set.',
		(name, { facts }) => facts.env(name) ?? '',
	),
	definePlaceholderFamily(
		'file.*',
		'The first MiB of a file, without its last newline; empty if it cannot be read.',
		(path, scope) => {
			const files = scope.files();
			const fullPath = resolve(scope.facts.workingDirectory, path);
			return () => decodeText(files.readStart(fullPath, MAX_FILE_BYTES));
		},
	),
	{ name: 'system.hostname', summary: 'Name of this machine.', compile: (_, { facts }) => facts.hostname },
	{ name: 'system.slash', summary: 'Separator of file paths.', compile: () => '/' },
	{ name: 'system.os', summary: 'Operating system, such as `linux`.', compile: (_, { facts }) => facts.os },
	{ name: 'system.arch', summary: 'Processor architecture, such as `x64`.', compile: (_, { facts }) => facts.arch },
	{
		name: 'system.wd',
		summary: 'Working directory of the process.',
		compile: (_, { facts }) => facts.workingDirectory,
	},
	{
		name: 'http.shutting_down',
		summary: 'True while a stop is delayed (`shutdown_delay`).',
		compile:
			(_, { facts: { stopsAt } }) =>
			() =>
				stopsAt !== undefined && stopsAt() > 0,
	},
	{
		name: 'http.time_until_shutdown',
		summary: 'Remaining delay of a stop, such as `4s`.',
		compile:
			(_, { facts: { stopsAt } }) =>
			x => {
				const stopTime = stopsAt?.() ?? 0;
				return stopTime === 0 ? null : `${Math.max(0, Math.ceil((stopTime - x.now()) / 1000))}s`;
			},
	},
	definePlaceholder('time.now', 'The time as text, in local time.', x => timeText(new Date(x.now()))),
	definePlaceholder('time.now.http', 'The time in the format of HTTP dates.', x => new Date(x.now()).toUTCString()),
	definePlaceholder('time.now.common_log', 'The time in the format of the Common Log Format.', x =>
		commonLogDate(new Date(x.now())),
	),
	definePlaceholder('time.now.year', 'The year.', x => new Date(x.now()).getFullYear()),
	definePlaceholder('time.now.unix', 'Seconds since 1970.', x => Math.floor(x.now() / 1000)),
	definePlaceholder('time.now.unix_ms', 'Milliseconds since 1970.', x => x.now()),
];
