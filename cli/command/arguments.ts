/**
 * Parses the command line before the npm package sade does, and passes it to sade in an unambiguous form. By itself, sade would
 * print its version for `-v`, and take the `-` in `-c -` for a flag, `007` in `-p 007` for a number, `--no-…` for a negation, and
 * the word after an empty value for the value.
 */
import type { Command, CommandOption, Invocation } from './command.ts';
import { CommandFailure } from './command.ts';

/** A command line, split at the command's name. Whether the command exists has not been checked. */
export interface ScannedCommandLine {
	/** The first word that is not an option; `version` if `-V` is given; undefined if there is neither. */
	readonly command: string | undefined;
	readonly wordsAfterCommand: readonly string[];
	readonly verbose: boolean;
	/** True if `-h` or `--help` was given before the command. */
	readonly help: boolean;
}

/**
 * Splits `words`, the command line without the program's name, at the command. @throws {@link CommandFailure} on an unknown
 * global flag
 */
export function scanCommandLine(words: readonly string[]): ScannedCommandLine {
	let verbose = false;
	let help = false;
	let version = false;
	let wordIndex = 0;
	for (; wordIndex < words.length; wordIndex++) {
		const word = words[wordIndex]!;
		if (word === '-v' || word === '--verbose') verbose = true;
		else if (word === '-h' || word === '--help') help = true;
		else if (word === '-V' || word === '--version') version = true;
		else if (word.startsWith('-')) {
			throw new CommandFailure(`${quoteWord(word)} is not a global flag; a command's options go after its name.`);
		} else break;
	}
	// With `-V`, nothing but the version is printed, even if the command line names a command.
	const [command, ...wordsAfterCommand] = version && !help ? ['version'] : joinTwoWordCommand(words.slice(wordIndex));
	return {
		command,
		wordsAfterCommand: command === 'help' ? joinTwoWordCommand(wordsAfterCommand) : wordsAfterCommand,
		verbose,
		help,
	};
}

/** Joins a command that is written as two words (`storage export`) into one (`storage-export`). */
function joinTwoWordCommand(words: readonly string[]): readonly string[] {
	const [first, second] = words;
	if (first !== 'storage' || (second !== 'export' && second !== 'import' && second !== 'migrate')) return words;
	return [`storage-${second}`, ...words.slice(2)];
}

/** The options and arguments of one command, checked. */
export interface ParsedArguments {
	readonly help: boolean;
	readonly verbose: boolean;
	/** The command line in a form that sade cannot misunderstand: `--name=value …`, flags, `--`, then the arguments. */
	readonly normalizedWords: readonly string[];
}

/** Checks the words after a command. @throws {@link CommandFailure} for unknown options and missing or surplus words */
export function parseArguments(command: Command, words: readonly string[]): ParsedArguments {
	const optionByName = optionsByName(command.options ?? []);
	const optionWords: string[] = [];
	const args: string[] = [];
	const givenOptions = new Set<string>();
	let help = false;
	let verbose = false;

	const addOption = (option: CommandOption, value: string | undefined): void => {
		if (givenOptions.has(option.name) && option.valueName && !option.repeatable) {
			throw new CommandFailure(`${quoteWord(`--${option.name}`)} is given more than once.`);
		}
		givenOptions.add(option.name);
		optionWords.push(value === undefined ? `--${option.name}` : `--${option.name}=${value}`);
	};

	for (let wordIndex = 0; wordIndex < words.length; wordIndex++) {
		const word = words[wordIndex]!;
		if (word === '--') {
			args.push(...words.slice(wordIndex + 1));
			break;
		}
		if (word === '-' || !word.startsWith('-')) {
			args.push(word);
			continue;
		}
		if (word === '--help') help = true;
		else if (word === '--verbose') verbose = true;
		else if (word.startsWith('--')) {
			const equalsIndex = word.indexOf('=');
			const name = equalsIndex === -1 ? word : word.slice(0, equalsIndex);
			const option = optionByName.get(name);
			if (!option) throw unknownOptionFailure(command, name, optionByName);
			if (!option.valueName || (option.valueOptional && equalsIndex === -1)) {
				if (equalsIndex !== -1) throw new CommandFailure(`${quoteWord(name)} takes no value.`);
				addOption(option, undefined);
			} else if (equalsIndex !== -1) addOption(option, word.slice(equalsIndex + 1));
			else addOption(option, nextValue(words, ++wordIndex, name, option));
		} else {
			// Short flags may be combined (`-wv`); what follows a letter that takes a value is its value (`-cFILE`).
			for (let letterIndex = 1; letterIndex < word.length; letterIndex++) {
				const name = `-${word[letterIndex]}`;
				const option = optionByName.get(name);
				if (name === '-h' && !option) help = true;
				else if (name === '-v' && !option) verbose = true;
				else if (!option) throw unknownOptionFailure(command, name, optionByName);
				else if (!option.valueName || option.valueOptional) addOption(option, undefined);
				else {
					const attachedValue = word.slice(letterIndex + 1).replace(/^=/, '');
					addOption(option, attachedValue === '' ? nextValue(words, ++wordIndex, name, option) : attachedValue);
					break;
				}
			}
		}
	}
	if (!help) {
		checkArgumentCount(command, args);
		const missingOption = command.options?.find(option => option.required && !givenOptions.has(option.name));
		if (missingOption) {
			throw new CommandFailure(
				`${quoteWord(`svc ${command.name}`)} needs ${quoteWord(`--${missingOption.name} <${missingOption.valueName}>`)}.`,
			);
		}
	}
	return { help, verbose, normalizedWords: [...optionWords, '--', ...args] };
}

