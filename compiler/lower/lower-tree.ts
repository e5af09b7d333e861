/** Lowers an expanded syntax tree to a Document, and reports every mistake in it. */

import type { Report } from '../diagnostics/diagnostic.ts';
import type { Dialect } from '../dialects/dialect.ts';
import type { Document, ErrorRoute, Settings, Site, SiteLog, Step } from '../document/document.ts';
import type { SchemePorts } from '../document/site-address.ts';
import type { SiteDraft } from '../modules/contract/directive.ts';
import type { SettingsDraft } from '../modules/contract/option.ts';
import { sortCompatfileErrors } from '../modules/directives/handle-errors.ts';
import type { Reader } from '../source/reader.ts';
import type { ConfigTree, NamedBlock, SiteBlock } from '../syntax/ast.ts';
import { mappedPlaceholderNames } from './context/mapped-placeholders.ts';
import { directivePositions } from './directive-order.ts';
import { NamedRoutes } from './lower-named-routes.ts';
import { lowerOptions } from './lower-options.ts';
import { lowerLines } from './lower-pipeline.ts';
import { lowerAddresses } from './lower-site-addresses.ts';
import { Lowering, type LoweringEnvironment } from './lowering.ts';
import { Origins } from './origins.ts';
import type { Placeholders } from './placeholders.ts';
import { registryOf } from './registry.ts';
import type { SiteDependencies } from './site-dependencies.ts';
import { UpstreamTable, withoutUpstreamLines } from './upstream-table.ts';

/** The input of {@link TreeLowering}, apart from the tree. */
export interface LowerTreeInput {
	readonly dialect: Dialect;
	readonly report: Report;
	readonly reader: Reader;
	readonly placeholders: Placeholders;
	readonly origins: Origins;
}

/** The parts of a tree that are lowered before the sites. */
export type SharedTree = Omit<ConfigTree, 'sites'>;

export interface SiteLoweringOptions {
	/** Receives the spans from which the site's objects are lowered. */
	readonly origins: Origins;
	/** Records what the lowering depended on. */
	readonly dependencies?: SiteDependencies | undefined;
}

/** Lowers one tree: first everything that sites share, and then the sites in order. */
export class TreeLowering {
	/** Number of anonymous logs, in all sites, that have been given a name so far. */
	logCount = 0;
	/**
	 * A key for everything on which the lowering of a site can depend, except what {@link SiteDependencies} records. If the key
	 * changes, all sites must be lowered again.
	 */
	readonly contextKey: string;
	readonly #input: LowerTreeInput;
	readonly #tree: SharedTree;
	readonly #environment: LoweringEnvironment;
	readonly #lowering: Lowering;
	readonly #settings: SettingsDraft = {};
	readonly #upstreamTable: UpstreamTable;
	readonly #routes: ReadonlyMap<string, readonly Step[]>;
	readonly #ports: SchemePorts;

