/** Lowering: an expanded tree to a Document, every mistake reported on the way. */

import type { Report } from '../diagnostics/diagnostic.ts';
import type { Dialect } from '../dialects/dialect.ts';
import type { SiteDraft } from '../directives/directive.ts';
import { compatibleErrorOrder } from '../directives/handle-errors.ts';
import { lowerNamedUpstream } from '../directives/reverse-proxy/lower-upstream.ts';
import type { Document, ErrorRoute, Settings, Site, SiteLog, Step } from '../document/document.ts';
import type { SettingsDraft } from '../options/option.ts';
import type { Reader } from '../source/reader.ts';
import type { SourceSpan } from '../source/source.ts';
import type { Block, ConfigTree, Line, NamedBlock, SiteBlock } from '../syntax/ast.ts';
import { didYouMean } from './did-you-mean.ts';
import { DEFAULT_ORDER, directivePositions, moveDirective } from './directive-order.ts';
import { Lowering, type LoweringEnvironment } from './lowering.ts';
import { mappedNamesOf } from './mapped-names.ts';
import { NamedRoutes } from './named-routes.ts';
import type { Origins } from './origins.ts';
import { lowerLines } from './pipeline.ts';
import type { Placeholders } from './placeholders.ts';
import { type Registry, registryOf } from './registry.ts';
import { lowerAddresses } from './site-addresses.ts';
import { UNAVAILABLE_OPTIONS, unavailableMessage } from './unavailable.ts';

/** Options that may stand several times and add up. */
const ACCUMULATING: ReadonlySet<string> = new Set(['log', 'servers', 'default_bind', 'order']);

/** What {@link lowerTree} needs besides the tree. */
export interface LowerTreeInput {
	readonly dialect: Dialect;
	readonly report: Report;
	readonly reader: Reader;
	readonly placeholders: Placeholders;
	readonly origins: Origins;
}

/** Lowers a tree. The document is complete but for what was reported. */
export function lowerTree(tree: ConfigTree, input: LowerTreeInput): Document {
	const registry = registryOf(input.dialect);
	const positions = new Map<string, number>();
	const environment: LoweringEnvironment = {
		dialect: input.dialect,
		report: input.report,
		registry,
		placeholders: input.placeholders,
		origins: input.origins,
		files: tree.files,
		workingDirectory: input.reader.workingDirectory,
		upstreams: new Map(),
		routes: new NamedRoutes(),
		mapped: mappedNamesOf(tree),
		positions,
	};
	const lowering = new Lowering(environment);
	const settings: SettingsDraft = {};
	const order = lowerOptions(lowering, tree.options, settings);
	for (const [name, position] of directivePositions(order)) positions.set(name, position);
	const upstreams = new UpstreamTable(lowering);
	for (const upstream of tree.upstreams) upstreams.add(upstream, environment.upstreams);
	const ports = { http: (settings.http_port as number) ?? 80, https: (settings.https_port as number) ?? 443 };
	const routes = lowerNamedRoutes(lowering, tree.namedRoutes);
	const sites: Site[] = [];
	const counter = { logs: 0 };
	for (const block of tree.sites) {
		const site: SiteDraft = { addresses: lowerAddresses(lowering, block.addresses, ports, input.reader) };
		lowering.siteUpstreams = upstreams.ofSite(block.lines);
		site.pipeline = lowerLines(
			lowering,
			withoutUpstreams(lowering, block.lines),
			input.dialect === 'compatfile' ? 'sorted' : 'written',
			site,
		);
		upstreams.warnOfUnused(lowering.siteUpstreams);
		lowering.siteUpstreams = undefined;
		sites.push(finishSite(lowering, site, block, counter));
	}
	upstreams.warnOfUnused(environment.upstreams);
	environment.routes.check(lowering, tree.namedRoutes);
	const document: Document = {
		...(Object.keys(settings).length > 0 ? { settings: settings as Settings } : {}),
		...(upstreams.lowered.size > 0 ? { upstreams: Object.fromEntries(upstreams.lowered) } : {}),
		...(routes.size > 0 ? { routes: Object.fromEntries(routes) } : {}),
		sites,
	};
	return document;
}

