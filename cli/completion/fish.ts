/** The completion script for fish 3.0 and later. */
import type { CompletionCandidates } from '../command/command.ts';
import { GLOBAL_FLAGS, type OfferedCommand, type OfferedOption, spellingsWithValues } from './offered-words.ts';

/** Returns the script for `svc completion fish | source`. */
export function fishCompletion(commands: readonly OfferedCommand[]): string {
	const lines = [
		'# Completion of svc for fish. Load it with: svc completion fish | source',
		'',
		"function __svc_at --description 'Whether the cursor is after this command, and at this argument if one is given'",
		`    set -l valued ${spellingsWithValues(commands).map(quote).join(' \\\n        ')}`,
		"    set -l command ''",
		'    set -l argument 0',
		"    set -l expects ''",
		"    set -l ended ''",
		'    set -l words (commandline -opc)',
		'    set -e words[1]',
		'    for word in $words',
		'        if test -n "$expects"',
		"            set expects ''",
		'        else if test -n "$ended"; or not string match -q -- "-?*" $word',
		'            if test -z "$command"',
		'                set command $word',
		'            else',
		'                set argument (math $argument + 1)',
		'            end',
		'        else if test "$word" = --',
		'            set ended yes',
		'        else if contains -- "$command $word" $valued',
		'            set expects $word',
		'        end',
		'    end',
		'    test "$command" = "$argv[1]"; or return 1',
		'    test (count $argv) -eq 1; or test $argument -eq $argv[2]',
		'end',
		'',
		'complete -c svc -e',
		'complete -c svc -f',
		...GLOBAL_FLAGS.map(option => optionLine("__svc_at ''", option)),
		...commands.map(
			({ name, summary }) => `complete -c svc -n ${quote("__svc_at ''")} -a ${quote(name)} -d ${quote(summary)}`,
		),
	];
	for (const { name, options, args } of commands) {
		lines.push('', ...options.map(option => optionLine(`__svc_at ${name}`, option)));
		args.forEach(({ candidates }, index) => {
			if (candidates !== undefined)
				lines.push(`complete -c svc -n ${quote(`__svc_at ${name} ${index}`)} ${candidateArguments(candidates)}`);
		});
	}
	return `${lines.join('\n')}\n`;
}

function optionLine(condition: string, option: OfferedOption): string {
	const spellings = option.spellings.map(spelling =>
		spelling.startsWith('--') ? `-l ${spelling.slice(2)}` : `-s ${spelling.slice(1)}`,
	);
	const valueArguments =
		option.valueName === undefined
			? ''
			: option.candidates === undefined
				? ' -x'
				: ` -r ${candidateArguments(option.candidates)}`;
	return `complete -c svc -n ${quote(condition)} ${spellings.join(' ')}${valueArguments} -d ${quote(option.summary)}`;
}

function candidateArguments(candidates: CompletionCandidates): string {
	if (candidates === 'file') return '-F';
	return `-f -a ${quote(typeof candidates === 'string' ? '(__fish_complete_directories)' : candidates.join(' '))}`;
}

function quote(text: string): string {
	return `'${text.replace(/[\\']/g, '\\$&')}'`;
}
