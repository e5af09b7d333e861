/** The definition of an `svc` command: its arguments, options, help text and action, in one object. */

/**
 * The completions that a shell offers for a value: fixed words, files, folders, names of commands, or names of commands and guides.
 */
export type CompletionCandidates = readonly string[] | 'file' | 'folder' | 'command' | 'command-or-guide';

/** An option of a command, written `--name`. */
export interface CommandOption {
	readonly name: string;
	/** The option's letter: `c` for `-c`. */
	readonly short?: string;
	/** Aliases: other letters and names for the same option. */
	readonly aliases?: readonly string[];
	/** Name of the value in help texts. An option without one is a flag. */
	readonly valueName?: string;
	/** True if the value may be omitted. It can then be given only after `=`, because the next word is not taken for it. */
	readonly valueOptional?: boolean;
	/** What completion scripts offer for the value. Default: files if the value is named PATH, otherwise nothing. */
	readonly offers?: CompletionCandidates;
	readonly required?: boolean;
	/** True if the option may be given more than once. */
	readonly repeatable?: boolean;
	/** The purpose of the option in one sentence, without its period. */
	readonly summary: string;
	/** The default value, as help shows it. */
	readonly default?: string;
	/** True for options that our own processes pass to each other. They are omitted from the help text. */
	readonly internal?: boolean;
}

export interface CommandArgument {
	readonly name: string;
	readonly required?: boolean;
	/** True if the argument may be given more than once. Only the last argument may have this. */
	readonly repeatable?: boolean;
	/** What completion scripts offer for the argument. Default: files if the argument is named PATH, otherwise nothing. */
	readonly offers?: CompletionCandidates;
	/** The purpose of the argument in one sentence, without its period. */
	readonly summary: string;
}

/** A command line that was checked against the command's options and arguments. */
export interface Invocation {
	/** Values of the arguments, in order; fewer than defined if optional ones were omitted. */
	readonly args: readonly string[];
	/** True if `-v` was given, before or after the command. */
	readonly verbose: boolean;
	/** Reports whether a flag was given. */
	flag(name: string): boolean;
	/** Returns the last value given for an option. */
	value(name: string): string | undefined;
	/** Returns all values given for an option. */
	values(name: string): readonly string[];
}

/** The definition of a command. commands/index.ts lists each command in one line. */
export interface Command {
	readonly name: string;
	/** The purpose of the command in one sentence, without its period. */
	readonly summary: string;
	/** Paragraphs of the help text. */
	readonly details?: readonly string[];
	readonly args?: readonly CommandArgument[];
	readonly options?: readonly CommandOption[];
	/**
	 * Runs the command and resolves to the exit status. Throws {@link CommandFailure} for errors that users can fix. Commands import
	 * their dependencies when they run, so that help and `version` stay fast.
	 */
	readonly run: (invocation: Invocation) => number | Promise<number>;
}

/** The exit statuses of commands. A command may define others of its own. */
export const EXIT_STATUS = {
	ok: 0,
	/** Status if the command line or configuration was wrong, or the server did not start. */
	failed: 1,
	/** Status if the server stopped without waiting for requests in flight. */
	forced: 2,
	/** Status if the server served, and then ended with an error. */
	endedInError: 3,
} as const;

/** An error that ends a command. Its message is a sentence that says what is wrong and, where possible, what to do. */
export class CommandFailure extends Error {
	readonly status: number;
	/** Text that is printed unchanged before the sentence, such as rendered diagnostics. */
	readonly preamble: string;

	constructor(message: string, details: { status?: number; preamble?: string } = {}) {
		super(message);
		this.name = 'CommandFailure';
		this.status = details.status ?? EXIT_STATUS.failed;
		this.preamble = details.preamble ?? '';
	}
}

/** An entry in the list of commands. `load` imports the command's definition. */
export interface CommandEntry {
	readonly name: string;
	/** The summary in the command's definition, repeated here so that help need not load it. A test compares the two. */
	readonly summary: string;
	readonly load: () => Promise<Command>;
}
