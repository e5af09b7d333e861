/** The words that completion scripts offer, derived from the command definitions. They are the same for every shell. */
import type { Command, CommandArgument, CommandOption, CompletionCandidates } from '../command/command.ts';
import { TOPICS } from '../manual/topics.ts';

/** An option, with what a completion script needs to know about it. */
export interface OfferedOption {
	/** The spellings of the option, such as `-c` and `--config`; the short ones come first. */
	readonly spellings: readonly string[];
	readonly summary: string;
	/** Name of the option's value; undefined for a flag. */
	readonly valueName: string | undefined;
	readonly candidates: CompletionCandidates | undefined;
	readonly repeatable: boolean;
}

/** An argument, with what a completion script needs to know about it. */
export interface OfferedArgument {
	readonly name: string;
	readonly required: boolean;
	readonly candidates: CompletionCandidates | undefined;
}

/** A command, with what a completion script needs to know about it. */
export interface OfferedCommand {
	readonly name: string;
	readonly summary: string;
	/** The options of the command and the global flags. */
	readonly options: readonly OfferedOption[];
	readonly args: readonly OfferedArgument[];
}

const VERBOSE_OPTION: CommandOption = { name: 'verbose', short: 'v', summary: 'Log at level debug for this run' };
const HELP_OPTION: CommandOption = { name: 'help', short: 'h', summary: 'Print help' };
const VERSION_OPTION: CommandOption = { name: 'version', short: 'V', summary: 'Print the version' };

/** The options that may be given before the command. */
export const GLOBAL_FLAGS: readonly OfferedOption[] = [VERBOSE_OPTION, HELP_OPTION, VERSION_OPTION].map(option =>
	offeredOption(option, []),
);

/** Returns the words to offer after each command. Internal options are omitted. */
export function completionsOf(commands: readonly Command[]): OfferedCommand[] {
	const commandNames = commands.map(command => command.name);
	return commands.map(command => {
		const ownOptions = (command.options ?? []).filter(option => !option.internal);
		const ownSpellings = new Set(ownOptions.flatMap(spellingsOf));
		const globalOptions = [VERBOSE_OPTION, HELP_OPTION].map(option => offeredOption(option, commandNames));
		return {
			name: command.name,
			summary: command.summary,
			options: [
				...ownOptions.map(option => offeredOption(option, commandNames)),
				// If a command uses the letter of a global flag for an option of its own, the flag is offered without the letter.
				...globalOptions.map(option => ({
					...option,
					spellings: option.spellings.filter(spelling => !ownSpellings.has(spelling)),
				})),
			],
			args: (command.args ?? []).flatMap(argument => {
				const { name, required } = argument;
				const offeredArgument = {
					name,
					required: required === true,
					candidates: candidatesOf(argument, name, commandNames),
				};
				// `svc help` takes the name of a command or guide, or words to search for. Nothing is offered for a second word.
				const isRepeated = argument.repeatable && argument.offers !== 'command-or-guide';
				return isRepeated ? Array.from({ length: MAX_OFFERED_ARGUMENTS }, () => offeredArgument) : [offeredArgument];
			}),
		};
	});
}

/** How many times in a row words are offered for a repeatable argument. */
const MAX_OFFERED_ARGUMENTS = 8;

/**
 * Returns a text such as `run --config` for each option that takes a value. From this list, completion scripts know that the word
 * after the option is its value.
 */
export function spellingsWithValues(commands: readonly OfferedCommand[]): string[] {
	return commands.flatMap(({ name, options }) =>
		options
			.filter(option => option.valueName !== undefined)
			.flatMap(option => option.spellings.map(spelling => `${name} ${spelling}`)),
	);
}

function offeredOption(option: CommandOption, commandNames: readonly string[]): OfferedOption {
	// If the value of an option may be omitted, the next word is never its value.
	const valueName = option.valueOptional ? undefined : option.valueName;
	return {
		spellings: spellingsOf(option),
		summary: option.summary,
		valueName,
		candidates: valueName === undefined ? undefined : candidatesOf(option, valueName, commandNames),
		repeatable: option.repeatable === true,
	};
}

function spellingsOf(option: CommandOption): string[] {
	const names = [option.name, ...(option.short ? [option.short] : []), ...(option.aliases ?? [])];
	return [
		...names.filter(name => name.length === 1).map(name => `-${name}`),
		...names.filter(name => name.length > 1).map(name => `--${name}`),
	];
}

function candidatesOf(
	definition: Pick<CommandOption | CommandArgument, 'offers'>,
	name: string,
	commandNames: readonly string[],
): CompletionCandidates | undefined {
	if (definition.offers === 'command') return commandNames;
	if (definition.offers === 'command-or-guide') return [...commandNames, ...TOPICS];
	return definition.offers ?? (name === 'PATH' ? 'file' : undefined);
}