	/** Lowers options, upstreams and named routes. `sites` returns all sites; it is called only if their contents matter. */
	constructor(tree: SharedTree, sites: () => Iterable<SiteBlock>, input: LowerTreeInput) {
		this.#input = input;
		this.#tree = tree;
		const registry = registryOf(input.dialect);
		const positions = new Map<string, number>();
		const environment: LoweringEnvironment = {
			dialect: input.dialect,
			report: diagnostic => {
				environment.dependencies?.diagnostics.push(diagnostic);
				input.report(diagnostic);
			},
			registry,
			placeholders: input.placeholders,
			origins: input.origins,
			files: tree.files,
			workingDirectory: input.reader.workingDirectory,
			upstreams: new Map(),
			routes: new NamedRoutes(),
			mappedNames: mappedPlaceholderNames(registry.directives, () => [...sites(), ...tree.namedRoutes]),
			positions,
			settings: this.#settings,
			dependencies: undefined,
		};
		this.#environment = environment;
		const lowering = new Lowering(environment);
		this.#lowering = lowering;
		const order = lowerOptions(lowering, tree.options, this.#settings);
		for (const [name, position] of directivePositions(order)) positions.set(name, position);
		this.#upstreamTable = new UpstreamTable(lowering, input.origins);
		for (const upstream of tree.upstreams) this.#upstreamTable.addUpstream(upstream, environment.upstreams);
		const { http_port: http, https_port: https } = this.#settings as Settings;
		this.#ports = { http: http ?? 80, https: https ?? 443 };
		this.#routes = lowerNamedRoutes(lowering, tree.namedRoutes);
		const mappedNames = [...mappedPlaceholderNames(registry.directives, () => tree.namedRoutes)()];
		const dnsSettingFlags = (['dns', 'acme_dns'] as const).map(name => lowering.hasSetting(name));
		this.contextKey = JSON.stringify([
			input.dialect,
			this.#ports,
			order,
			[...environment.upstreams.keys()],
			mappedNames,
			dnsSettingFlags,
		]);
	}

	lowerSite(block: SiteBlock, { origins, dependencies }: SiteLoweringOptions): Site {
		const environment = this.#environment;
		environment.dependencies = dependencies;
		const upstreams = this.#upstreamTable.lowerSiteUpstreams(block.lines);
		const site = this.#lowerSiteBlock(block, origins, upstreams);
		this.#upstreamTable.warnAboutUnused(upstreams);
		if (dependencies && upstreams) dependencies.definesUpstreams = true;
		environment.dependencies = undefined;
		return site;
	}

	/**
	 * Repeats the effects of lowering a site on the rest of the document, for a site whose earlier result is used again. `logCount`
	 * is the number of its anonymous logs.
	 */
	repeatEffects(dependencies: SiteDependencies, logCount: number): void {
		for (const name of dependencies.upstreams) this.#environment.upstreams.get(name)!.used = true;
		for (const route of dependencies.routes) this.#environment.routes.recordUse(route);
		for (const diagnostic of dependencies.diagnostics) this.#input.report(diagnostic);
		this.logCount += logCount;
	}

	/**
	 * Lowers a site again to find the places of its objects. `logsBefore` is the number of anonymous logs in the sites before it.
	 */
	lowerForPlaces(block: SiteBlock, logsBefore: number): { readonly site: Site; readonly origins: Origins } {
		const origins = new Origins();
		const environment = this.#environment;
		const { report } = environment;
		const savedLogCount = this.logCount;
		environment.report = () => {};
		this.logCount = logsBefore;
		const site = this.#lowerSiteBlock(block, origins, this.#upstreamTable.siteUpstreamNames(block.lines));
		this.logCount = savedLogCount;
		environment.report = report;
		return { site, origins };
	}

	/** Assembles the document, and reports names that are never used. */
	assembleDocument(sites: readonly Site[]): Document {
		const environment = this.#environment;
		const settings = this.#settings as Settings;
		const upstreams = this.#upstreamTable.loweredUpstreams;
		this.#upstreamTable.warnAboutUnused(environment.upstreams);
		environment.routes.checkUses(this.#lowering, this.#tree.namedRoutes);
		return {
			...(Object.keys(settings).length > 0 ? { settings } : {}),
			...(upstreams.size > 0 ? { upstreams: Object.fromEntries(upstreams) } : {}),
			...(this.#routes.size > 0 ? { routes: Object.fromEntries(this.#routes) } : {}),
			sites,
		};
	}

	#lowerSiteBlock(
		block: SiteBlock,
		origins: Origins,
		upstreams: ReadonlyMap<string, { used: boolean }> | undefined,
	): Site {
		const environment = this.#environment;
		const lowering = this.#lowering;
		const { dialect, reader } = this.#input;
		environment.origins = origins;
		environment.mappedNames = mappedPlaceholderNames(environment.registry.directives, () => [
			block,
			...this.#tree.namedRoutes,
		]);
		const draft: SiteDraft = { addresses: lowerAddresses(lowering, block.addresses, this.#ports, reader) };
		lowering.siteUpstreams = upstreams;
		const lines = withoutUpstreamLines(lowering, block.lines);
		draft.pipeline = lowerLines(lowering, lines, dialect === 'compatfile' ? 'sorted' : 'written', draft);
		lowering.siteUpstreams = undefined;
		const site = finishSite(lowering, draft, block, this);
		environment.origins = this.#input.origins;
		return site;
	}
}

/** Lowers named routes. They can use only the matchers that they define themselves. */
function lowerNamedRoutes(lowering: Lowering, blocks: readonly NamedBlock[]): Map<string, readonly Step[]> {
	const { routes } = lowering.environment;
	const loweredRoutes = new Map<string, readonly Step[]>();
	for (const { name, lines, span } of blocks) {
		routes.currentRoute = name.text;
		loweredRoutes.set(name.text, lowering.origin(lowering.pipeline(lines), span));
		routes.currentRoute = undefined;
	}
	return loweredRoutes;
}

/** Returns the site with fields in the order of the document, with its logs named and its error routes sorted. */
function finishSite(lowering: Lowering, draft: SiteDraft, block: SiteBlock, logCounter: { logCount: number }): Site {
	const { addresses, bind, logs, pipeline, errors, ...otherFields } = draft as SiteDraft & {
		bind?: string[];
		logs?: SiteLog[];
		pipeline: Site['pipeline'];
		errors?: ErrorRoute[];
	};
	const isCompatfile = lowering.dialect === 'compatfile';
	const site: Site = {
		addresses,
		...(bind && bind.length > 0 ? { bind } : {}),
		...(logs ? { logs: logs.map(log => nameLog(lowering, log, logCounter)) } : {}),
		pipeline,
		...(errors ? { errors: isCompatfile ? sortCompatfileErrors(errors) : errors } : {}),
		...otherFields,
	};
	const fields = block.addresses[0] ? { addresses: block.addresses[0].span } : undefined;
	return lowering.origin(site, block.addresses[0]?.span ?? block.span, fields);
}

/** Gives a log that has settings but no name one of the names `log0`, `log1` and so on. */
function nameLog(lowering: Lowering, log: SiteLog, logCounter: { logCount: number }): SiteLog {
	if (log.name !== undefined || Object.keys(log).length === 0) return log;
	const namedLog: SiteLog = { name: `log${logCounter.logCount++}`, ...log };
	lowering.environment.origins.move(log, namedLog);
	return namedLog;
}
