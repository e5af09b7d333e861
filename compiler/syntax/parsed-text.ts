/** What later phases get from parsing and expanding a configuration text. */
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import type { NamedBlock, SiteBlock } from './ast.ts';

/** A configuration text after parsing and expansion. Spans may refer to pieces of the text (see `wholeSpan`). */
export interface ParsedText {
	readonly namedRoutes: readonly NamedBlock[];
	/** Returns the site with this index in the compiled configuration; undefined if another text has been compiled since. */
	readonly siteBlock: (index: number) => SiteBlock | undefined;
	/** Returns warnings about names that are never used. For a Configfile, they are among the diagnostics as well. */
	readonly unusedNames: () => readonly Diagnostic[];
}
