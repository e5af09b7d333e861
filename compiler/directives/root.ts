/** `root`: the folder that files are served from. */
import { isAbsolute, resolve } from 'node:path';
import { handlerDirective } from './directive.ts';
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
	lower: ({ line, args }, cx) => {
		cx.noBlock(line);
		const [path, surplus] = args;
		if (!path || surplus) {
			if (cx.dialect === 'configfile') cx.count(line, args, 1, 1, USAGE);
			else {
				const message = path
					? 'too many arguments; should only be a matcher and a path'
					: 'too few arguments; must have at least a root path';
				cx.problem('error', 'root/arguments', (surplus ?? line).span, message);
			}
			return undefined;
		}
		const text = cx.template(path);
		const folder = isAbsolute(text) || text.startsWith('{') ? text : resolve(cx.folderOf(path.span), text);
		return cx.origin<SetVariablesStep>({ handler: 'set_variables', variables: { root: folder } }, line.span);
	},
	schema: { properties: {} },
	compile: undefined,
});
