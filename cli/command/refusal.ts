/** The last sentence that a command prints when it refuses a configuration. */
import type { Diagnostic } from '../../compiler/diagnostics/diagnostic.ts';

/** Returns a sentence such as `Configfile is refused: 2 errors, 1 warning.` */
export function refusalSentence(name: string, diagnostics: readonly Pick<Diagnostic, 'severity'>[]): string {
	const errors = diagnostics.filter(diagnostic => diagnostic.severity === 'error').length;
	const warnings = diagnostics.filter(diagnostic => diagnostic.severity === 'warning').length;
	return `${name} is refused: ${withPlural(errors, 'error')}${warnings === 0 ? '' : `, ${withPlural(warnings, 'warning')}`}.`;
}

function withPlural(count: number, noun: string): string {
	return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
