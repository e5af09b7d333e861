/** The completion script for bash 3.2 and later. */
import type { CompletionCandidates } from '../command/command.ts';
import { GLOBAL_FLAGS, type OfferedCommand, type OfferedOption, spellingsWithValues } from './offered-words.ts';

/** Returns the script for `source <(svc completion bash)`. */
export function bashCompletion(commands: readonly OfferedCommand[]): string {
	const optionCases = new Map<string, string>([
		['', joinSpellings(GLOBAL_FLAGS)],
		...commands.map(({ name, options }): [string, string] => [name, joinSpellings(options)]),
	]);
	const valueCases = new Map<string, string>();
	const argumentCases = new Map<string, string>([[' 0', `words=${quote(commands.map(({ name }) => name).join(' '))}`]]);
	for (const { name, options, args } of commands) {
		for (const option of options) {
			if (option.candidates === undefined) continue;
			for (const spelling of option.spellings)
				valueCases.set(`${name} ${spelling}`, candidatesAssignment(option.candidates));
		}
		args.forEach(({ candidates }, index) => {
			if (candidates !== undefined) argumentCases.set(`${name} ${index}`, candidatesAssignment(candidates));
		});
	}
	return `# Completion of svc for bash. Load it with: source <(svc completion bash)

_svc() {
	local current=\${COMP_WORDS[COMP_CWORD]} command='' expects='' ended='' argument=0 kind='' words='' options='' word at
	for ((at = 1; at < COMP_CWORD; at++)); do
		word=\${COMP_WORDS[at]}
		if [[ $word == = ]]; then
			# bash cuts --name=value into three words.
			continue
		elif [[ -n $expects ]]; then
			expects=''
		elif [[ -n $ended || $word != -?* ]]; then
			if [[ -z $command ]]; then command=$word; else argument=$((argument + 1)); fi
		elif [[ $word == -- ]]; then
			ended=yes
		else
			case "$command $word" in
			${spellingsWithValues(commands).map(quote).join(' | \\\n\t\t\t')})
				expects=$word
				;;
			esac
		fi
	done
	if [[ $current == = ]]; then current=''; fi

	case $command in
${caseBranches(optionCases, '\t', value => `options=${quote(value)}`)}
	esac
	if [[ -n $expects ]]; then
		case "$command $expects" in
${caseBranches(valueCases, '\t\t')}
		esac
	elif [[ -z $ended && $current == -* ]]; then
		words=$options
	else
		case "$command $argument" in
${caseBranches(argumentCases, '\t\t')}
		*) words=$options ;;
		esac
	fi

	COMPREPLY=()
	case $kind in
	# Nothing here leaves it to bash, which offers files.
	file) return ;;
	folder)
		compopt -o dirnames +o default +o bashdefault 2>/dev/null
		return
		;;
	esac
	compopt +o default +o bashdefault 2>/dev/null
	while IFS='' read -r word; do COMPREPLY+=("$word"); done < <(compgen -W "$words" -- "$current")
}

complete -o bashdefault -o default -F _svc svc
`;
}

/** Returns the branches of a shell `case` statement. Patterns with the same outcome share a branch. */
function caseBranches(
	outcomesByPattern: ReadonlyMap<string, string>,
	indent: string,
	statementFor: (outcome: string) => string = outcome => outcome,
): string {
	const patternsByOutcome = new Map<string, string[]>();
	for (const [pattern, outcome] of outcomesByPattern) {
		const patternsOfOutcome = patternsByOutcome.get(outcome);
		if (patternsOfOutcome) patternsOfOutcome.push(pattern);
		else patternsByOutcome.set(outcome, [pattern]);
	}
	return [...patternsByOutcome]
		.map(([outcome, patternList]) => `${indent}${patternList.map(quote).join(' | ')}) ${statementFor(outcome)} ;;`)
		.join('\n');
}

function candidatesAssignment(candidates: CompletionCandidates): string {
	return typeof candidates === 'string' ? `kind=${candidates}` : `words=${quote(candidates.join(' '))}`;
}

function joinSpellings(options: readonly OfferedOption[]): string {
	return options.flatMap(option => option.spellings).join(' ');
}

function quote(text: string): string {
	return `'${text.replaceAll("'", "'\\''")}'`;
}
