/** The two text languages. They share lexer, parser and tree; a dialect is what differs in meaning. */

/** `configfile` is this server's own language, `compatfile` the compatible server's. */
export type Dialect = 'configfile' | 'compatfile';

/** Every form in which a configuration can be given. */
export type ConfigFormat = Dialect | 'json';

/** A configuration as it reached us. */
export interface ConfigInput {
	readonly format: ConfigFormat;
	readonly text: string;
	/** The name that diagnostics print: the path as the user gave it, or `<stdin>`, or `<request>`. */
	readonly name: string;
	/** Absolute path, if it is a file: imports and relative roots resolve against its folder. */
	readonly path?: string | undefined;
	/** JSON that is a document with the places of its steps in the text that somebody else has compiled it from. */
	readonly placed?: boolean;
	/**
	 * It came over the network: diagnostics are not to quote files that it imports, unless the running configuration was read
	 * from them.
	 */
	readonly remote?: boolean;
}
