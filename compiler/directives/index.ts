/** Every directive, one line each. */
import { bind } from './bind.ts';
import type { Directive } from './directive.ts';
import { fileServer } from './file-server/file-server.ts';
import { handle } from './handle.ts';
import { handleErrors } from './handle-errors.ts';
import { handlePath } from './handle-path.ts';
import { log } from './log.ts';
import { respond } from './respond.ts';
import { route } from './route.ts';
import { when } from './when.ts';

/** In the order in which `list-modules` and the manual name them. */
export const directives: readonly Directive[] = [
	bind,
	fileServer,
	handle,
	handleErrors,
	handlePath,
	log,
	respond,
	route,
	when,
];
