/** The completion script for PowerShell 5 and later. */
import type { CompletionCandidates } from '../command/command.ts';
import { GLOBAL_FLAGS, type OfferedCommand, type OfferedOption, spellingsWithValues } from './offered-words.ts';

/** Returns the script for `svc completion powershell | Out-String | Invoke-Expression`. */
export function powershellCompletion(commands: readonly OfferedCommand[]): string {
	const valueBranches: string[] = [];
	const argumentBranches: string[] = [];
	for (const { name, options, args } of commands) {
		for (const { spellings, candidates } of options) {
			if (candidates === undefined) continue;
			for (const spelling of spellings) valueBranches.push(switchBranch(`${name} ${spelling}`, candidates));
		}
		args.forEach(({ candidates }, index) => {
			if (candidates !== undefined) argumentBranches.push(switchBranch(`${name} ${index}`, candidates));
		});
	}
	// PowerShell's comparisons ignore case by default, but -c and -C are different options.
	return `# Completion of svc for PowerShell. Load it with: svc completion powershell | Out-String | Invoke-Expression

Register-ArgumentCompleter -Native -CommandName 'svc' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    $valued = @(
${spellingsWithValues(commands)
	.map(spelling => `        ${quote(spelling)}`)
	.join(',\n')}
    )
    $command = ''
    $argument = 0
    $expects = ''
    $ended = $false
    foreach ($element in @($commandAst.CommandElements | Select-Object -Skip 1)) {
        if ($element.Extent.EndOffset -ge $cursorPosition) { break }
        $word = $element.Extent.Text
        if ($expects -ne '') { $expects = '' }
        elseif ($ended -or -not $word.StartsWith('-') -or $word -eq '-') {
            if ($command -eq '') { $command = $word } else { $argument++ }
        }
        elseif ($word -eq '--') { $ended = $true }
        elseif ($valued -ccontains "$command $word") { $expects = $word }
    }

    $current = "$wordToComplete"
    $before = ''
    if ($expects -eq '' -and -not $ended -and $current -cmatch '^(--[^=]+)=(.*)$') {
        $expects = $Matches[1]
        $current = $Matches[2]
        $before = "$expects="
    }

    $options = @()
    switch -CaseSensitive ($command) {
${optionsBranch('', GLOBAL_FLAGS)}
${commands.map(({ name, options }) => optionsBranch(name, options)).join('\n')}
    }

    $words = @()
    $kind = ''
    if ($expects -ne '') {
        switch -CaseSensitive ("$command $expects") {
${valueBranches.join('\n')}
        }
    }
    elseif (-not $ended -and $current.StartsWith('-')) { $words = $options }
    else {
        switch -CaseSensitive ("$command $argument") {
            ' 0' {
                $words = @(
${commands.map(({ name, summary }) => `                    ${candidatePair(name, summary)}`).join(',\n')}
                )
                break
            }
${argumentBranches.join('\n')}
            default { $words = $options }
        }
    }

    # Returning nothing leaves it to PowerShell, which offers files.
    if ($kind -eq 'file' -and $before -eq '') { return }
    if ($kind -ne '') {
        [System.Management.Automation.CompletionCompleters]::CompleteFilename($current) |
            Where-Object { $kind -eq 'file' -or $_.ResultType -eq 'ProviderContainer' } |
            ForEach-Object {
                [System.Management.Automation.CompletionResult]::new($before + $_.CompletionText, $_.ListItemText, $_.ResultType, $_.ToolTip)
            }
        return
    }
    foreach ($pair in $words) {
        if ($pair[0].StartsWith($current, [System.StringComparison]::Ordinal)) {
            [System.Management.Automation.CompletionResult]::new($before + $pair[0], $pair[0], 'ParameterValue', $pair[1])
        }
    }
}
`;
}

function optionsBranch(command: string, options: readonly OfferedOption[]): string {
	const pairs = options.flatMap(option => option.spellings.map(spelling => candidatePair(spelling, option.summary)));
	return `        ${quote(command)} {\n            $options = @(\n${pairs.map(pairText => `                ${pairText}`).join(',\n')}\n            )\n            break\n        }`;
}

function switchBranch(key: string, candidates: CompletionCandidates): string {
	const statement =
		typeof candidates === 'string'
			? `$kind = ${quote(candidates)}`
			: `$words = @(${candidates.map(word => candidatePair(word, word)).join(', ')})`;
	return `            ${quote(key)} { ${statement}; break }`;
}

function candidatePair(word: string, summary: string): string {
	return `@(${quote(word)}, ${quote(summary)})`;
}

function quote(text: string): string {
	return `'${text.replaceAll("'", "''")}'`;
}
