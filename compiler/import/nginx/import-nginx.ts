/** Translates an nginx.conf to a Configfile: `svc import`. */
import type { Diagnostic, Report } from '../../diagnostics/diagnostic.ts';
import type { Reader } from '../../source/reader.ts';
import { Source } from '../../source/source.ts';
import { ConfigfileWriter, type KeptDirective } from './configfile-writer.ts';
import { readNginx } from './nginx-includes.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { knownReason } from './write-locations.ts';
import { writeServers } from './write-servers.ts';

export interface NginxImport {
	/** The Configfile; empty if there are errors. */
	readonly text: string;
	/** Number of directives that were translated. */
	readonly translated: number;
	/** The directives that are written as comments. */
	readonly kept: readonly KeptDirective[];
	readonly diagnostics: readonly Diagnostic[];
}

/**
 * Translates a file. `file.folder` is the folder from which relative `include` paths start, and `file.name` is shown in
 * diagnostics.
 */
export function importNginx(file: { text: string; name: string; folder: string }, reader: Reader): NginxImport {
	const diagnostics: Diagnostic[] = [];
	const source = new Source({ name: file.name, text: file.text });
	const directives = readNginx(source, file.folder, reader, one => diagnostics.push(one));
	checkBlocks(directives, undefined, one => diagnostics.push(one));
	if (diagnostics.length > 0) return { text: '', translated: 0, kept: [], diagnostics };
	const out = new ConfigfileWriter();
	const httpDirectives: NginxDirective[] = [];
	for (const directive of directives) {
		if (directive.name === 'http' && directive.block) {
			out.countTranslated(directive);
			httpDirectives.push(...directive.block);
		} else if (['server', 'upstream', 'map', 'geo', 'split_clients'].includes(directive.name))
			httpDirectives.push(directive);
		else if (directive.name === 'stream')
			out.keepAsComment(directive, 'only HTTP is served: connections of other protocols are not passed on');
		else if (directive.name === 'events' && directive.block)
			out.keepAsComment(directive, 'connections are handled without such settings');
		else out.keepAsComment(directive, 'settings of the process have no counterpart in a Configfile');
	}
	writeServers(httpDirectives, out);
	out.keepUnused(directives, knownReason);
	return { text: out.renderText(), translated: out.translatedCount, kept: out.keptDirectives, diagnostics };
}

/** Directives that must have a block. */
const BLOCK_DIRECTIVES: ReadonlySet<string> = new Set([
	'http',
	'server',
	'location',
	'if',
	'limit_except',
	'upstream',
	'map',
	'geo',
	'split_clients',
]);

/**
 * Reports directives whose block is missing. Lines inside `upstream`, `map`, `geo` and `split_clients` are not checked, because
 * their first word is not a directive.
 */
function checkBlocks(directives: readonly NginxDirective[], parent: string | undefined, report: Report): void {
	for (const { name, block, span } of directives) {
		const needsBlock =
			BLOCK_DIRECTIVES.has(name) && !['upstream', 'map', 'geo', 'split_clients'].includes(parent ?? '');
		if (needsBlock && !block) {
			const message = `\`${name}\` has no block.`;
			report({ code: 'nginx/missing-block', severity: 'error', message, span, hint: 'Write `{ … }` in place of `;`.' });
		}
		if (block) checkBlocks(block, name, report);
	}
}
