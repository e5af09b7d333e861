/** The completion script for elvish 0.18 and later. */
import type { CompletionCandidates } from '../command/command.ts';
import { GLOBAL_FLAGS, type OfferedCommand, type OfferedOption, spellingsWithValues } from './offered-words.ts';

/** Returns the script for `eval (svc completion elvish | slurp)`. */
export function elvishCompletion(commands: readonly OfferedCommand[]): string {
	const valueRows: string[] = [];
	const argumentRows: string[] = [];
	for (const { name, options, args } of commands) {
		for (const { spellings, candidates } of options) {
			if (candidates === undefined) continue;
			for (const spelling of spellings)
				valueRows.push(`        &${quote(`${name} ${spelling}`)}=${candidatesText(candidates)}`);
		}
		args.forEach(({ candidates }, index) => {
			if (candidates !== undefined)
				argumentRows.push(`        &${quote(`${name} ${index}`)}=${candidatesText(candidates)}`);
		});
	}
	return `# Completion of svc for elvish. Load it with: eval (svc completion elvish | slurp)

use str

set edit:completion:arg-completer[svc] = {|@given|
    var valued = [
${spellingsWithValues(commands)
	.map(spelling => `        ${quote(spelling)}`)
	.join('\n')}
    ]
    var options = [
        &''=${optionPairs(GLOBAL_FLAGS)}
${commands.map(({ name, options }) => `        &${quote(name)}=${optionPairs(options)}`).join('\n')}
    ]
    var values = [
        &''=''
${valueRows.join('\n')}
    ]
    var places = [
        &' 0'=[
${commands.map(({ name, summary }) => `            [${quote(name)} ${quote(summary)}]`).join('\n')}
        ]
${argumentRows.join('\n')}
    ]

    var command = ''
    var argument = (num 0)
    var expects = ''
    var ended = $false
    for word $given[1..-1] {
        if (not-eq $expects '') {
            set expects = ''
        } elif (or $ended (not (str:has-prefix $word -)) (eq $word -)) {
            if (eq $command '') {
                set command = $word
            } else {
                set argument = (+ $argument 1)
            }
        } elif (eq $word --) {
            set ended = $true
        } elif (has-value $valued $command' '$word) {
            set expects = $word
        }
    }

    var current = $given[-1]
    var before = ''
    if (and (eq $expects '') (not $ended) (str:has-prefix $current --) (str:contains $current =)) {
        var name value = (str:split &max=2 = $current)
        set expects = $name
        set current = $value
        set before = $name'='
    }

    var offered = ''
    if (not-eq $expects '') {
        if (has-key $values $command' '$expects) {
            set offered = $values[$command' '$expects]
        }
    } elif (and (not $ended) (str:has-prefix $current -) (has-key $options $command)) {
        set offered = $options[$command]
    } elif (has-key $places $command' '$argument) {
        set offered = $places[$command' '$argument]
    } elif (has-key $options $command) {
        set offered = $options[$command]
    }

    if (eq $offered files) {
        edit:complete-filename $current
    } elif (not-eq $offered '') {
        for pair $offered {
            edit:complex-candidate $before$pair[0] &display=$pair[0]' ('$pair[1]')'
        }
    }
}
`;
}

function optionPairs(options: readonly OfferedOption[]): string {
	const rows = options.flatMap(option =>
		option.spellings.map(spelling => `[${quote(spelling)} ${quote(option.summary)}]`),
	);
	return `[\n            ${rows.join('\n            ')}\n        ]`;
}

function candidatesText(candidates: CompletionCandidates): string {
	// Older versions of Elvish cannot offer folders alone, so files are offered as well.
	if (typeof candidates === 'string') return 'files';
	return `[${candidates.map(word => `[${quote(word)} ${quote(word)}]`).join(' ')}]`;
}

function quote(text: string): string {
	return `'${text.replaceAll("'", "''")}'`;
}
