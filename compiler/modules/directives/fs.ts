/** `fs`: the file system from which files are served. */

import type { Word } from '../../syntax/ast.ts';
import { handlerDirective } from '../contract/directive.ts';
import type { LowerContext } from '../contract/lower-context.ts';
import type { SetVariablesStep } from './vars.ts';

/** Checks that a word names the only file system, `default`. Otherwise, reports a mistake and returns false. */
export function checkFileSystem({ text, span }: Word, cx: LowerContext): boolean {
	if (text === 'default') return true;
	cx.problem(
		'error',
		'fs/unavailable',
		span,
		`The file system \`${text}\` is not supported by this build; only \`default\` is.`,
	);
	return false;
}

const USAGE = 'fs [matcher] default';

/** `fs [matcher] <name>`: shorthand for setting the variable `fs`. */
export const fs = handlerDirective<SetVariablesStep>({
	kind: 'handler',
	id: '',
	names: { configfile: ['fs'], compatfile: ['fs'] },
	usage: USAGE,
	summary: 'Selects the file system from which files are served.',
	documentation: [
		"Sets the variable `fs`. The only file system is `default`, the machine's; any other name is rejected.",
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
		if (!checkFileSystem(args[0]!, cx)) return undefined;
		return { handler: 'set_variables', variables: { fs: args[0]!.text } };
	},
	schema: { properties: {} },
	compile: undefined,
});
