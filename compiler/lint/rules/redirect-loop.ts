/** The lint rule `redirect/loop`, which reports a redirect that starts an endless chain of redirects. */
import type { Matcher } from '../../document/document.ts';
import { isSiteAddress, parseSiteAddress } from '../../document/site-address.ts';
import { traitsOf } from '../inspection/answering.ts';
import { excludesPath } from '../inspection/coverage.ts';
import { fieldEditsOf } from '../inspection/header-fields.ts';
import type { LintContext } from '../inspection/lint-context.ts';
import type { LintRule } from '../inspection/lint-rule.ts';
import { PathPatternIndex } from '../inspection/path-pattern-index.ts';
import { conditionsOf, sampleGet, samplePaths, siteOrigins } from '../inspection/sample-request.ts';
import type { WalkedStep } from '../inspection/walk-document.ts';

/** Number of redirects that a browser follows before it gives up. */
const MAX_REDIRECTS = 20;
/** Maximum number of characters of a URL that is followed. Clients do not send longer URLs. */
const MAX_URL_CHARS = 8192;

export const redirectLoop: LintRule = {
	name: 'redirect/loop',
	severity: 'warning',
	summary: 'A redirect leads back to itself.',
	documentation: [
		'Requests for the paths that a `redir` matches are sent through the code that would serve them, without a network,',
		'and redirects are followed as a browser would. A URL that repeats, or a chain of more than 20, is a loop.',
	].join('\n'),
	dependsOn: 'served site',
	check: async cx => {
		if (cannotLoop(cx)) return;
		for (const walkedStep of cx.walkedDocument.steps) {
			const redirect = traitsOf(walkedStep.step).redirectsTo?.(walkedStep.step);
			const { site } = walkedStep.pipeline;
			if (!redirect || redirect.isByPage || site === undefined) continue;
			const loop = await findLoop(walkedStep, site, cx);
			if (!loop) continue;
			const shownUrls = loop.length > 4 ? [...loop.slice(0, 3), '…'] : loop;
			const destination = new Set(loop).size < loop.length ? 'back to its start' : 'on without end';
			cx.reportAt(walkedStep.pointer, `This redirect leads ${destination}.`, {
				hint: `The chain: ${shownUrls.map(url => `\`${url.length > 100 ? `${url.slice(0, 100)}…` : url}\``).join(' → ')}.`,
			});
		}
	},
};

/** Matches targets that are plain paths of the same site: letters, digits, `_`, `-`, `/`, and dots inside a segment. */
const OWN_PATH = /^\/(?!\/)(?:[\w/-]|\.(?![./]|$))*$/;

/**
 * Returns true only if it is certain that the redirects of a site lead to paths that the site does not redirect. This holds for
 * most sites, and saves sending requests, which is slow.
 */
function cannotLoop({ scope: { site }, walkedDocument: walked }: LintContext): boolean {
	if (!site?.addresses.every(hasNoPath)) return false;
	const redirects: { readonly walkedStep: WalkedStep; readonly to: string }[] = [];
	for (const walkedStep of walked.steps) {
		const { redirectsTo, changesTarget, routeOf } = traitsOf(walkedStep.step);
		if (changesTarget || routeOf) return false;
		const redirect = redirectsTo?.(walkedStep.step);
		if (redirect && !redirect.isByPage) redirects.push({ walkedStep, to: redirect.to });
	}
	if (fieldEditsOf(walked).some(({ name }) => name.toLowerCase() === 'location')) return false;
	// Most redirects match a few paths or prefixes. Only those that may match a target are compared with it.
	const indexedConditions = new PathPatternIndex<readonly Matcher[]>();
	const otherConditions = redirects
		.map(({ walkedStep }) => conditionsOf(walkedStep))
		.filter(conditions => !conditions.some(condition => indexedConditions.add(condition, conditions)));
	return redirects.every(
		({ to }) =>
			OWN_PATH.test(to) &&
			[...indexedConditions.ownersFor(to.toLowerCase()), ...otherConditions].every(conditions =>
				conditions.some(condition => excludesPath(condition, to)),
			),
	);
}

function hasNoPath(text: string): boolean {
	const address = parseSiteAddress(text);
	return isSiteAddress(address) && address.path === '';
}

async function findLoop(walkedStep: WalkedStep, site: number, cx: LintContext): Promise<string[] | undefined> {
	const conditions = conditionsOf(walkedStep);
	for (const origin of siteOrigins(cx.plan, site)) {
		for (const path of samplePaths(walkedStep, conditions)) {
			const loop = await followRedirects(`${origin}${path}`, site, cx);
			if (loop) return loop;
		}
	}
	return undefined;
}

/** Returns the URLs of a chain of redirects that does not end; undefined if it ends. */
async function followRedirects(startUrl: string, site: number, cx: LintContext): Promise<string[] | undefined> {
	const visitedUrls: string[] = [];
	for (let url = startUrl; ; ) {
		visitedUrls.push(url);
		// The length is limited because a loop that adds the URL to itself doubles it with every redirect.
		if (visitedUrls.length > MAX_REDIRECTS || url.length > MAX_URL_CHARS) return visitedUrls;
		const request = sampleGet(url);
		const dryRunResult = request && (await cx.subject.dryRun(request));
		const { response } = dryRunResult ?? {};
		// If another site answers, or rate limits are in use, the redirect may change although this site does not.
		if (dryRunResult && ((dryRunResult.site !== site && dryRunResult.site !== -1) || dryRunResult.usesRateLimits))
			cx.requestReinspection();
		response?.close();
		const location = response && response.status >= 300 && response.status < 400 && response.headers.get('Location');
		if (!location || !URL.canParse(location, url)) return undefined;
		const nextUrl = new URL(location, url);
		nextUrl.hash = '';
		url = nextUrl.href;
		if (visitedUrls.includes(url)) return [...visitedUrls.slice(visitedUrls.indexOf(url)), url];
	}
}
