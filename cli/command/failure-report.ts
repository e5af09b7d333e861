/** Reports a failed command with one sentence on standard error, never with a stack trace. */
import { UnknownWord } from './arguments.ts';
import { CommandFailure, EXIT_STATUS } from './command.ts';
import { printError } from './terminal.ts';

/** Prints what went wrong and resolves to the exit status. */
export async function reportFailure(error: unknown): Promise<number> {
	printError(await failureText(error));
	return error instanceof CommandFailure ? error.status : EXIT_STATUS.failed;
}

/** Returns the text that {@link reportFailure} prints. */
export async function failureText(error: unknown): Promise<string> {
	if (error instanceof UnknownWord) {
		// This module is loaded only here, because correct command lines do not need it and should be fast.
		const { nearestName } = await import('../../compiler/diagnostics/suggest.ts');
		const nearest = nearestName(error.word, error.knownWords);
		return `error: ${error.message}${nearest === undefined ? '.' : `; did you mean \`${nearest}\`?`}\n`;
	}
	if (error instanceof CommandFailure) return `${error.preamble}error: ${error.message}\n`;
	return `error: unexpected internal failure: ${firstLineOf(error)}\n`;
}

/** Returns the first line of a thrown value's message. */
export function firstLineOf(error: unknown): string {
	const text = error instanceof Error ? error.message : String(error);
	return text.split('\n', 1)[0]!;
}
