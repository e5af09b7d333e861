/** What one command of `svc` is: its words, its options, its help text and what it does, in one object. */

/** What a shell offers for a value: one of these words, a file, a folder, or the name of a command. */
export type Offer = readonly string[] | 'file' | 'folder' | 'command';

/** An option of a command, `--name`. */
export interface CommandOption {
	readonly name: string;
	/** One letter: `c` for `-c`. */
	readonly short?: string;
	/** Other letters and names that mean the same. */
	readonly also?: readonly string[];
	/** Name of the value in help texts. Without it the option is a flag. */
	readonly value?: string;
	/** What completion scripts offer for the value; files for a value or an argument named PATH, otherwise nothing, if left out. */
	readonly offers?: Offer;
	/** The command does nothing without it. */
	readonly required?: boolean;
	/** May stand several times. */
	readonly repeatable?: boolean;
	/** One sentence, without its full stop. */
	readonly summary: string;
	/** What help prints as the default. */
	readonly default?: string;
	/** Between our own processes: works, and is not in the help text. */
	readonly internal?: boolean;
}

export interface CommandArgument {
	readonly name: string;
	readonly required?: boolean;
	/** The last argument may stand several times. */
	readonly repeatable?: boolean;
	/** As {@link CommandOption.offers}. */
	readonly offers?: Offer;
	/** One sentence, without its full stop. */
	readonly summary: string;
}

/** A command line as it reached a command: checked against its options and arguments. */
export interface Invocation {
	/** Values of the arguments, in order; fewer than defined when optional ones were left out. */
	readonly args: readonly string[];
	/** `-v`, before or after the command. */
	readonly verbose: boolean;
	/** True when a flag was given. */
	flag(name: string): boolean;
	/** The last value given for an option. */
	value(name: string): string | undefined;
	/** All values given for an option. */
	values(name: string): readonly string[];
}

/** A command. Registered by one line in commands/index.ts. */
export interface Command {
	readonly name: string;
	/** One sentence, without its full stop. */
	readonly summary: string;
	/** Paragraphs for the help text, each one a line. */
	readonly details?: readonly string[];
	readonly args?: readonly CommandArgument[];
	readonly options?: readonly CommandOption[];
	/**
	 * Does it and resolves to the exit status. Throws {@link CommandFailure} for what a user can mend.
	 * What it needs beyond its definition it imports when it runs, so that help and `version` stay quick.
	 */
	readonly run: (invocation: Invocation) => number | Promise<number>;
}

/** Exit statuses of every command. */
export const EXIT = {
	ok: 0,
	/** The command line, the configuration or the start-up was at fault. */
	failed: 1,
	/** Stopped without waiting for requests in flight. */
	forced: 2,
	/** Served, then ended with an error. */
	endedInError: 3,
} as const;

/** Ends a command with one sentence on standard error. The message names what is wrong and, where it can, what to do. */
export class CommandFailure extends Error {
	readonly status: number;
	/** Lines printed as they are, before the sentence: rendered diagnostics. */
	readonly before: string;

	constructor(message: string, more: { status?: number; before?: string } = {}) {
		super(message);
		this.name = 'CommandFailure';
		this.status = more.status ?? EXIT.failed;
		this.before = more.before ?? '';
	}
}
