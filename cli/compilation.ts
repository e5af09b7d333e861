/** Compiles a configuration for a command, and prints what the compiler found. */
import { type Compiled, compile } from '../compiler/compiler.ts';
import { renderDiagnostic } from '../compiler/diagnostics/render.ts';
import type { Diagnostic } from '../compiler/diagnostics/diagnostic.ts';
import type { ConfigInput } from '../compiler/dialects/dialect.ts';
import type { Document } from '../compiler/document/document.ts';
import { diskReader } from '../runtime/disk-reader.ts';
import { CommandFailure } from './command.ts';
import { colourOnStandardError } from './terminal.ts';

/** A configuration that compiles. */
export interface Compilation {
	readonly document: Document;
	/** Rendered warnings, a line end after each; '' when there is none. */
	readonly warnings: string;
	readonly compiled: Compiled;
}

/** Compiles. Throws {@link CommandFailure} with every problem rendered, the first one first. */
export function compileConfiguration(input: ConfigInput): Compilation {
	const compiled = compile(input, diskReader(process.cwd()));
	const colour = colourOnStandardError();
	const rendered = compiled.diagnostics.map(one => `${renderDiagnostic(one, { color: colour })}\n`).join('\n');
	if (!compiled.document) throw new CommandFailure(refusal(input.name, compiled.diagnostics), { before: `${rendered}\n` });
	return { document: compiled.document, warnings: rendered, compiled };
}

/** `Configfile is refused: 2 errors, 1 warning.` */
export function refusal(name: string, diagnostics: readonly Pick<Diagnostic, 'severity'>[]): string {
	const errors = diagnostics.filter(one => one.severity === 'error').length;
	const warnings = diagnostics.filter(one => one.severity === 'warning').length;
	return `${name} is refused: ${counted(errors, 'error')}${warnings === 0 ? '' : `, ${counted(warnings, 'warning')}`}.`;
}

/** `1 error`, `2 errors`. */
export function counted(count: number, noun: string): string {
	return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