/** Converts the result of sade for {@link ParsedArguments.normalizedWords} to the form that commands read. */
export function createInvocation(
	parsedArguments: ParsedArguments,
	verbose: boolean,
	options: { readonly [name: string]: unknown },
	args: readonly string[],
): Invocation {
	const valuesOf = (name: string): readonly string[] => {
		const value = options[name];
		if (value === undefined) return [];
		return Array.isArray(value) ? value.map(String) : [String(value)];
	};
	return {
		args,
		verbose: verbose || parsedArguments.verbose,
		// sade returns `--no-compress` as `compress: false`.
		flag: name => (name.startsWith('no-') ? options[name.slice(3)] === false : options[name] !== undefined),
		value: name => valuesOf(name).at(-1),
		values: valuesOf,
	};
}

/** Puts a word in backquotes, for a message. */
export function quoteWord(word: string): string {
	return `\`${word}\``;
}

function optionsByName(options: readonly CommandOption[]): Map<string, CommandOption> {
	const optionByName = new Map<string, CommandOption>();
	for (const option of options) {
		for (const name of [option.name, ...(option.short ? [option.short] : []), ...(option.aliases ?? [])]) {
			optionByName.set(name.length === 1 ? `-${name}` : `--${name}`, option);
		}
	}
	return optionByName;
}

/** Returns the option's value, which is `words[at]`. @throws {@link CommandFailure} if the command line ends before it */
function nextValue(words: readonly string[], at: number, name: string, option: CommandOption): string {
	const word = words[at];
	if (word === undefined) throw new CommandFailure(`${quoteWord(name)} needs a value: ${name} <${option.valueName}>.`);
	return word;
}

function unknownOptionFailure(
	command: Command,
	name: string,
	optionByName: Map<string, CommandOption>,
): CommandFailure {
	return new UnknownWord(
		`${quoteWord(name)} is not an option of ${quoteWord(`svc ${command.name}`)}`,
		name,
		[...optionByName].filter(([, option]) => !option.internal).map(([key]) => key),
	);
}

function checkArgumentCount(command: Command, args: readonly string[]): void {
	const argumentDefinitions = command.args ?? [];
	const missingArgument = argumentDefinitions.slice(args.length).find(argument => argument.required);
	if (missingArgument) throw new CommandFailure(`${quoteWord(`svc ${command.name}`)} needs <${missingArgument.name}>.`);
	if (args.length > argumentDefinitions.length && argumentDefinitions.at(-1)?.repeatable !== true) {
		const limitText =
			argumentDefinitions.length === 0
				? 'no argument'
				: argumentDefinitions.length === 1
					? 'one argument'
					: `${argumentDefinitions.length} arguments`;
		throw new CommandFailure(
			`${quoteWord(args[argumentDefinitions.length]!)} is one word too many: svc ${command.name} takes ${limitText}.`,
		);
	}
}

/** A failure caused by an unknown word. The printed message suggests the nearest of `knownWords`. */
export class UnknownWord extends CommandFailure {
	readonly word: string;
	readonly knownWords: readonly string[];

	constructor(message: string, word: string, knownWords: readonly string[]) {
		super(message);
		this.word = word;
		this.knownWords = knownWords;
	}
}
