/** `fs`: the file system that files are served from. */
import type { LowerContext } from '../../lower/lower-context.ts';
import type { Word } from '../../syntax/ast.ts';
import { handlerDirective } from './directive.ts';
import type { SetVariablesStep } from './vars.ts';

/** Whether a word names the file system there is; any other is refused. */
export function isFileSystem({ text, span }: Word, cx: LowerContext): boolean {
	if (text === 'default') return true;
	cx.problem(
		'error',
		'fs/unavailable',
		span,
		`The file system \`${text}\` is not part of this build: there is only \`default\`.`,
	);
	return false;
}

const USAGE = 'fs [matcher] default';

/** `fs [matcher] <name>`: sugar for the variable `fs`. */
export const fs = handlerDirective<SetVariablesStep>({
	kind: 'handler',
	id: '',
	names: { configfile: ['fs'], compatfile: ['fs'] },
	usage: USAGE,
	summary: 'Chooses the file system that files are served from.',
	documentation: [
		'Sets the variable `fs`. There is one file system, `default`, which is that of the machine: any other name is refused.',
		'',
		'```',
		'fs default',
		'```',
	].join('\n'),
	matcherToken: 'optional',
	order: { rank: 40 },
	lower: ({ line, args }, cx) => {
		cx.noBlock(line);
		if (!cx.count(line, args, 1, 1, USAGE)) return undefined;
		if (!isFileSystem(args[0]!, cx)) return undefined;
		return { handler: 'set_variables', variables: { fs: args[0]!.text } };
	},
	schema: { properties: {} },
	compile: undefined,
});
