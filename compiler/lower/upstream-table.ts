/** Collects the named upstreams during lowering: those at the top level of the file, and those that sites define. */
import { lowerNamedUpstream } from '../modules/directives/reverse-proxy/lower-upstream.ts';
import type { SourceSpan } from '../source/source.ts';
import type { Line, NamedBlock } from '../syntax/ast.ts';
import type { Lowering } from './lowering.ts';
import type { Origins } from './origins.ts';

/** Returns the lines of a site without those that define upstreams. */
export function withoutUpstreamLines(lowering: Lowering, lines: readonly Line[]): readonly Line[] {
	if (lowering.dialect === 'compatfile' || !lines.some(isUpstreamLine)) return lines;
	return lines.filter(line => !isUpstreamLine(line));
}

function isUpstreamLine(line: Line): boolean {
	return line.words[0]!.text === 'upstream' && line.words[0]!.quote === 'none';
}

/** The named upstreams of a configuration. A name refers to one pool in the whole configuration. */
export class UpstreamTable {
	readonly loweredUpstreams = new Map<string, unknown>();
	readonly #lowering: Lowering;
	readonly #origins: Origins;
	readonly #spansByName = new Map<string, SourceSpan>();

	/** `origins` receives the spans of all definitions, including those in sites. */
	constructor(lowering: Lowering, origins: Origins) {
		this.#lowering = lowering;
		this.#origins = origins;
	}

	/** Lowers a definition, and adds its name to `visibleUpstreams`. */
	addUpstream(upstream: NamedBlock, visibleUpstreams: Map<string, { used: boolean }>): void {
		const { text, span } = upstream.name;
		const earlierSpan = this.#spansByName.get(text);
		if (earlierSpan) {
			this.#lowering.problem(
				'error',
				'upstream/defined-twice',
				span,
				`The upstream \`${text}\` is defined more than once.`,
				{
					related: [{ span: earlierSpan, message: 'first defined here' }],
					hint: 'A name refers to one pool in the whole configuration.',
				},
			);
			visibleUpstreams.set(text, { used: true });
			return;
		}
		this.#spansByName.set(text, span);
		this.#lowering.environment.origins = this.#origins;
		const settings = lowerNamedUpstream(upstream, this.#lowering);
		visibleUpstreams.set(text, { used: false });
		if (settings) this.loweredUpstreams.set(text, this.#lowering.origin(settings, upstream.span));
	}

	/** Lowers the upstreams that a site defines. Returns a map with their names; undefined if there are none. */
	lowerSiteUpstreams(lines: readonly Line[]): Map<string, { used: boolean }> | undefined {
		if (this.#lowering.dialect === 'compatfile' || !lines.some(isUpstreamLine)) return undefined;
		const siteUpstreams = new Map<string, { used: boolean }>();
		for (const line of lines) {
			if (!isUpstreamLine(line)) continue;
			const name = line.words[1];
			if (!name || line.words.length > 2 || !line.block) {
				const { span } = line.words[0]!;
				this.#lowering.problem('error', 'upstream/malformed', span, '`upstream` takes a name and a block.', {
					hint: 'Usage: upstream <name> { to <address>… }',
				});
				continue;
			}
			this.addUpstream({ name, lines: line.block.lines, span: line.span }, siteUpstreams);
		}
		return siteUpstreams;
	}

	/** Returns a map with the names of a site's upstreams, which have already been lowered; undefined if there are none. */
	siteUpstreamNames(lines: readonly Line[]): Map<string, { used: boolean }> | undefined {
		if (this.#lowering.dialect === 'compatfile' || !lines.some(isUpstreamLine)) return undefined;
		const names = lines.filter(isUpstreamLine).map(line => line.words[1]?.text ?? '');
		return new Map(names.map(name => [name, { used: true }]));
	}

	warnAboutUnused(upstreams: ReadonlyMap<string, { used: boolean }> | undefined): void {
		for (const [name, { used }] of upstreams ?? []) {
			if (used) continue;
			const message = `The upstream \`${name}\` is never used.`;
			this.#lowering.problem('warning', 'upstream/unused', this.#spansByName.get(name)!, message, {
				hint: `Use it with \`reverse_proxy upstream://${name}\`.`,
			});
		}
	}
}
