/** The registry of lint rules, one line each. */

import type { LintRule } from './inspection/lint-rule.ts';
import { accountsServed } from './rules/accounts-served.ts';
import { adminApiOpen } from './rules/admin-open.ts';
import { passwordOverPlainHttp } from './rules/auth-in-clear.ts';
import { blockEmpty } from './rules/block-empty.ts';
import { branchCovered } from './rules/branch-covered.ts';
import { branchNeverRuns } from './rules/branch-never-runs.ts';
import { cookieWithoutFlags } from './rules/cookie-flags.ts';
import { corsForEveryone } from './rules/cors-credentials.ts';
import { encodeAfterReplace } from './rules/encode-after-replace.ts';
import { environmentUnset } from './rules/environment-unset.ts';
import { errorPagesMissing } from './rules/error-pages-missing.ts';
import { errorsPageTooLate } from './rules/errors-page-too-late.ts';
import { filesPrivate } from './rules/files-private.ts';
import { headerAfterAnswer } from './rules/header-after-answer.ts';
import { headerBeforeRewrite } from './rules/header-before-rewrite.ts';
import { headerCachesErrors } from './rules/header-caches-errors.ts';
import { headerOfFraming } from './rules/header-of-framing.ts';
import { headerUpDefault } from './rules/header-up-default.ts';
import { hostNeverMatches } from './rules/host-never-matches.ts';
import { requestedHostHidden } from './rules/host-of-upstream.ts';
import { hstsWithoutTls } from './rules/hsts-without-tls.ts';
import { letUnused } from './rules/let-unused.ts';
import { limitKeyOfClient } from './rules/limit-key.ts';
import { limitRateOfClient } from './rules/limit-rate-of-client.ts';
import { limitWithoutBurst } from './rules/limit-without-burst.ts';
import { logFieldNeverSet } from './rules/log-field-never-set.ts';
import { matcherDuplicate } from './rules/matcher-duplicate.ts';
import { matcherNeverHolds } from './rules/matcher-never-holds.ts';
import { matcherRepeats } from './rules/matcher-repeats.ts';
import { matcherUnused } from './rules/matcher-unused.ts';
import { metricsNotCollected } from './rules/metrics-not-collected.ts';
import { metricsPublic } from './rules/metrics-public.ts';
import { directiveNeverRuns } from './rules/never-runs.ts';
import { oldSpelling } from './rules/old-spelling.ts';
import { pathAsSent } from './rules/path-as-sent.ts';
import { pathNeverMatches } from './rules/path-never-matches.ts';
import { pathWithoutSlash } from './rules/path-without-slash.ts';
import { nginxVariable } from './rules/placeholder-of-nginx.ts';
import { placeholderUnclosed } from './rules/placeholder-unclosed.ts';
import { placeholderUnknown } from './rules/placeholder-unknown.ts';
import { proxyToItself } from './rules/proxy-to-itself.ts';
import { quicWithoutProxyHeader } from './rules/quic-without-proxy-header.ts';
import { redirectLoop } from './rules/redirect-loop.ts';
import { redirectOpen } from './rules/redirect-open.ts';
import { rootMissing } from './rules/root-missing.ts';
import { rootTooWide } from './rules/root-too-wide.ts';
import { rootUnused } from './rules/root-unused.ts';
import { routeUnused } from './rules/route-unused.ts';
import { secretInFile } from './rules/secret-in-file.ts';
import { siteNeverAnswers } from './rules/site-never-answers.ts';
import { siteShadowed } from './rules/site-shadowed.ts';
import { snippetUnused } from './rules/snippet-unused.ts';
import { directiveCovered } from './rules/step-covered.ts';
import { tlsOff } from './rules/tls-off.ts';
import { trustsEveryone } from './rules/trusts-everyone.ts';
import { unformatted } from './rules/unformatted.ts';
import { upstreamTwice } from './rules/upstream-twice.ts';
import { upstreamUnused } from './rules/upstream-unused.ts';

export const lintRules: readonly LintRule[] = [
	adminApiOpen,
	accountsServed,
	passwordOverPlainHttp,
	blockEmpty,
	branchCovered,
	branchNeverRuns,
	cookieWithoutFlags,
	corsForEveryone,
	directiveCovered,
	directiveNeverRuns,
	encodeAfterReplace,
	environmentUnset,
	errorPagesMissing,
	errorsPageTooLate,
	filesPrivate,
	headerAfterAnswer,
	headerBeforeRewrite,
	headerCachesErrors,
	headerOfFraming,
	headerUpDefault,
	hostNeverMatches,
	requestedHostHidden,
	hstsWithoutTls,
	quicWithoutProxyHeader,
	letUnused,
	limitKeyOfClient,
	limitWithoutBurst,
	limitRateOfClient,
	logFieldNeverSet,
	matcherDuplicate,
	matcherNeverHolds,
	matcherRepeats,
	matcherUnused,
	metricsNotCollected,
	metricsPublic,
	oldSpelling,
	pathAsSent,
	pathNeverMatches,
	pathWithoutSlash,
	nginxVariable,
	placeholderUnclosed,
	placeholderUnknown,
	proxyToItself,
	redirectLoop,
	redirectOpen,
	rootMissing,
	rootTooWide,
	rootUnused,
	routeUnused,
	secretInFile,
	siteNeverAnswers,
	siteShadowed,
	snippetUnused,
	tlsOff,
	trustsEveryone,
	unformatted,
	upstreamTwice,
	upstreamUnused,
];
