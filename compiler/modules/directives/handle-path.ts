/** `handle_path`: a `handle` for a path prefix that is stripped before its directives run. */
import type { Step } from '../../document/document.ts';
import { requireBlock } from '../../lower/context/require-block.ts';
import { handlerDirective } from '../contract/directive.ts';

/** Lowers to a `group` whose first step strips the prefix. */
export const handlePath = handlerDirective<Step>({
	kind: 'handler',
	id: '',
	names: { configfile: ['handle_path'], compatfile: ['handle_path'] },
	usage: 'handle_path <path-prefix> { … }',
	summary: 'Runs a block for a path prefix and strips the prefix.',
	documentation: [
		'Like `handle` with a path matcher, but inside the block the path lacks the prefix. The prefix is the',
		'pattern without its `*` or `/*`.',
		'',
		'```',
		'handle_path /static/* {',
		'	root /srv/static',
		'	file_server',
		'}',
		'```',
	].join('\n'),
	matcherToken: 'none',
	alternativeTo: 'handle',
	isBlock: true,
	order: { rank: 271 },
	lower: ({ line, name, args }, cx) => {
		const isCountValid = cx.count(line, args, 1, 1, handlePath.usage);
		const block = requireBlock(line, cx);
		const pipeline = block ? cx.pipeline(block.lines) : [];
		const patternWord = args[0];
		if (!isCountValid || !patternWord || !block) return undefined;
		if (!patternWord.text.startsWith('/')) {
			const message =
				cx.dialect === 'configfile'
					? `\`${patternWord.text}\` is not a path: a path begins with \`/\`.`
					: `path matcher must begin with '/', got ${patternWord.text}`;
			cx.problem('error', 'handle-path/not-a-path', patternWord.span, message, { hint: `Usage: ${handlePath.usage}` });
			return undefined;
		}
		const pathPattern = cx.template(patternWord);
		const prefix = pathPattern.replace(/\/?\*$/, '');
		const stripSteps: readonly Step[] =
			prefix === '' ? [] : [cx.origin({ handler: 'rewrite_target', strip_prefix: prefix }, name.span)];
		return {
			handler: 'group',
			when: cx.origin({ type: 'path', patterns: [pathPattern] }, patternWord.span),
			pipeline: [...stripSteps, ...pipeline],
		};
	},
	schema: { properties: {} },
	compile: undefined,
});
