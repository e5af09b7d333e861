/** Every directive, one line each. */

import { abort } from './abort.ts';
import { basicAuth } from './basic-auth/basic-auth.ts';
import { bind } from './bind.ts';
import type { Directive } from './directive.ts';
import { editHeaders } from './edit-headers.ts';
import { error } from './error.ts';
import { fileServer } from './file-server/file-server.ts';
import { handle } from './handle.ts';
import { handleErrors } from './handle-errors.ts';
import { handlePath } from './handle-path.ts';
import { header, requestHeader } from './header.ts';
import { log } from './log.ts';
import { redir } from './redir.ts';
import { respond } from './respond.ts';
import { reverseProxy } from './reverse-proxy/reverse-proxy.ts';
import { rewrite } from './rewrite.ts';
import { root } from './root.ts';
import { route } from './route.ts';
import { uri } from './uri.ts';
import { vars } from './vars.ts';
import { when } from './when.ts';

/** In the order in which `list-modules` and the manual name them. */
export const directives: readonly Directive[] = [
	abort,
	basicAuth,
	bind,
	editHeaders,
	error,
	fileServer,
	handle,
	handleErrors,
	handlePath,
	header,
	log,
	redir,
	requestHeader,
	respond,
	reverseProxy,
	rewrite,
	root,
	route,
	uri,
	vars,
	when,
];
