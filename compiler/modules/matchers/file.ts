/** `file`: files and folders that are there. */
import type { Matcher } from '../../document/document.ts';
import type { LowerContext } from '../../lower/lower-context.ts';
import type { Word } from '../../syntax/ast.ts';
import { compileFileMatcher, REQUEST_PATH } from './file-candidates.ts';
import { requestMatcher } from './matcher.ts';

/** Which of several files is taken. */
export const TRY_POLICIES = [
	'first_exist',
	'first_exist_fallback',
	'smallest_size',
	'largest_size',
	'most_recently_modified',
] as const;

/** The policy of the document that is `first_exist_fallback` in a Compatfile, where also the last one must be there. */
export const COMPATIBLE_FALLBACK = 'first_exist_last_any';

/** The policies of the document. */
const POLICIES = [...TRY_POLICIES, COMPATIBLE_FALLBACK] as const;

/** The matcher in the document. */
export interface FileMatcher extends Matcher {
	readonly type: 'file';
	/** Paths below the root, with placeholders and globs; `=404` raises that error. None: the path of the request. */
	readonly files?: readonly string[];
	readonly root?: string;
	/** `rendered`: the slash that asks for a folder may come from a placeholder; written ones alone do if left out. */
	readonly slashes?: 'rendered';
	readonly policy?: (typeof POLICIES)[number];
	readonly split_path?: readonly string[];
}

const USAGE = 'file [<file>…] [{ root <path>; try_files <file>…; try_policy <policy>; split_path <extension>… }]';

/** The `file` matcher. */
export const file = requestMatcher<FileMatcher>({
	id: 'file',
	usage: USAGE,
	summary: 'Matches when a file is there.',
	documentation: [
		'Tries the files in order; without any it tries the path of the request (in a Compatfile a slash at its end does not count,',
		'and a folder does not match). A file may hold placeholders and the globs `*`,',
		'`?` and `[a-z]`; what a placeholder holds is no glob, and no path leads out of the root. A path that ends in a slash must',
		'be a folder, any other must be none. `=404` raises that error instead of trying on.',
		'',
		'| Line | Meaning |',
		'| --- | --- |',
		'| `root PATH` | folder that the files are below; the variable `root` if left out |',
		'| `try_files FILE…` | more files |',
		'| `try_policy first_exist` | the first that is there, which is the default |',
		'| `try_policy first_exist_fallback` | the same, the last one taken without looking (in a Compatfile it must be there, a folder or not) |',
		'| `try_policy smallest_size \\| largest_size \\| most_recently_modified` | the one of all that is so |',
		'| `split_path EXT…` | a path is cut behind the first segment that ends so, and the rest not looked at |',
		'',
		'What was found is `{file_match.relative}`, `{file_match.absolute}`, `{file_match.type}` (`file` or `directory`) and',
		'`{file_match.remainder}`. Symbolic links that lead out of the root are not followed.',
		'',
		'```',
		'@page file {path} {path}.html',
		'```',
	].join('\n'),
	judges: 'files',
	lower: (line, cx) => {
		const files = line.words.slice(1).map(word => cx.template(word));
		for (const word of line.words.slice(1)) checkStatus(word, cx);
		const fields: { root?: string; policy?: FileMatcher['policy']; split_path?: string[] } = {};
		cx.subdirectives(
			line.block,
			{
				root: (words, at) => {
					if (!cx.count(at, words, 1, 1, 'root <path>')) return;
					fields.root = cx.filePath(cx.template(words[0]!), words[0]!.span);
				},
				try_files: (words, at) => {
					if (!cx.count(at, words, 1, Number.POSITIVE_INFINITY, 'try_files <file>…')) return;
					for (const word of words) checkStatus(word, cx);
					files.push(...words.map(word => cx.template(word)));
				},
				try_policy: (words, at) => {
					const policy = cx.count(at, words, 1, 1, 'try_policy <policy>') && lowerTryPolicy(words[0]!, cx, 'unknown');
					if (policy) fields.policy = policy;
				},
				split_path: (words, at) => {
					if (!cx.count(at, words, 1, Number.POSITIVE_INFINITY, 'split_path <extension>…')) return;
					fields.split_path = [...(fields.split_path ?? []), ...words.map(word => word.text)];
				},
			},
			'file',
		);
		// The compatible server cleans the path, which takes its slash, and looks for a file that is no folder.
		if (files.length === 0 && cx.dialect === 'compatfile') files.push(REQUEST_PATH);
		return { type: 'file', ...(files.length > 0 ? { files } : {}), ...fields } as FileMatcher;
	},
	schema: {
		properties: {
			files: {
				type: 'array',
				items: { type: 'string' },
				minItems: 1,
				description: 'Paths below the root, with placeholders and globs; `=404` raises that error.',
			},
			root: { type: 'string', description: 'Folder that the files are below. The variable `root` if left out.' },
			slashes: {
				enum: ['rendered'],
				description:
					'The slash that asks for a folder may come from a placeholder; only a written one counts if left out.',
			},
			policy: {
				enum: POLICIES,
				default: 'first_exist',
				description: [
					'Which of several files is taken. `first_exist` if left out; `first_exist_fallback` takes the last one without',
					'looking, `first_exist_last_any` takes whatever stands there under the last name, be it a folder.',
				].join(' '),
			},
			split_path: {
				type: 'array',
				items: { type: 'string', minLength: 1 },
				description: 'Ends of segments behind which a path is cut.',
			},
		},
	},
	compile: compileFileMatcher,
});

/** Reads a policy; `how` begins the message of the compatible server. */
export function lowerTryPolicy(word: Word, cx: LowerContext, how: 'unknown' | 'unrecognized'): FileMatcher['policy'] {
	const policy = TRY_POLICIES.find(name => name === word.text);
	if (policy === 'first_exist_fallback' && cx.dialect === 'compatfile') return COMPATIBLE_FALLBACK;
	if (policy) return policy;
	if (cx.dialect === 'configfile') return cx.oneOf(word, TRY_POLICIES, 'try policy');
	cx.problem(
		'error',
		'file/unknown-policy',
		word.span,
		how === 'unknown' ? `unknown try policy ${word.text}` : `unrecognized try policy: ${word.text}`,
	);
	return undefined;
}

/** `=404` must be the status of a final response. */
export function checkStatus({ text, span }: Word, cx: LowerContext): void {
	if (!/^=\d+$/.test(text) || /^=[2-9]\d\d$/.test(text)) return;
	cx.problem('error', 'file/bad-status', span, `\`${text}\` is not an error status.`, {
		hint: 'Write `=404` or another status.',
	});
}
