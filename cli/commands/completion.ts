/** The command `svc completion`: prints a script with which a shell completes the command lines of svc. */
import { quoteWord, UnknownWord } from '../command/arguments.ts';
import { type Command, EXIT_STATUS } from '../command/command.ts';
import { print } from '../command/terminal.ts';
import type { OfferedCommand } from '../completion/offered-words.ts';
import { COMMANDS } from './index.ts';

type ScriptGenerator = (commands: readonly OfferedCommand[]) => string;

/** The supported shells, each with the generator of its script. */
const SHELLS: { readonly [shell: string]: () => Promise<ScriptGenerator> } = {
	bash: async () => (await import('../completion/bash.ts')).bashCompletion,
	zsh: async () => (await import('../completion/zsh.ts')).zshCompletion,
	fish: async () => (await import('../completion/fish.ts')).fishCompletion,
	powershell: async () => (await import('../completion/powershell.ts')).powershellCompletion,
	elvish: async () => (await import('../completion/elvish.ts')).elvishCompletion,
};

export const completion: Command = {
	name: 'completion',
	summary: 'Print a completion script for a shell',
	details: [
		'The script completes commands, options, and the values of options that take one of a fixed set. It is static: print it again after an update.',
		"Load it in the shell's startup file, with `source <(svc completion bash)`, the same with zsh, `svc completion fish | source`, `svc completion powershell | Out-String | Invoke-Expression` or `eval (svc completion elvish | slurp)`.",
	],
	args: [
		{
			name: 'SHELL',
			required: true,
			offers: Object.keys(SHELLS),
			summary: 'bash, zsh, fish, powershell or elvish',
		},
	],
	async run({ args }) {
		const shell = args[0]!;
		const loadGenerator = Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined;
		if (!loadGenerator) {
			const knownShells = Object.keys(SHELLS);
			throw new UnknownWord(
				`${quoteWord(shell)} is not a supported shell (${knownShells.join(', ')})`,
				shell,
				knownShells,
			);
		}
		const [generateScript, { completionsOf }, commands] = await Promise.all([
			loadGenerator(),
			import('../completion/offered-words.ts'),
			Promise.all(COMMANDS.map(entry => entry.load())),
		]);
		print(generateScript(completionsOf(commands)));
		return EXIT_STATUS.ok;
	},
};