/** Routes by name; they see no matchers but their own. */
function lowerNamedRoutes(lowering: Lowering, blocks: readonly NamedBlock[]): Map<string, readonly Step[]> {
	const { routes } = lowering.environment;
	const lowered = new Map<string, readonly Step[]>();
	for (const { name, lines, span } of blocks) {
		routes.lowered = name.text;
		lowered.set(name.text, lowering.origin(lowering.pipeline(lines), span));
		routes.lowered = undefined;
	}
	return lowered;
}

/** The site in the document's order of fields, its error routes and logs settled. */
function finishSite(lowering: Lowering, draft: SiteDraft, block: SiteBlock, counter: { logs: number }): Site {
	const { addresses, bind, logs, pipeline, errors, ...rest } = draft as SiteDraft & {
		bind?: string[];
		logs?: SiteLog[];
		pipeline: Site['pipeline'];
		errors?: ErrorRoute[];
	};
	const compat = lowering.dialect === 'compatfile';
	const site: Site = {
		addresses,
		...(bind && bind.length > 0 ? { bind } : {}),
		...(logs ? { logs: logs.map(log => nameLog(lowering, log, counter)) } : {}),
		pipeline,
		...(errors ? { errors: compat ? compatibleErrorOrder(errors) : errors } : {}),
		...rest,
	};
	const fields = block.addresses[0] ? { addresses: block.addresses[0].span } : undefined;
	return lowering.origin(site, block.addresses[0]?.span ?? block.span, fields);
}

/** A log with settings but without a name gets one of its own: `log0`, `log1`, … */
function nameLog(lowering: Lowering, log: SiteLog, counter: { logs: number }): SiteLog {
	if (log.name !== undefined || Object.keys(log).length === 0) return log;
	const named: SiteLog = { name: `log${counter.logs++}`, ...log };
	lowering.environment.origins.move(log, named);
	return named;
}

/** Lowers the global block; gives the order of directives that it leaves. */
function lowerOptions(lowering: Lowering, block: Block | undefined, settings: SettingsDraft): readonly string[] {
	let order = DEFAULT_ORDER;
	if (!block) return order;
	const { registry } = lowering.environment;
	const seen = new Map<string, SourceSpan>();
	lowering.origin(settings, block.open);
	for (const line of block.lines) {
		const name = line.words[0]!;
		if (name.text === 'order') {
			order = lowerOrder(lowering, line, order);
			continue;
		}
		const option = registry.options.get(name.text);
		if (!option) {
			reportUnknownOption(lowering, line, registry);
			continue;
		}
		const earlier = seen.get(name.text);
		if (earlier && !ACCUMULATING.has(name.text) && lowering.dialect === 'configfile') {
			lowering.problem('error', 'option/given-twice', name.span, `\`${name.text}\` is given twice.`, {
				related: [{ span: earlier, message: 'first given here' }],
			});
		}
		seen.set(name.text, name.span);
		option.lower(line, settings, lowering);
		lowering.origin(settings, block.open, { [option.id]: line.span });
	}
	return order;
}

function reportUnknownOption(lowering: Lowering, line: Line, registry: Registry): void {
	const { text, span } = line.words[0]!;
	if (UNAVAILABLE_OPTIONS.has(text)) {
		lowering.problem('error', 'option/unavailable', span, unavailableMessage(text));
		return;
	}
	const message =
		lowering.dialect === 'compatfile' ? `unrecognized global option: ${text}` : `\`${text}\` is not a global option.`;
	lowering.problem('error', 'option/unknown', span, message, {
		label: didYouMean(text, [...registry.options.keys(), ...UNAVAILABLE_OPTIONS]),
		hint: registry.directives.has(text) ? 'It is a directive: it belongs into a site.' : undefined,
	});
}

