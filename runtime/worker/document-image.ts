/** A compiled document divided for transfer and comparison: the JSON of each site, its dependencies, and its listeners. */
import { http3RequestFor } from '../../compiler/codegen/plan/http3-request.ts';
import type { ListenerSpec, Plan } from '../../compiler/codegen/plan/plan.ts';
import type { PlannedCertificates } from '../../compiler/codegen/plan/plan-tls.ts';
import { canonicalJson } from '../../compiler/document/canonical-json.ts';
import type { Document, Settings, Site } from '../../compiler/document/document.ts';
import { sharedPools } from '../../compiler/document/shared-pools.ts';
import { type StepPlaces, stepPointersJson } from '../../compiler/lower/step-places.ts';
import type { ListenerAddress } from '../listeners/listener-address.ts';
import type { DocumentFacts, GenerationDelta, SiteRange } from './worker-messages.ts';

/** Settings that the compiled closures of sites do not depend on: if only these change, no site is rebuilt. */
const PROCESS_SETTINGS: ReadonlySet<string> = new Set([
	'admin',
	'grace_period',
	'persist_config',
	'shutdown_delay',
	'threads',
]);

/**
 * Number of characters of JSON that a worker parses without pausing for requests. Parsing them takes about half a millisecond.
 */
const MAX_CHUNK_CHARS = 48 * 1024;

/** A compiled document, divided into parts. */
export interface DocumentImage {
	readonly document: Document;
	/** JSON of everything except the sites. */
	readonly otherMembersJson: string;
	/** JSON of `{settings, upstreams, routes, protocols, material}`, for workers. */
	readonly sharedJson: string;
	/** JSON of the settings that the compiled closures of sites may depend on. */
	readonly settingsJson: string;
	/** JSON of each site. */
	readonly sites: readonly string[];
	/**
	 * JSON of each site, preceded by the named upstreams, routes and files that it depends on. Sites for which this text is equal
	 * have equal closures.
	 */
	readonly siteKeys: readonly string[];
	readonly listeners: readonly {
		readonly address: ListenerAddress;
		readonly sites: readonly string[];
		/** JSON of the listener's ListenerTls. */
		readonly tls?: string | undefined;
	}[];
	readonly certificates?: PlannedCertificates | undefined;
	/** Digest of the files that the document names; '' if it names none, undefined if the digest is unknown. */
	readonly filesDigest: string | undefined;
	/** Number of loads since the start that were forced, so that no site was reused. */
	readonly forcedLoads: number;
	/** Where the steps are in the configuration files. */
	readonly places: StepPlaces;
	/** True if `places` refer to a source text; false if they are JSON pointers into the document. */
	readonly hasText: boolean;
}

/**
 * Caches the JSON of sites and listeners. It relies on the compiler, which returns the same objects for unchanged sites and
 * listeners.
 */
export class DocumentImageCache {
	readonly #jsonBySite = new WeakMap<Site, string>();
	readonly #pointersBySite = new WeakMap<Site, string>();
	readonly #chunksByListener = new WeakMap<ListenerSpec, readonly string[]>();
	/** The JSON of each site's dependencies on named upstreams and routes, valid for the names in {@link #namedJson}. */
	#dependenciesBySite = new WeakMap<Site, string>();
	#namedJson = '';

