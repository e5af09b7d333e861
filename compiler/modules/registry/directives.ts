/** The registry of directives, one line each. */

import type { Directive } from '../contract/directive.ts';
import { abort } from '../directives/abort.ts';
import { acmeServer } from '../directives/acme-server/acme-server.ts';
import { basicAuth } from '../directives/basic-auth/basic-auth.ts';
import { bind } from '../directives/bind.ts';
import { cache } from '../directives/cache/cache.ts';
import { cookie } from '../directives/cookie.ts';
import { editHeaders } from '../directives/edit-headers.ts';
import { encode } from '../directives/encode/encode.ts';
import { error } from '../directives/error.ts';
import { errorsPage } from '../directives/errors-page/errors-page.ts';
import { phpFastcgi } from '../directives/fastcgi/php-fastcgi.ts';
import { fileServer } from '../directives/file-server/file-server.ts';
import { forwardAuth } from '../directives/forward-auth.ts';
import { fs } from '../directives/fs.ts';
import { handle } from '../directives/handle.ts';
import { handleErrors } from '../directives/handle-errors.ts';
import { handlePath } from '../directives/handle-path.ts';
import { header, requestHeader } from '../directives/header.ts';
import { invoke } from '../directives/invoke.ts';
import { limitConcurrent } from '../directives/limit-concurrent/limit-concurrent.ts';
import { limitRate } from '../directives/limit-rate.ts';
import { live } from '../directives/live.ts';
import { log } from '../directives/log.ts';
import { logAppend } from '../directives/log-append.ts';
import { logName } from '../directives/log-name.ts';
import { logSkip } from '../directives/log-skip.ts';
import { map } from '../directives/map/map.ts';
import { methodDirective } from '../directives/method.ts';
import { metricsEndpoint } from '../directives/metrics.ts';
import { mirror } from '../directives/mirror/mirror.ts';
import { push } from '../directives/push.ts';
import { rateLimit } from '../directives/rate-limit/rate-limit.ts';
import { ready } from '../directives/ready.ts';
import { redir } from '../directives/redir.ts';
import { replace } from '../directives/replace/replace.ts';
import { requestBody } from '../directives/request-body.ts';
import { respond } from '../directives/respond.ts';
import { intercept } from '../directives/responses/intercept.ts';
import { copyResponse, copyResponseHeaders } from '../directives/reverse-proxy/copy-response.ts';
import { reverseProxy } from '../directives/reverse-proxy/reverse-proxy.ts';
import { rewrite } from '../directives/rewrite.ts';
import { root } from '../directives/root.ts';
import { route } from '../directives/route.ts';
import { split } from '../directives/split.ts';
import { templates } from '../directives/templates/templates.ts';
import { timeouts } from '../directives/timeouts.ts';
import { tls } from '../directives/tls/tls.ts';
import { tracing } from '../directives/tracing/tracing.ts';
import { tryFiles } from '../directives/try-files.ts';
import { uri } from '../directives/uri.ts';
import { vars } from '../directives/vars.ts';
import { when } from '../directives/when.ts';

/**
 * All directives. A new one can be added anywhere: the order of the list is visible only in the output of `svc schema`. The
 * directives of a Compatfile are sorted by the `rank` in their definitions, and the manual is sorted by name.
 */
export const directives: readonly Directive[] = [
	abort,
	acmeServer,
	basicAuth,
	bind,
	cache,
	cookie,
	copyResponse,
	copyResponseHeaders,
	editHeaders,
	encode,
	error,
	errorsPage,
	fileServer,
	fs,
	handle,
	handleErrors,
	handlePath,
	header,
	invoke,
	intercept,
	live,
	limitConcurrent,
	limitRate,
	log,
	logAppend,
	logName,
	logSkip,
	metricsEndpoint,
	map,
	methodDirective,
	mirror,
	push,
	ready,
	rateLimit,
	redir,
	replace,
	requestBody,
	requestHeader,
	respond,
	reverseProxy,
	phpFastcgi,
	forwardAuth,
	rewrite,
	root,
	route,
	split,
	templates,
	timeouts,
	tracing,
	tls,
	tryFiles,
	uri,
	vars,
	when,
];