function lowerOrder(lowering: Lowering, line: Line, order: readonly string[]): readonly string[] {
	const name = line.words[0]!;
	if (lowering.dialect === 'configfile') {
		const message = '`order` has no meaning here: directives run in the order in which they are written.';
		lowering.problem('error', 'option/order', name.span, message, {
			hint: 'Remove it, and write directives as they shall run.',
		});
		return order;
	}
	const usage = 'order <directive> first | last | before <other> | after <other>';
	const args = line.words.slice(1);
	const [directive, position, other] = args;
	if (!lowering.count(line, args, 2, 3, usage) || !directive || !position) return order;
	const known = lowering.environment.registry.directives;
	if (!known.has(directive.text) && !DEFAULT_ORDER.includes(directive.text)) {
		lowering.problem('error', 'option/order', directive.span, `${directive.text} is not a registered directive`, {
			label: didYouMean(directive.text, DEFAULT_ORDER),
		});
		return order;
	}
	const { text } = position;
	if (text === 'first' || text === 'last') {
		if (!lowering.count(line, args, 2, 2, usage)) return order;
		return moveDirective(order, { directive: directive.text, to: text })!;
	}
	if (text !== 'before' && text !== 'after') {
		lowering.problem('error', 'option/order', position.span, `unknown positional '${text}'`, {
			hint: `Usage: ${usage}`,
		});
		return order;
	}
	if (!other) {
		lowering.count(line, args, 3, 3, usage);
		return order;
	}
	const moved = moveDirective(order, { directive: directive.text, to: text, other: other.text });
	if (moved) return moved;
	lowering.problem('error', 'option/order', other.span, `directive '${other.text}' not found`, {
		label: didYouMean(other.text, order),
	});
	return order;
}

/** Site lines that define upstreams are taken out before the directives are lowered. */
function withoutUpstreams(lowering: Lowering, lines: readonly Line[]): readonly Line[] {
	if (lowering.dialect === 'compatfile' || !lines.some(isUpstreamLine)) return lines;
	return lines.filter(line => !isUpstreamLine(line));
}

function isUpstreamLine(line: Line): boolean {
	return line.words[0]!.text === 'upstream' && line.words[0]!.quote === 'none';
}

/** Named upstreams: a name stands for one pool in the whole configuration. */
class UpstreamTable {
	readonly lowered = new Map<string, unknown>();
	readonly #lowering: Lowering;
	readonly #places = new Map<string, SourceSpan>();

	constructor(lowering: Lowering) {
		this.#lowering = lowering;
	}

	/** Lowers a definition and makes its name visible in `visible`. */
	add(upstream: NamedBlock, visible: Map<string, { used: boolean }>): void {
		const { text, span } = upstream.name;
		const earlier = this.#places.get(text);
		if (earlier) {
			this.#lowering.problem('error', 'upstream/defined-twice', span, `The upstream \`${text}\` is defined twice.`, {
				related: [{ span: earlier, message: 'first defined here' }],
				hint: 'A name stands for one pool in the whole configuration.',
			});
			visible.set(text, { used: true });
			return;
		}
		this.#places.set(text, span);
		const settings = lowerNamedUpstream(upstream, this.#lowering);
		visible.set(text, { used: false });
		if (settings) this.lowered.set(text, this.#lowering.origin(settings, upstream.span));
	}

	/** The upstreams that a site defines for itself. */
	ofSite(lines: readonly Line[]): Map<string, { used: boolean }> | undefined {
		if (this.#lowering.dialect === 'compatfile' || !lines.some(isUpstreamLine)) return undefined;
		const visible = new Map<string, { used: boolean }>();
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
			this.add({ name, lines: line.block.lines, span: line.span }, visible);
		}
		return visible;
	}

	warnOfUnused(visible: ReadonlyMap<string, { used: boolean }> | undefined): void {
		for (const [name, { used }] of visible ?? []) {
			if (used) continue;
			const message = `The upstream \`${name}\` is never used.`;
			this.#lowering.problem('warning', 'upstream/unused', this.#places.get(name)!, message, {
				hint: `Use it with \`reverse_proxy upstream://${name}\`.`,
			});
		}
	}
}