	siteJson(site: Site): string {
		return memoize(this.#jsonBySite, site, () => JSON.stringify(site));
	}

	/** Returns the JSON pointers of all steps, for a document that was not compiled from source text. */
	stepPointers({ sites = [], routes = {} }: Document): StepPlaces {
		const texts = sites.map(site => memoize(this.#pointersBySite, site, () => stepPointersJson(site, '')));
		return { sites: texts, routes: stepPointersJson(routes, '/routes') };
	}

	/** Returns the JSON of a listener's sites, in chunks. */
	listenerChunks(listener: ListenerSpec): readonly string[] {
		return memoize(this.#chunksByListener, listener, () =>
			toChunks(listener.sites.map(entry => JSON.stringify(entry))),
		);
	}

	/**
	 * Returns a function that yields the dependencies of a site as JSON; undefined if the document has no named upstreams or
	 * routes.
	 */
	siteDependencies(document: Document): ((site: Site) => string) | undefined {
		const dependenciesOf = namedDependencies(document);
		if (!dependenciesOf) return undefined;
		const namedParts = JSON.stringify([document.upstreams, document.routes]);
		if (namedParts !== this.#namedJson) {
			this.#namedJson = namedParts;
			this.#dependenciesBySite = new WeakMap();
		}
		return site => memoize(this.#dependenciesBySite, site, () => dependenciesOf(site));
	}
}

function memoize<K extends object, V>(cache: WeakMap<K, V>, key: K, compute: () => V): V {
	const cachedValue = cache.get(key);
	if (cachedValue !== undefined) return cachedValue;
	const value = compute();
	cache.set(key, value);
	return value;
}

/** Divides a document into parts. Unchanged parts are taken from `cache`. */
export function createDocumentImage(
	document: Document,
	plan: Plan | undefined,
	cache: DocumentImageCache = new DocumentImageCache(),
	places?: StepPlaces,
	forcedLoads = 0,
): DocumentImage {
	const { sites = [], ...otherMembers } = document;
	const settings: Settings = document.settings ?? {};
	const siteSettings = Object.fromEntries(Object.entries(settings).filter(([name]) => !PROCESS_SETTINGS.has(name)));
	const siteTexts = sites.map(site => cache.siteJson(site));
	const dependencies = cache.siteDependencies(document);
	const { files } = plan ?? {};
	const material = { ...files?.contents, ...(forcedLoads > 0 ? { '': String(forcedLoads) } : {}) };
	const listenerProtocols = (plan?.listeners ?? []).flatMap(({ key, protocols }) =>
		protocols ? [[key, protocols] as const] : [],
	);
	return {
		document,
		otherMembersJson: JSON.stringify(otherMembers),
		sharedJson: JSON.stringify({
			...{ settings, upstreams: document.upstreams ?? {}, routes: document.routes ?? {} },
			...(listenerProtocols.length > 0 ? { protocols: Object.fromEntries(listenerProtocols) } : {}),
			...(Object.keys(material).length > 0 ? { material } : {}),
		}),
		settingsJson: canonicalJson(siteSettings),
		sites: siteTexts,
		siteKeys:
			dependencies || files
				? sites.map((site, index) => (dependencies?.(site) ?? '') + (files?.sites[index] ?? '') + siteTexts[index]!)
				: siteTexts,
		listeners: (plan?.listeners ?? []).map(listener => {
			const { sites: _sites, tls: _tls, protocols: _protocols, ...socket } = listener;
			const tls = listener.tls && JSON.stringify(listener.tls);
			const http3 = http3RequestFor(listener, settings);
			const address = http3 === undefined ? socket : { ...socket, http3 };
			return { address, sites: cache.listenerChunks(listener), tls };
		}),
		certificates: plan?.certificates,
		filesDigest: files?.identity ?? '',
		forcedLoads,
		places: places ?? cache.stepPointers(document),
		hasText: places !== undefined,
	};
}

/** Returns the JSON of the whole document, joined from the parts. */
export function documentJson({ otherMembersJson, sites }: DocumentImage): string {
	const member = `"sites":[${sites.join(',')}]`;
	return otherMembersJson === '{}' ? `{${member}}` : `${otherMembersJson.slice(0, -1)},${member}}`;
}

/** Returns the facts about the document that the main thread needs. */
export function documentFacts(image: DocumentImage, files: readonly string[]): DocumentFacts {
	return {
		settings: image.document.settings ?? {},
		listeners: image.listeners.map(listener => listener.address),
		sites: image.sites.length,
		files,
		certificates: image.certificates,
		pools: sharedPools(image.document),
	};
}

/**
 * Returns what changes from the generation of `oldImage` to the generation of `newImage`. `oldImage` is undefined for the first
 * generation. After a forced load, no sites are reused.
 */
export function generationDelta(oldImage: DocumentImage | undefined, newImage: DocumentImage): GenerationDelta {
	const canReuse = oldImage?.settingsJson === newImage.settingsJson && oldImage.forcedLoads === newImage.forcedLoads;
	const { siteRanges, changed } = siteRuns(canReuse ? oldImage.siteKeys : [], newImage);
	const oldListeners = new Map(oldImage?.listeners.map(listener => [listener.address.key, listener]));
	return {
		shared: oldImage?.sharedJson === newImage.sharedJson ? undefined : newImage.sharedJson,
		siteRanges,
		changed: toChunks(changed),
		places: changedPlaces(oldImage, newImage, siteRanges),
		listeners: newImage.listeners.map(({ address: { key }, sites, tls }) => {
			const { sites: oldSites, tls: oldTls } = oldListeners.get(key) ?? {};
			const isSame =
				oldSites?.length === sites.length &&
				(oldSites === sites || sites.every((chunk, chunkIndex) => chunk === oldSites[chunkIndex]));
			return { key, sites: isSame ? undefined : sites, ...(tls === oldTls ? {} : { tls }) };
		}),
	};
}

/** Returns where the steps of sites are in the configuration files, for new sites and for sites that have moved. */
function changedPlaces(
	oldImage: DocumentImage | undefined,
	{ places }: DocumentImage,
	siteRanges: readonly SiteRange[],
): GenerationDelta['places'] {
	const changedEntries: string[] = [];
	let index = 0;
	for (const [oldIndex, count] of siteRanges) {
		for (let offsetInRun = 0; offsetInRun < count; offsetInRun++, index++) {
			const oldPlaces = oldIndex === -1 ? undefined : oldImage?.places.sites[oldIndex + offsetInRun];
			const newPlaces = places.sites[index]!;
			if (newPlaces !== oldPlaces) changedEntries.push(JSON.stringify([index, newPlaces]));
		}
	}
	return {
		sites: toChunks(changedEntries),
		routes: places.routes === oldImage?.places.routes ? undefined : places.routes,
	};
}

/** Determines which sites can be reused. Sites at the beginning or the end that are the same in both lists need no lookups. */
function siteRuns(
	oldKeys: readonly string[],
	{ siteKeys: newKeys, sites }: DocumentImage,
): { siteRanges: SiteRange[]; changed: string[] } {
	const siteRanges: [from: number, count: number][] = [];
	const changed: string[] = [];
	const addToRun = (oldIndex: number): void => {
		const lastRun = siteRanges.at(-1);
		const continuesRun =
			lastRun && (oldIndex === -1 ? lastRun[0] === -1 : lastRun[0] !== -1 && lastRun[0] + lastRun[1] === oldIndex);
		if (continuesRun) lastRun[1]++;
		else siteRanges.push([oldIndex, 1]);
	};
	const maxCommonCount = Math.min(oldKeys.length, newKeys.length);
	let commonStartCount = 0;
	while (commonStartCount < maxCommonCount && oldKeys[commonStartCount] === newKeys[commonStartCount])
		addToRun(commonStartCount++);
	let commonEndCount = 0;
	while (
		commonEndCount < maxCommonCount - commonStartCount &&
		oldKeys[oldKeys.length - 1 - commonEndCount] === newKeys[newKeys.length - 1 - commonEndCount]
	)
		commonEndCount++;
	const oldIndexByKey = new Map<string, number>();
	for (let index = commonStartCount; index < oldKeys.length - commonEndCount; index++)
		oldIndexByKey.set(oldKeys[index]!, index);
	for (let index = commonStartCount; index < newKeys.length - commonEndCount; index++) {
		const oldIndex = oldIndexByKey.get(newKeys[index]!) ?? -1;
		if (oldIndex === -1) changed.push(sites[index]!);
		addToRun(oldIndex);
	}
	for (let index = oldKeys.length - commonEndCount; index < oldKeys.length; index++) addToRun(index);
	return { siteRanges, changed };
}

/** Reports whether the steps of two equal documents are at the same places in the configuration files. */
export function haveSamePlaces({ places: a }: DocumentImage, { places: b }: DocumentImage): boolean {
	return a.routes === b.routes && a.sites.every((places, index) => places === b.sites[index]);
}

/** Reports whether two documents are equal and the files that they name have the same contents. */
export function isSameDocument(a: DocumentImage, b: DocumentImage): boolean {
	return (
		a.filesDigest === b.filesDigest &&
		a.otherMembersJson === b.otherMembersJson &&
		a.sites.length === b.sites.length &&
		a.sites.every((text, index) => text === b.sites[index])
	);
}

/** Joins JSON values to JSON arrays. Each array ends with the value with which it reaches {@link MAX_CHUNK_CHARS} characters. */
function toChunks(texts: readonly string[]): string[] {
	const chunks: string[] = [];
	let chunkStart = 0;
	let chunkChars = 0;
	for (let i = 0; i < texts.length; i++) {
		chunkChars += texts[i]!.length;
		if (chunkChars < MAX_CHUNK_CHARS && i + 1 < texts.length) continue;
		chunks.push(`[${texts.slice(chunkStart, i + 1).join(',')}]`);
		chunkStart = i + 1;
		chunkChars = 0;
	}
	return chunks;
}

/**
 * Returns a function that yields the definitions of all named upstreams and routes that a value refers to, directly or through
 * other routes. Returns undefined if the document defines neither. Any string equal to a name is treated as a reference,
 * whichever field contains it, so that this function need not know the fields of handlers.
 */
function namedDependencies(document: Document): ((value: unknown) => string) | undefined {
	const namedParts = new Map<string, unknown>();
	for (const [name, value] of Object.entries(document.upstreams ?? {})) namedParts.set(name, value);
	for (const [name, value] of Object.entries(document.routes ?? {}))
		namedParts.set(name, [namedParts.get(name), value]);
	if (namedParts.size === 0) return undefined;
	const definitionsByName = new Map<string, string>();
	for (const [name, value] of namedParts)
		definitionsByName.set(name, `${JSON.stringify(name)}=${canonicalJson(value)}\n`);
	return value => {
		const usedNames = new Set<string>();
		const collectNames = (part: unknown): void => {
			if (typeof part === 'string') {
				if (usedNames.has(part) || !namedParts.has(part)) return;
				usedNames.add(part);
				collectNames(namedParts.get(part));
			} else if (Array.isArray(part)) {
				for (const item of part) collectNames(item);
			} else if (part !== null && typeof part === 'object') {
				for (const key in part) collectNames((part as Record<string, unknown>)[key]);
			}
		};
		collectNames(value);
		return [...usedNames]
			.sort()
			.map(name => definitionsByName.get(name)!)
			.join('');
	};
}
