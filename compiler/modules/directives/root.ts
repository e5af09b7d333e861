/** `root`: the folder from which files are served. */
import { handlerDirective } from '../contract/directive.ts';
import { soleArgument } from './sole-argument.ts';
import type { SetVariablesStep } from './vars.ts';

const USAGE = 'root [matcher] <path>';

/** Syntax: `root [matcher] <path>`. */
export const root = handlerDirective<SetVariablesStep>({
	kind: 'handler',
	id: '',
	names: { configfile: ['root'], compatfile: ['root'] },
	usage: USAGE,
	summary: 'Sets the folder from which files are served.',
	documentation: [
		'Sets the variable `root`, which `file_server` uses. A relative path is relative to the file that contains it; in',
		`a Compatfile, to the server's working directory. A single argument is always the path; of two, the first is the`,
		'matcher.',
		'',
		'```',
		'root /srv/www',
		'root /downloads/* /srv/files',
		'```',
	].join('\n'),
	matcherToken: 'with-more-arguments',
	exclusive: true,
	order: { rank: 50 },
	lower: (directive, cx) => {
		const pathWord = soleArgument(directive, cx, USAGE, 'path');
		if (!pathWord) return undefined;
		const { line } = directive;
		const folder = cx.filePath(cx.template(pathWord), pathWord.span);
		return cx.origin<SetVariablesStep>({ handler: 'set_variables', variables: { root: folder } }, line.span);
	},
	schema: { properties: {} },
	compile: undefined,
});
