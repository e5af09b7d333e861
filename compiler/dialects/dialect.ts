/** The two configuration languages. They share a lexer, a parser and a syntax tree, but differ in meaning. */

/** `configfile` is this server's own language; `compatfile` is Caddy's. */
export type Dialect = 'configfile' | 'compatfile';

/** The forms in which a configuration can be given. */
export type ConfigFormat = Dialect | 'json';

/** A configuration as received: its text, its format and its origin. */
export interface ConfigInput {
	readonly format: ConfigFormat;
	readonly text: string;
	/** The name printed in diagnostics: the path as the user gave it, `<stdin>` or `<request>`. */
	readonly name: string;
	/** Absolute path, if the configuration is a file. Imports and relative roots are resolved against its folder. */
	readonly path?: string | undefined;
	/** True for JSON with a document that was compiled elsewhere, and the file and line that each of its steps comes from. */
	readonly placed?: boolean;
	/**
	 * True if the configuration came over the network. In that case, diagnostics must not quote a file that it imports, unless the
	 * running configuration was read from that file.
	 */
	readonly remote?: boolean;
}
