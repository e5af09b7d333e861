/** Finds the site that serves a request on a listener: by host, in constant time for any number of sites. */
import type { Request } from '../exchange/exchange.ts';
import { TextTable } from '../exchange/text-table.ts';
import { compilePathPatterns } from '../modules/matchers/path-pattern.ts';
import type { ListenedSite } from './plan/plan.ts';

/** One host of a site. */
interface Candidate {
	/** Position in order of precedence: of all matches, the candidate with the lowest number serves. */
	readonly order: number;
	/** Index in `document.sites`, or a value for {@link redirectPort}. */
	readonly site: number;
	/** Tests the deprecated path of an address; undefined matches every path. */
	readonly matchesPath: ((request: Request) => boolean) | undefined;
}

const NO_CANDIDATES: readonly Candidate[] = [];

const FIRST_REDIRECT_INDEX = -2;

/** Returns the HTTPS port of a redirect, given its index; 0 if the URL omits it. Undefined for the index of a site. */
export function redirectPort(index: number): number | undefined {
	return index > FIRST_REDIRECT_INDEX ? undefined : FIRST_REDIRECT_INDEX - index;
}

/**
 * The sites of one listener, in order of precedence. A `*` label matches exactly one label, and a site without hosts matches
 * every request. The table is immutable and contains only indices of sites. A generation that replaces some of ten thousand
 * sites but changes no addresses can therefore reuse it.
 */
export class SiteTable {
	/** Sites by exact hosts that need no further checks: they have no path, and no inexact candidate precedes them. */
	readonly #direct: TextTable<number>;
	/** Candidates by exact host, or undefined if no host is exact. */
	readonly #exact: TextTable<readonly Candidate[]> | undefined;
	/** Candidates by wildcard host. */
	readonly #wildcard = new Map<string, Candidate[]>();
	/** For each number of labels, bit masks of which labels are `*` in some wildcard host; bit 0 is the first label. */
	readonly #shapes: number[][] = [];
	readonly #catchAll: Candidate[] = [];
	/** Lowest order of all candidates without an exact host. If an exact match precedes it, no other lookup is made. */
	#firstInexact = Number.POSITIVE_INFINITY;

	/** `listedSites` is in order of precedence; hosts in canonical form (see `canonicalHost`). */
	constructor(listedSites: readonly ListenedSite[]) {
		const exactCandidates = new Map<string, Candidate[]>();
		for (let order = 0; order < listedSites.length; order++) {
			const { site: index, hosts, paths, redirect } = listedSites[order]!;
			const site = redirect === undefined ? index : FIRST_REDIRECT_INDEX - redirect;
			const candidate: Candidate = {
				order,
				site,
				matchesPath: paths.length > 0 ? compilePathPatterns(paths) : undefined,
			};
			if (hosts.length === 0) this.#addInexact(this.#catchAll, candidate);
			for (const host of hosts) {
				if (!host.includes('*')) addCandidate(exactCandidates, host, candidate);
				else {
					this.#addShape(host);
					addCandidate(this.#wildcard, host, candidate);
					this.#addInexact(undefined, candidate);
				}
			}
		}
		const direct = new Map<string, number>();
		this.#exact = exactCandidates.size > 0 ? new TextTable(exactCandidates) : undefined;
		for (const [host, [candidate]] of exactCandidates) {
			if (!candidate!.matchesPath && candidate!.order < this.#firstInexact) direct.set(host, candidate!.site);
		}
		this.#direct = new TextTable(direct);
	}

	/**
	 * Returns the index in `document.sites` of the site that serves a request, −1 if no site does, or a lower number for a
	 * redirect (see {@link redirectPort}). Throws HttpError 400 if the path must be compared but is malformed.
	 */
	find(request: Request): number {
		const host = request.host;
		const direct = this.#direct.get(host, host.length);
		if (direct !== undefined) return direct;
		const exactMatch =
			this.#exact === undefined
				? undefined
				: firstMatching(this.#exact.get(host, host.length) ?? NO_CANDIDATES, request);
		if (exactMatch && exactMatch.order < this.#firstInexact) return exactMatch.site;
		let bestCandidate = exactMatch;
		if (this.#wildcard.size > 0) bestCandidate = this.#bestWildcard(request, host, bestCandidate);
		const catchAllMatch = firstMatching(this.#catchAll, request);
		if (catchAllMatch && (!bestCandidate || catchAllMatch.order < bestCandidate.order)) bestCandidate = catchAllMatch;
		return bestCandidate ? bestCandidate.site : -1;
	}

	#addInexact(list: Candidate[] | undefined, candidate: Candidate): void {
		list?.push(candidate);
		if (candidate.order < this.#firstInexact) this.#firstInexact = candidate.order;
	}

	#addShape(host: string): void {
		const labels = host.split('.');
		let shape = 0;
		labels.forEach((label, i) => {
			if (label === '*' && i < 31) shape |= 1 << i;
		});
		this.#shapes[labels.length] ??= [];
		const shapes = this.#shapes[labels.length]!;
		if (!shapes.includes(shape)) shapes.push(shape);
	}

	#bestWildcard(request: Request, host: string, bestCandidate: Candidate | undefined): Candidate | undefined {
		const labels = host.split('.');
		const shapes = this.#shapes[labels.length];
		// `*` matches one label, but not an empty one.
		if (!shapes || labels.includes('')) return bestCandidate;
		let bestSoFar = bestCandidate;
		for (const shape of shapes) {
			const key = labels.map((label, i) => (i < 31 && (shape & (1 << i)) !== 0 ? '*' : label)).join('.');
			const candidate = firstMatching(this.#wildcard.get(key) ?? NO_CANDIDATES, request);
			if (candidate && (!bestSoFar || candidate.order < bestSoFar.order)) bestSoFar = candidate;
		}
		return bestSoFar;
	}
}

function addCandidate(map: Map<string, Candidate[]>, host: string, candidate: Candidate): void {
	const list = map.get(host);
	if (list) list.push(candidate);
	else map.set(host, [candidate]);
}

function firstMatching(candidates: readonly Candidate[], request: Request): Candidate | undefined {
	for (const candidate of candidates) if (!candidate.matchesPath || candidate.matchesPath(request)) return candidate;
	return undefined;
}
