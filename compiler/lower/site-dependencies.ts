/**
 * Records what the lowering of a site depended on besides the site's own lines, so that a later compilation can determine whether
 * the result is still valid.
 */
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import type { Word } from '../syntax/ast.ts';

/**
 * The dependencies of one site. Everything else on which lowering depends is part of {@link TreeLowering.contextKey} or never
 * changes.
 */
export class SiteDependencies {
	/** The diagnostics that were reported while the site was lowered. */
	readonly diagnostics: Diagnostic[] = [];
	/** Names of the upstreams outside of the site that were looked up. May contain duplicates. */
	readonly upstreams: string[] = [];
	/** Uses of named routes in the site. */
	readonly routes: Word[] = [];
	/** True if the result depends on the folder of the configuration. */
	usesFolder = false;
	/** True if the result depends on the list of configuration files. */
	usesFiles = false;
	/** True if the site defines upstreams, which belong to the whole document. */
	definesUpstreams = false;

	/** True if nothing has been recorded, so that the result depends only on the site's own lines. */
	get isEmpty(): boolean {
		const { diagnostics, upstreams, routes, usesFolder, usesFiles, definesUpstreams } = this;
		const hasRecords =
			diagnostics.length + upstreams.length + routes.length > 0 || usesFolder || usesFiles || definesUpstreams;
		return !hasRecords;
	}
}
