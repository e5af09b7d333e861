/** A configuration text after parsing and expansion, as the phases after it see the text. */
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import type { NamedBlock, SiteBlock } from './ast.ts';

/** A configuration text after parsing and expansion. Spans may refer to pieces of the text (see `wholeSpan`). */
export interface ParsedText {
	readonly namedRoutes: readonly NamedBlock[];
	/** Returns a site by its index in the document; undefined for results of a session that has compiled again since. */
	readonly siteBlock: (index: number) => SiteBlock | undefined;
	/** Returns warnings about names that are never used. For a Configfile, they are among the diagnostics as well. */
	readonly unusedNames: () => readonly Diagnostic[];
}
