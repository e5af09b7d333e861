/** How a failed command says so: one sentence on standard error, never a stack. */
import { UnknownWord } from './arguments.ts';
import { CommandFailure, EXIT } from './command.ts';
import { printError } from './terminal.ts';

/** Prints what went wrong and resolves to the exit status. */
export async function reportFailure(error: unknown): Promise<number> {
	printError(await failureText(error));
	return error instanceof CommandFailure ? error.status : EXIT.failed;
}

/** The text of a failure as {@link reportFailure} prints it. */
export async function failureText(error: unknown): Promise<string> {
	if (error instanceof UnknownWord) {
		// Loaded here only: a command line without a mistake does not pay for it.
		const { suggest } = await import('../compiler/diagnostics/suggest.ts');
		const nearest = suggest(error.word, error.known);
		return `error: ${error.message}${nearest === undefined ? '.' : `; did you mean \`${nearest}\`?`}\n`;
	}
	if (error instanceof CommandFailure) return `${error.before}error: ${error.message}\n`;
	return `error: an unexpected failure inside svc: ${sentenceOf(error)}\n`;
}

/** The first line of whatever was thrown. */
export function sentenceOf(error: unknown): string {
	const text = error instanceof Error ? error.message : String(error);
	return text.split('\n', 1)[0]!;
}
