/** What the lowering of one site looked at beside the site's own lines: with it a later compilation tells whether the result still holds. */
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import type { Word } from '../syntax/ast.ts';

/** Notes of one site. Everything else that lowering can see is in the context of the tree, or does not change. */
export class SiteWatch {
	/** What was reported. */
	readonly diagnostics: Diagnostic[] = [];
	/** Upstreams of the file that were found, each once or more. */
	readonly upstreams: string[] = [];
	/** Named routes that are run. */
	readonly routes: Word[] = [];
	/** The folder of the text was asked for. */
	folder = false;
	/** The list of files was asked for. */
	files = false;
	/** Upstreams are defined, which belong to the whole document. */
	definesUpstreams = false;

	/** True while nothing is noted: the site is its lines. */
	get empty(): boolean {
		const { diagnostics, upstreams, routes, folder, files, definesUpstreams } = this;
		const noted = diagnostics.length + upstreams.length + routes.length > 0 || folder || files || definesUpstreams;
		return !noted;
	}
}
