/** The lint rule `redirect/loop`. */
import { traitsOf } from '../inspection/answering.ts';
import type { LintContext } from '../inspection/lint-context.ts';
import type { LintRule } from '../inspection/lint-rule.ts';
import { conditionsOf, originsOf, sampleGet, samplePaths } from '../inspection/sample-request.ts';
import type { WalkedStep } from '../inspection/walk-document.ts';

/** Number of redirects that a browser follows before it gives up. */
const MAX_HOPS = 20;
/** A URL with more characters than this is treated as unusable, because no client would send it. */
const MAX_URL = 8192;

/** Reports a redirect that leads back to itself. */
export const redirectLoop: LintRule = {
	name: 'redirect/loop',
	severity: 'warning',
	summary: 'A redirect leads back to itself.',
	documentation: [
		'Requests for the paths that a `redir` matches are sent through the code that would serve them, without a network,',
		'and redirects are followed as a browser would. A URL that repeats, or a chain of more than 20, is a loop.',
	].join('\n'),
	check: async cx => {
		for (const walked of cx.walked.steps) {
			const redirect = traitsOf(walked.step).redirectsTo?.(walked.step);
			if (!redirect || redirect.byPage || walked.pipeline.site === undefined) continue;
			const loop = await loopFrom(walked, cx);
			if (!loop) continue;
			const way = loop.length > 4 ? [...loop.slice(0, 3), '…'] : loop;
			const ends = new Set(loop).size < loop.length ? 'back to its start' : 'on without end';
			cx.at(walked.pointer, `This redirect leads ${ends}.`, {
				hint: `The chain: ${way.map(url => `\`${url.length > 100 ? `${url.slice(0, 100)}…` : url}\``).join(' → ')}.`,
			});
		}
	},
};

async function loopFrom(walked: WalkedStep, cx: LintContext): Promise<string[] | undefined> {
	const conditions = conditionsOf(walked);
	for (const origin of originsOf(cx.plan, walked.pipeline.site!)) {
		for (const path of samplePaths(walked, conditions)) {
			const loop = await follow(`${origin}${path}`, cx);
			if (loop) return loop;
		}
	}
	return undefined;
}

/** Returns the URLs of a chain of redirects that does not end; undefined if it ends. */
async function follow(from: string, cx: LintContext): Promise<string[] | undefined> {
	const seen: string[] = [];
	for (let url = from; ; ) {
		seen.push(url);
		// In a loop that adds the URL to itself, the length doubles with every redirect.
		if (seen.length > MAX_HOPS || url.length > MAX_URL) return seen;
		const request = sampleGet(url);
		const result = request && (await cx.subject.dryRun(request));
		const { response } = result ?? {};
		response?.close();
		const location = response && response.status >= 300 && response.status < 400 && response.headers.get('Location');
		if (!location || !URL.canParse(location, url)) return undefined;
		const next = new URL(location, url);
		next.hash = '';
		url = next.href;
		if (seen.includes(url)) return [...seen.slice(seen.indexOf(url)), url];
	}
}
