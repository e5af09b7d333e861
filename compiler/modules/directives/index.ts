/** The registry of directives, one line each. */

import { abort } from './abort.ts';
import { acmeServer } from './acme-server/acme-server.ts';
import { basicAuth } from './basic-auth/basic-auth.ts';
import { bind } from './bind.ts';
import { cache } from './cache/cache.ts';
import type { Directive } from './directive.ts';
import { editHeaders } from './edit-headers.ts';
import { encode } from './encode/encode.ts';
import { error } from './error.ts';
import { phpFastcgi } from './fastcgi/php-fastcgi.ts';
import { fileServer } from './file-server/file-server.ts';
import { forwardAuth } from './forward-auth.ts';
import { fs } from './fs.ts';
import { handle } from './handle.ts';
import { handleErrors } from './handle-errors.ts';
import { handlePath } from './handle-path.ts';
import { header, requestHeader } from './header.ts';
import { invoke } from './invoke.ts';
import { log } from './log.ts';
import { logAppend } from './log-append.ts';
import { logName } from './log-name.ts';
import { logSkip } from './log-skip.ts';
import { map } from './map/map.ts';
import { methodDirective } from './method.ts';
import { metricsEndpoint } from './metrics.ts';
import { push } from './push.ts';
import { redir } from './redir.ts';
import { requestBody } from './request-body.ts';
import { respond } from './respond.ts';
import { intercept } from './responses/intercept.ts';
import { copyResponse, copyResponseHeaders } from './reverse-proxy/copy-response.ts';
import { reverseProxy } from './reverse-proxy/reverse-proxy.ts';
import { rewrite } from './rewrite.ts';
import { root } from './root.ts';
import { route } from './route.ts';
import { templates } from './templates/templates.ts';
import { timeouts } from './timeouts.ts';
import { tls } from './tls/tls.ts';
import { tracing } from './tracing/tracing.ts';
import { tryFiles } from './try-files.ts';
import { uri } from './uri.ts';
import { vars } from './vars.ts';
import { when } from './when.ts';

/** All directives, in the order of `list-modules` and the manual. */
export const directives: readonly Directive[] = [
	abort,
	acmeServer,
	basicAuth,
	bind,
	cache,
	copyResponse,
	copyResponseHeaders,
	editHeaders,
	encode,
	error,
	fileServer,
	fs,
	handle,
	handleErrors,
	handlePath,
	header,
	invoke,
	intercept,
	log,
	logAppend,
	logName,
	logSkip,
	metricsEndpoint,
	map,
	methodDirective,
	push,
	redir,
	requestBody,
	requestHeader,
	respond,
	reverseProxy,
	phpFastcgi,
	forwardAuth,
	rewrite,
	root,
	route,
	templates,
	timeouts,
	tracing,
	tls,
	tryFiles,
	uri,
	vars,
	when,
];
