/** The two text languages. They share lexer, parser and tree; dialects differ in meaning. */

/** `configfile` is this server's own language, `compatfile` that of the compatible server. */
export type Dialect = 'configfile' | 'compatfile';

/** The forms in which a configuration can be given. */
export type ConfigFormat = Dialect | 'json';

/** A configuration as received. */
export interface ConfigInput {
	readonly format: ConfigFormat;
	readonly text: string;
	/** The name printed in diagnostics: the path as the user gave it, `<stdin>` or `<request>`. */
	readonly name: string;
	/** Absolute path, if it is a file; imports and relative roots resolve against its folder. */
	readonly path?: string | undefined;
	/** True for JSON that is an already compiled document, whose steps carry their places in the original text. */
	readonly placed?: boolean;
	/**
	 * True if it came over the network: diagnostics must not quote files that it imports, unless the running configuration was
	 * read from them.
	 */
	readonly remote?: boolean;
}
