/**
 * Records what the lowering of one site looked at besides the site's own lines, so that a later compilation can tell whether
 * the result is still valid.
 */
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import type { Word } from '../syntax/ast.ts';

/** The record of one site. Everything else visible to lowering is in the context of the tree or never changes. */
export class SiteWatch {
	/** Reported diagnostics. */
	readonly diagnostics: Diagnostic[] = [];
	/** The file's upstreams that were looked up, possibly repeated. */
	readonly upstreams: string[] = [];
	/** Named routes that are run. */
	readonly routes: Word[] = [];
	/** True if the folder of the text was read. */
	folder = false;
	/** True if the list of files was read. */
	files = false;
	/** True if the site defines upstreams, which belong to the whole document. */
	definesUpstreams = false;

	/** True while nothing is recorded: the result depends on the site's lines alone. */
	get empty(): boolean {
		const { diagnostics, upstreams, routes, folder, files, definesUpstreams } = this;
		const noted = diagnostics.length + upstreams.length + routes.length > 0 || folder || files || definesUpstreams;
		return !noted;
	}
}
