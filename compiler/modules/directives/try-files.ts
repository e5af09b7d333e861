/** `try_files`: rewrites to the first of several files that exists. */
import type { Step } from '../../document/document.ts';
import { handlerDirective } from '../contract/directive.ts';
import { checkErrorStatus, type FileMatcher, lowerTryPolicy } from '../matchers/file.ts';

const USAGE = 'try_files <file>… [{ policy <policy> }]';

/** Lowers to a rewrite whose matcher `file` finds the first existing file. */
export const tryFiles = handlerDirective<Step>({
	kind: 'handler',
	id: '',
	names: { configfile: ['try_files'], compatfile: ['try_files'] },
	usage: USAGE,
	summary: 'Rewrites the path to the first file that exists.',
	documentation: [
		'The same as the matcher `file` with these files and a `rewrite` to `{file_match.relative}`: if none exists, the',
		'request is unchanged. A file with a query, such as `/index.php?{query}`, gets that query; other files keep the',
		"request's. `=404` as the last file raises that error. The policies are those of `file`.",
		'',
		'```',
		'try_files {path} {path}/ /index.html',
		'```',
	].join('\n'),
	matcherToken: 'none',
	order: {
		rank: 170,
		// Sorted like a line with a matcher, because its effect depends on which files exist.
		sortsAsConditional: true,
		routeCount: ({ branches }) => (Array.isArray(branches) ? branches.length : 1),
	},
	lower: ({ line, args }, cx) => {
		if (!cx.count(line, args, 1, Number.POSITIVE_INFINITY, USAGE)) return undefined;
		let policy: FileMatcher['policy'];
		cx.subdirectives(
			line.block,
			{
				policy: (words, innerLine) => {
					if (cx.count(innerLine, words, 1, 1, 'policy <policy>'))
						policy = lowerTryPolicy(words[0]!, cx, 'unrecognized');
				},
			},
			'try_files',
		);
		const fileGroups: { files: string[]; query: string }[] = [];
		for (const word of args) {
			checkErrorStatus(word, cx);
			const fileTemplate = cx.template(word);
			const queryStart = findQueryStart(fileTemplate);
			const lastGroup = fileGroups.at(-1);
			if (queryStart !== -1)
				fileGroups.push({ files: [fileTemplate.slice(0, queryStart)], query: fileTemplate.slice(queryStart) });
			else if (lastGroup?.query === '') lastGroup.files.push(fileTemplate);
			else fileGroups.push({ files: [fileTemplate], query: '' });
		}
		const branches = fileGroups.map(({ files, query }) => {
			const when = { type: 'file', files, ...(policy === undefined ? {} : { policy }) };
			const to = `{http.matchers.file.relative}${query}`;
			return { when: cx.origin(when, line.span), to };
		});
		const onlyBranch = branches.length === 1 ? branches[0] : undefined;
		if (onlyBranch)
			return cx.origin({ handler: 'rewrite_target', when: onlyBranch.when, to: onlyBranch.to }, line.span);
		return cx.origin(
			{
				handler: 'first_match',
				branches: branches.map(({ when, to }) => ({ when, pipeline: [{ handler: 'rewrite_target', to }] })),
			},
			line.span,
		);
	},
	schema: { properties: {} },
	compile: undefined,
});

/** Returns the index at which the query of a tried file begins: the first `?` outside of placeholders; −1 if there is none. */
function findQueryStart(text: string): number {
	return text.search(/\?(?![^{}]*\})/);
}
