/** The completion script for zsh: to be sourced, or installed as the file `_svc` on the fpath. */
import type { CompletionCandidates } from '../command/command.ts';
import { GLOBAL_FLAGS, type OfferedArgument, type OfferedCommand, type OfferedOption } from './offered-words.ts';

/** Returns the script for `source <(svc completion zsh)`. */
export function zshCompletion(commands: readonly OfferedCommand[]): string {
	return `#compdef svc
# Completion of svc for zsh. Load it with: source <(svc completion zsh)
# or write it to a file named _svc in a folder of $fpath.

_svc() {
	local context state state_descr line ret=1
	typeset -A opt_args
	_arguments -C -S \\
${argumentSpecs(GLOBAL_FLAGS, [], '\t\t')} \\
		'1: :->command' \\
		'*:: :->words' && ret=0

	case $state in
	command)
		local -a commands
		commands=(
${commands.map(({ name, summary }) => `\t\t\t${quote(`${name}:${summary}`)}`).join('\n')}
		)
		_describe -t commands command commands && ret=0
		;;
	words)
		case $words[1] in
${commands
	.map(
		({ name, options, args }) =>
			`\t\t${name})\n\t\t\t_arguments -S \\\n${argumentSpecs(options, args, '\t\t\t\t')} && ret=0\n\t\t\t;;`,
	)
	.join('\n')}
		esac
		;;
	esac
	return ret
}

# On the fpath this file is the body of the function; sourced, it registers it.
if [[ $funcstack[1] == _svc ]]; then
	_svc "$@"
elif (( $+functions[compdef] )); then
	compdef _svc svc
else
	print -u2 'svc: completion needs "autoload -Uz compinit && compinit" before it.'
fi
`;
}

/** Returns arguments for `_arguments`, one per line. */
function argumentSpecs(options: readonly OfferedOption[], args: readonly OfferedArgument[], indent: string): string {
	return [
		...options.flatMap(optionSpecs),
		...args.map(({ name, required, candidates }, index) =>
			quote(`${index + 1}:${required ? '' : ':'}${name}:${completionAction(candidates)}`),
		),
	]
		.map(spec => `${indent}${spec}`)
		.join(' \\\n');
}

function optionSpecs(option: OfferedOption): string[] {
	const exclusions = option.repeatable ? '*' : option.spellings.length > 1 ? `(${option.spellings.join(' ')})` : '';
	return option.spellings.map(spelling => {
		const valueSpec =
			option.valueName === undefined ? '' : `:${escapeSpec(option.valueName)}:${completionAction(option.candidates)}`;
		const separator = option.valueName === undefined ? '' : spelling.startsWith('--') ? '=' : '+';
		return quote(`${exclusions}${spelling}${separator}[${escapeSpec(option.summary)}]${valueSpec}`);
	});
}

function completionAction(candidates: CompletionCandidates | undefined): string {
	if (candidates === undefined) return ' ';
	if (candidates === 'file') return '_files';
	return typeof candidates === 'string' ? '_files -/' : `(${candidates.join(' ')})`;
}

function escapeSpec(text: string): string {
	return text.replace(/[\\[\]:]/g, '\\$&');
}

function quote(text: string): string {
	return `'${text.replaceAll("'", "'\\''")}'`;
}
