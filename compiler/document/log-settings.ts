/** The types of the settings of logs in a document. */

/** What a log filter does with one query parameter or cookie. */
export interface ParameterAction {
	readonly action: 'replace' | 'hash' | 'delete';
	readonly name: string;
	/** The replacement, for the action `replace`. */
	readonly value?: string;
}

/** A replacement of the matches of a regular expression. */
export interface FilterReplacement {
	readonly find: string;
	readonly replace: string;
}

/** How a filter changes one field of log entries. */
export type LogFilter =
	| { readonly filter: 'delete' }
	| { readonly filter: 'hash' }
	| { readonly filter: 'rename'; readonly name: string }
	| { readonly filter: 'replace'; readonly value: string }
	| { readonly filter: 'ip_mask'; readonly ipv4?: number; readonly ipv6?: number }
	| { readonly filter: 'query' | 'cookie' | 'set_cookie'; readonly actions: readonly ParameterAction[] }
	| { readonly filter: 'regexp'; readonly rules: readonly FilterReplacement[] };

/** Formats of durations: seconds or milliseconds as numbers, nanoseconds, or text such as `1.5ms`. */
export const DURATION_FORMATS = ['s', 'ms', 'ns', 'string'] as const;

/** Formats of levels: `warn`, `WARN`, or `WARN` in color. */
export const LEVEL_FORMATS = ['lower', 'upper', 'color'] as const;

/** Names of the settings that rename the standard keys of log entries. */
export const LOG_KEY_SETTINGS = [
	'message_key',
	'level_key',
	'time_key',
	'name_key',
	'caller_key',
	'stacktrace_key',
] as const;

/** Settings of the formats `console`, `json` and `default`. */
export type PlainLogFormat = {
	readonly encoder: 'console' | 'json' | 'default';
	readonly line_ending?: string;
	readonly time_format?: string;
	readonly time_local?: boolean;
	readonly duration_format?: (typeof DURATION_FORMATS)[number];
	readonly level_format?: (typeof LEVEL_FORMATS)[number];
} & { readonly [key in (typeof LOG_KEY_SETTINGS)[number]]?: string };

/** Settings of the formats `common`, `combined` and `text`, which write an entry as a line of text. */
export type TextLogFormat = {
	readonly time_format?: string;
	readonly time_local?: boolean;
	readonly duration_format?: (typeof DURATION_FORMATS)[number];
} & ({ readonly encoder: 'common' | 'combined' } | { readonly encoder: 'text'; readonly text: string });

/** The format of a log. Without `wrap`, the wrapped format depends on the output. */
export type LogFormat =
	| PlainLogFormat
	| TextLogFormat
	| {
			readonly encoder: 'filter';
			readonly wrap?: LogFormat;
			/** Filters, by the path of the field that they edit, such as `request>headers>Cookie`. */
			readonly fields: { readonly [path: string]: LogFilter };
	  }
	| {
			readonly encoder: 'append';
			readonly wrap?: LogFormat;
			readonly fields: { readonly [name: string]: string | number | boolean };
	  }
	| { readonly encoder: 'journald'; readonly wrap?: LogFormat };

/** When a log file is rolled, and how rolled files are kept. All fields have defaults. */
export interface LogRolling {
	/** Maximum bytes of a file; default 100 MiB. */
	readonly size?: number;
	/** Compression of rolled files; default `gzip`. */
	readonly compression?: 'none' | 'gzip' | 'zstd';
	/** True if names of rolled files contain the local time instead of UTC. */
	readonly local_time?: true;
	/** Maximum number of rolled files; default 10, 0 for no limit. */
	readonly keep?: number;
	/** Milliseconds for which rolled files are kept; default 90 days, 0 for no limit. */
	readonly keep_for?: number;
	/** Milliseconds after which a file is rolled, whatever its size; default never. */
	readonly interval?: number;
	/** Minutes of the hour, from 0 to 59, at which the file is rolled. */
	readonly minutes?: readonly number[];
	/** Times of day, `HH:MM`, at which the file is rolled. */
	readonly at?: readonly string[];
	/** Layout of the time in the names of rolled files; default `2006-01-02T15-04-05.000`. */
	readonly time_format?: string;
}

/** Fields of an output with the writer `file`. */
export interface FileOutput {
	readonly path?: string;
	/** Permissions of the file, in octal; default `0600`. */
	readonly mode?: string;
	/** Permissions of folders that are created, in octal, or `inherit` or `from_file`; default `0700`. */
	readonly dir_mode?: string;
	/** When the file is rolled; false if it may grow without limit. */
	readonly rolling?: false | LogRolling;
}

/** Fields of an output with the writer `net`. */
export interface NetOutput {
	/** The address of the collector: `tcp/host:port`, `udp/host:port` or `unix//path`; `host:port` means TCP. */
	readonly address?: string;
	/** Connection timeout in milliseconds; default 10000. */
	readonly dial_timeout?: number;
	/** True if the server starts even though the collector cannot be reached. Entries go to standard error until it can. */
	readonly soft_start?: true;
}

/**
 * An output of a log. The fields of {@link FileOutput} are present only with the writer `file`, those of {@link NetOutput} only
 * with `net`.
 */
export interface LogOutput extends FileOutput, NetOutput {
	/** The name of the writer, such as `stderr`, `file` or `net`. */
	readonly writer: string;
}

/**
 * Sampling of entries with the same message. Of each interval, the first `first` entries are recorded, and then every
 * `thereafter`-th.
 */
export interface LogSampling {
	/** Length of an interval in milliseconds; default 1000. */
	readonly interval?: number;
	/** Number of entries that are recorded at the beginning of each interval; default 100. */
	readonly first?: number;
	/** Of the further entries of an interval, only every `thereafter`-th is recorded; default 100. 0 drops all of them. */
	readonly thereafter?: number;
}
