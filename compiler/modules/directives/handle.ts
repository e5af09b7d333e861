/** `handle`: a block of directives. Of adjacent `handle`s, only the first one that matches runs. */
import type { Step } from '../../document/document.ts';
import { requireBlock } from '../../lower/context/require-block.ts';
import { handlerDirective } from '../contract/directive.ts';

/** Lowers to a `group`, or to a branch of a `first_match`. */
export const handle = handlerDirective<Step>({
	kind: 'handler',
	id: '',
	names: { configfile: ['handle'], compatfile: ['handle'] },
	usage: 'handle [matcher] { … }',
	summary: 'Runs a block of directives and skips the `handle`s next to it.',
	documentation: [
		'Adjacent `handle` and `handle_path` blocks are alternatives: the first whose matcher holds',
		'runs, and the rest are skipped. In a Compatfile, all of them in one block are alternatives, sorted by path.',
		'',
		'```',
		'handle /api/* {',
		'	reverse_proxy 127.0.0.1:9000',
		'}',
		'handle {',
		'	file_server',
		'}',
		'```',
		'',
		'In the document, several become one `first_match`, and a single one becomes a `group`.',
	].join('\n'),
	matcherToken: 'optional',
	alternativeTo: 'handle',
	isBlock: true,
	order: { rank: 270 },
	lower: ({ line, args }, cx) => {
		cx.count(line, args, 0, 0, handle.usage);
		const block = requireBlock(line, cx);
		return block && { handler: 'group', pipeline: cx.pipeline(block.lines) };
	},
	schema: { properties: {} },
	compile: undefined,
});
