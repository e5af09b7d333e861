/** Compiles a configuration for a command, and prints the diagnostics. */
import type { Plan } from '../../compiler/codegen/plan/plan.ts';
import { type CompileResult, createCompiler } from '../../compiler/compiler.ts';
import type { Diagnostic } from '../../compiler/diagnostics/diagnostic.ts';
import { renderDiagnostic } from '../../compiler/diagnostics/render.ts';
import { sortDiagnostics } from '../../compiler/diagnostics/sort-diagnostics.ts';
import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import type { AdminSettings, Document } from '../../compiler/document/document.ts';
import { missingRootWarnings } from '../../compiler/lint/missing-roots.ts';
import { SilencingComments } from '../../compiler/lint/silencing-comments.ts';
import { formatText } from '../../compiler/syntax/format.ts';
import { firstDifferingLine } from '../../compiler/syntax/format-difference.ts';
import { diskReader } from '../../runtime/compile/disk-reader.ts';
import { CommandFailure } from '../command/command.ts';
import { refusalSentence } from '../command/refusal.ts';
import { shouldColorStandardError } from '../command/terminal.ts';
import { unformattedMessage } from './unformatted.ts';

/** A configuration that compiled without errors. */
export interface Compilation extends Pick<CompileResult, 'tests' | 'locate' | 'places' | 'files'> {
	readonly document: Document;
	readonly plan: Plan;
	/** Rendered warnings, each followed by a newline; '' if there are none. */
	readonly warnings: string;
}

/** Options of {@link compileConfiguration}. */
export interface CompilationOptions {
	/** True if the result is to contain {@link CompileResult.places}. */
	readonly wantsPlaces?: boolean;
	/** True if the configuration is to be served on this machine, so that the warnings mention folders that do not exist. */
	readonly isServedLocally?: boolean;
}

/** Compiles a configuration. @throws {@link CommandFailure} with all problems rendered, in order */
export function compileConfiguration(input: ConfigInput, options: CompilationOptions = {}): Compilation {
	const reader = diskReader(process.cwd());
	const compiler = createCompiler(reader, { places: options.wantsPlaces });
	const { document, plan, diagnostics: allDiagnostics, tests, locate, places, files } = compiler.compile(input);
	let diagnostics =
		input.format === 'json' ? allDiagnostics : new SilencingComments(input.format).filter(allDiagnostics);
	if (document && options.isServedLocally)
		diagnostics = sortDiagnostics([...diagnostics, ...missingRootWarnings(input, document, locate, reader)]);
	const renderedDiagnostics = renderDiagnostics(diagnostics);
	if (!document || !plan) throw refusalOf(input, diagnostics);
	const warnings = [formatWarning(input), renderedDiagnostics].filter(text => text !== '').join('\n');
	return { document, plan, tests, locate, places, files, warnings };
}

/**
 * Returns the option `admin` of a configuration, even if the configuration is refused; `refusal` says why it is. Throws nothing.
 */
export function readAdminOption(input: ConfigInput): {
	readonly admin: AdminSettings | undefined;
	readonly refusal: CommandFailure | undefined;
} {
	const { document, admin, diagnostics } = createCompiler(diskReader(process.cwd())).compile(input);
	if (document) return { admin, refusal: undefined };
	return { admin: isUsableAdmin(admin) ? admin : undefined, refusal: refusalOf(input, diagnostics) };
}

/** Reports whether the option `admin` of a refused configuration has values of the right types. */
function isUsableAdmin(admin: AdminSettings | undefined): boolean {
	if (typeof admin !== 'object' || admin === null) return false;
	const { listen = '', token = '', origins = [] } = admin;
	return [listen, token].every(value => typeof value === 'string') && Array.isArray(origins);
}

function refusalOf(input: ConfigInput, diagnostics: readonly Diagnostic[]): CommandFailure {
	return new CommandFailure(refusalSentence(input.name, diagnostics), {
		preamble: `${renderDiagnostics(diagnostics)}\n`,
	});
}

/** Renders diagnostics for standard error, separated by blank lines and ended by a newline; '' if there are none. */
export function renderDiagnostics(diagnostics: readonly Diagnostic[]): string {
	const color = shouldColorStandardError();
	return diagnostics.map(diagnostic => `${renderDiagnostic(diagnostic, { color })}\n`).join('\n');
}

/** Returns a warning if `svc fmt` would change the text, otherwise ''. Ignores imported files. */
export function formatWarning({ format, text, name }: ConfigInput): string {
	if (format === 'json') return '';
	const line = firstDifferingLine(text, formatText(text));
	return line === undefined ? '' : `warning: ${unformattedMessage(name, line, format)}\n`;
}
