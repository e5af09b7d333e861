/** Runs the syntax phases, which turn a text into the expanded tree. */
import type { Diagnostic, Report } from '../diagnostics/diagnostic.ts';
import type { ConfigInput } from '../dialects/dialect.ts';
import type { Reader } from '../source/reader.ts';
import { Source } from '../source/source.ts';
import type { ConfigTree } from './ast.ts';
import { Expander } from './expander.ts';
import { ExpansionReport } from './expansion-report.ts';
import { FileStructure } from './file-structure.ts';
import { Importer } from './importer.ts';

export interface ParseOptions {
	/** The names of the dialect's directives. They are used only to recognize a directive where a site address is expected. */
	readonly knownDirectives: ReadonlySet<string>;
}

export interface ParsedConfig extends ConfigTree {
	/** Returns warnings about names that are never used. For a Configfile, they have been reported as well. */
	readonly unusedNames: () => readonly Diagnostic[];
}

/** Reports a main file without any text. */
export function reportEmptyFile(source: Source, report: ExpansionReport): void {
	report.report({
		code: 'syntax/empty-file',
		severity: 'error',
		message: 'EOF: the configuration is empty.',
		span: { source, start: 0, end: 0 },
		hint: 'Write at least the address of a site, or a comment.',
	});
}

/**
 * Parses a configuration in one of the text dialects, and expands its imports, snippets, constants and passed blocks. Passes every
 * mistake to `report` once, in no particular order. The tree contains everything that could be parsed. Never throws, whatever the
 * input. `input.format` must not be `json`.
 */
export function parseConfig(input: ConfigInput, reader: Reader, report: Report, options: ParseOptions): ParsedConfig {
	const dialect = input.format === 'compatfile' ? 'compatfile' : 'configfile';
	const expansionReport = new ExpansionReport(dialect, report);
	const importer = new Importer(expansionReport, reader);
	const expander = new Expander(expansionReport, importer);
	const structure = new FileStructure(expansionReport, expander, importer, options.knownDirectives);
	const source = new Source({ name: input.name, text: input.text, path: input.path });
	if (input.text === '') reportEmptyFile(source, expansionReport);
	structure.addFile(importer.readMainFile(source));
	return { ...structure.finish(), unusedNames: () => structure.unusedNames() };
}
