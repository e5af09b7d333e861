/** The syntax phases together: text in, expanded tree out. */
import type { Report } from '../diagnostics/diagnostic.ts';
import type { ConfigInput } from '../dialects/dialect.ts';
import type { Reader } from '../source/reader.ts';
import { Source } from '../source/source.ts';
import type { ConfigTree } from './ast.ts';
import { Expander } from './expander.ts';
import { ExpansionReport } from './expansion-report.ts';
import { FileStructure } from './file-structure.ts';
import { Importer } from './importer.ts';

/** What the grammar cannot know by itself. */
export interface ParseOptions {
	/** Names of the dialect's directives: only to recognise one that stands where a site's address should. */
	readonly knownDirectives: ReadonlySet<string>;
	/** Snippets and constants that nothing uses are told of; only in Configfile if left out. */
	readonly unused?: true;
}

/** Reports that a main file holds nothing at all, not even a comment. */
export function reportEmpty(source: Source, report: ExpansionReport): void {
	report.report({
		code: 'syntax/empty-file',
		severity: 'error',
		message: 'EOF: the configuration is empty.',
		span: { source, start: 0, end: 0 },
		hint: 'Write at least the address of a site, or a comment.',
	});
}

/**
 * Parses a configuration in either text dialect and expands its imports, snippets, constants and passed blocks. Every
 * mistake goes to `report`, each once, in no particular order; what could be read is in the tree. Never throws for
 * what the input holds. `input.format` must not be `json`.
 */
export function parseConfig(input: ConfigInput, reader: Reader, report: Report, options: ParseOptions): ConfigTree {
	const dialect = input.format === 'compatfile' ? 'compatfile' : 'configfile';
	const expansion = new ExpansionReport(dialect, report);
	const importer = new Importer(expansion, reader);
	const expander = new Expander(expansion, importer);
	const structure = new FileStructure(expansion, expander, importer, options.knownDirectives);
	const source = new Source({ name: input.name, text: input.text, path: input.path });
	if (input.text === '') reportEmpty(source, expansion);
	structure.addFile(importer.main(source));
	return structure.finish(options.unused);
}
