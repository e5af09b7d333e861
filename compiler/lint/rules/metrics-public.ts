/** The lint rule `metrics/public`, which reports metrics that everybody can read. */
import { metricsEndpoint } from '../../modules/directives/metrics.ts';
import type { LintContext } from '../inspection/lint-context.ts';
import type { LintRule } from '../inspection/lint-rule.ts';
import { isPublicName } from '../inspection/public-host.ts';
import { conditionsOf, sampleGet, samplePaths, siteOrigins } from '../inspection/sample-request.ts';
import type { WalkedStep } from '../inspection/walk-document.ts';

/** An example of a client's address on the Internet (RFC 5737). */
const INTERNET_CLIENT_ADDRESS = '203.0.113.7';

export const metricsPublic: LintRule = {
	name: 'metrics/public',
	severity: 'warning',
	summary: 'Everybody can read the metrics of the server.',
	documentation: [
		'Metrics tell strangers how much traffic each site has, which upstreams exist and which release runs. A request without',
		'credentials, from an address on the Internet, is sent through the code that would serve it, without a network. The',
		'rule reports the `metrics` that answers it on a public host name. A path that is hard to guess is no protection. Ask',
		'for a password, admit only the address of the monitoring server, or serve the metrics on a port of their own:',
		'',
		'```',
		'http://:9090 {',
		'	metrics /metrics',
		'}',
		'```',
	].join('\n'),
	dependsOn: 'served site',
	check: async cx => {
		for (const walkedStep of cx.walkedDocument.steps) {
			if (walkedStep.step.handler !== metricsEndpoint.id || walkedStep.pipeline.site === undefined) continue;
			const url = await publicUrl(walkedStep, walkedStep.pipeline.site, cx);
			if (url === undefined) continue;
			cx.reportAt(walkedStep.pointer, `Everybody can read the metrics at \`${url}\`.`, {
				hint: 'Put `basic_auth` before it, match `remote_ip` of the monitoring server, or serve `metrics` on a port of its own.',
			});
		}
	},
};

/** Returns a URL at which clients on the Internet get the metrics that a step serves; undefined if there is none. */
async function publicUrl(walkedStep: WalkedStep, site: number, cx: LintContext): Promise<string | undefined> {
	for (const origin of siteOrigins(cx.plan, site)) {
		// A name such as `09` is valid in an address, but not in a URL.
		if (!URL.canParse(origin) || !isPublicName(new URL(origin).hostname)) continue;
		for (const path of samplePaths(walkedStep, conditionsOf(walkedStep))) {
			const request = sampleGet(`${origin}${path}`);
			const dryRunResult = request && (await cx.subject.dryRun({ ...request, from: INTERNET_CLIENT_ADDRESS }));
			dryRunResult?.response?.close();
			// If another site answers, or rate limits are in use, the answer may change although this site does not.
			if (dryRunResult && ((dryRunResult.site !== site && dryRunResult.site !== -1) || dryRunResult.usesRateLimits))
				cx.requestReinspection();
			if (dryRunResult?.exchange.answeredBy === metricsEndpoint.id) return `${origin}${path}`;
		}
	}
	return undefined;
}
