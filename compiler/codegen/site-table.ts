/** Finds the site that serves a request on a listener, by the request's host, in constant time for any number of sites. */
import type { Request } from '../exchange/exchange.ts';
import { TextTable } from '../exchange/text-table.ts';
import { compilePathPatterns } from '../modules/matchers/path-pattern.ts';
import type { ListenedSite } from './plan/plan.ts';

/** A site or redirect that may serve requests for one of its hosts. */
interface SiteCandidate {
	/** Position in order of precedence. Of all candidates that match a request, the one with the lowest number serves it. */
	readonly order: number;
	/** Index in `document.sites`, or the number of a redirect; see {@link redirectPort}. */
	readonly siteOrRedirect: number;
	/** Reports whether a request has the deprecated path of the site's address; undefined if the address has no path. */
	readonly matchesPath: ((request: Request) => boolean) | undefined;
}

const NO_CANDIDATES: readonly SiteCandidate[] = [];

const FIRST_REDIRECT_INDEX = -2;

/**
 * Returns the HTTPS port of a redirect, by the number of the redirect; 0 if the URL has no port. Undefined for the index of a site.
 */
export function redirectPort(siteOrRedirect: number): number | undefined {
	return siteOrRedirect > FIRST_REDIRECT_INDEX ? undefined : FIRST_REDIRECT_INDEX - siteOrRedirect;
}

/**
 * The sites of one listener, in order of precedence. A `*` label in a host matches exactly one label, and a site without hosts
 * matches every request. The table is immutable and contains only indices of sites, so that a new generation can reuse it if only
 * only the pipelines of some sites have changed, and their addresses have not.
 */
export class SiteTable {
	/**
	 * Sites by exact host, for hosts that need no further checks because they have no path and no wildcard or catch-all candidate
	 * precedes them.
	 */
	readonly #siteByHost: TextTable<number>;
	/** Candidates by exact host; undefined if there are no exact hosts. */
	readonly #candidatesByHost: TextTable<readonly SiteCandidate[]> | undefined;
	/** Candidates by wildcard host. */
	readonly #candidatesByWildcard = new Map<string, SiteCandidate[]>();
	/** For each number of labels, the bit masks of the positions at which wildcard hosts have a `*`. Bit 0 is the first label. */
	readonly #shapesByLabelCount: number[][] = [];
	readonly #catchAllCandidates: SiteCandidate[] = [];
	/** Lowest order of all wildcard and catch-all candidates. If an exact match precedes it, nothing else is looked up. */
	#lowestInexactOrder = Number.POSITIVE_INFINITY;

	/** Builds the table. `listedSites` are in order of precedence, with hosts in canonical form (see `canonicalHost`). */
	constructor(listedSites: readonly ListenedSite[]) {
		const exactCandidatesByHost = new Map<string, SiteCandidate[]>();
		for (let order = 0; order < listedSites.length; order++) {
			const { site: siteIndex, hosts, paths, redirect } = listedSites[order]!;
			const siteOrRedirect = redirect === undefined ? siteIndex : FIRST_REDIRECT_INDEX - redirect;
			const candidate: SiteCandidate = {
				order,
				siteOrRedirect,
				matchesPath: paths.length > 0 ? compilePathPatterns(paths) : undefined,
			};
			if (hosts.length === 0) this.#addInexact(this.#catchAllCandidates, candidate);
			for (const host of hosts) {
				if (!host.includes('*')) addCandidate(exactCandidatesByHost, host, candidate);
				else {
					this.#addWildcardShape(host);
					addCandidate(this.#candidatesByWildcard, host, candidate);
					this.#addInexact(undefined, candidate);
				}
			}
		}
		const siteByHost = new Map<string, number>();
		this.#candidatesByHost = exactCandidatesByHost.size > 0 ? new TextTable(exactCandidatesByHost) : undefined;
		for (const [host, [candidate]] of exactCandidatesByHost) {
			if (!candidate!.matchesPath && candidate!.order < this.#lowestInexactOrder)
				siteByHost.set(host, candidate!.siteOrRedirect);
		}
		this.#siteByHost = new TextTable(siteByHost);
	}

	/**
	 * Returns the index in `document.sites` of the site that serves a request, −1 if no site does, or a lower number for a redirect
	 * (see {@link redirectPort}). Throws HttpError 400 if a path must be compared and the request's path is malformed.
	 */
	findSiteIndex(request: Request): number {
		const host = request.host;
		const site = this.#siteByHost.get(host, host.length);
		if (site !== undefined) return site;
		const exactMatch =
			this.#candidatesByHost === undefined
				? undefined
				: firstMatchingCandidate(this.#candidatesByHost.get(host, host.length) ?? NO_CANDIDATES, request);
		if (exactMatch && exactMatch.order < this.#lowestInexactOrder) return exactMatch.siteOrRedirect;
		let bestCandidate = exactMatch;
		if (this.#candidatesByWildcard.size > 0) bestCandidate = this.#bestWildcard(request, host, bestCandidate);
		const catchAllMatch = firstMatchingCandidate(this.#catchAllCandidates, request);
		if (catchAllMatch && (!bestCandidate || catchAllMatch.order < bestCandidate.order)) bestCandidate = catchAllMatch;
		return bestCandidate ? bestCandidate.siteOrRedirect : -1;
	}

	#addInexact(candidates: SiteCandidate[] | undefined, candidate: SiteCandidate): void {
		candidates?.push(candidate);
		if (candidate.order < this.#lowestInexactOrder) this.#lowestInexactOrder = candidate.order;
	}

	#addWildcardShape(host: string): void {
		const labels = host.split('.');
		let wildcardShape = 0;
		labels.forEach((label, i) => {
			if (label === '*' && i < 31) wildcardShape |= 1 << i;
		});
		this.#shapesByLabelCount[labels.length] ??= [];
		const shapes = this.#shapesByLabelCount[labels.length]!;
		if (!shapes.includes(wildcardShape)) shapes.push(wildcardShape);
	}

	#bestWildcard(request: Request, host: string, bestCandidate: SiteCandidate | undefined): SiteCandidate | undefined {
		const labels = host.split('.');
		const shapes = this.#shapesByLabelCount[labels.length];
		// `*` matches one label, but not an empty one.
		if (!shapes || labels.includes('')) return bestCandidate;
		let bestSoFar = bestCandidate;
		for (const shape of shapes) {
			const wildcardHost = labels.map((label, i) => (i < 31 && (shape & (1 << i)) !== 0 ? '*' : label)).join('.');
			const candidate = firstMatchingCandidate(this.#candidatesByWildcard.get(wildcardHost) ?? NO_CANDIDATES, request);
			if (candidate && (!bestSoFar || candidate.order < bestSoFar.order)) bestSoFar = candidate;
		}
		return bestSoFar;
	}
}

function addCandidate(candidatesByHost: Map<string, SiteCandidate[]>, host: string, candidate: SiteCandidate): void {
	const hostCandidates = candidatesByHost.get(host);
	if (hostCandidates) hostCandidates.push(candidate);
	else candidatesByHost.set(host, [candidate]);
}

function firstMatchingCandidate(candidates: readonly SiteCandidate[], request: Request): SiteCandidate | undefined {
	for (const candidate of candidates) if (!candidate.matchesPath || candidate.matchesPath(request)) return candidate;
	return undefined;
}
