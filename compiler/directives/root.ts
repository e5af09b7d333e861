/** `root`: the folder that files are served from. */
import { isAbsolute, resolve } from 'node:path';
import { handlerDirective } from './directive.ts';
import { soleArgument } from './sole-argument.ts';
import type { SetVariablesStep } from './vars.ts';

const USAGE = 'root [matcher] <path>';

/** `root [matcher] <path>`. */
export const root = handlerDirective<SetVariablesStep>({
	kind: 'handler',
	id: '',
	names: { configfile: ['root'], compatfile: ['root'] },
	usage: USAGE,
	summary: 'Sets the folder that files are served from.',
	documentation: [
		'Sets the variable `root`, which `file_server` reads. A relative path is relative to the file in which it is written. A',
		'single argument is always the path; with two the first is the matcher.',
		'',
		'```',
		'root /srv/www',
		'root /downloads/* /srv/files',
		'```',
	].join('\n'),
	matcherToken: 'with-more-arguments',
	exclusive: true,
	lower: (directive, cx) => {
		const path = soleArgument(directive, cx, USAGE, 'path');
		if (!path) return undefined;
		const { line } = directive;
		const text = cx.template(path);
		const folder = isAbsolute(text) || text.startsWith('{') ? text : resolve(cx.folderOf(path.span), text);
		return cx.origin<SetVariablesStep>({ handler: 'set_variables', variables: { root: folder } }, line.span);
	},
	schema: { properties: {} },
	compile: undefined,
});
