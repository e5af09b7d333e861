/** `file`: matches if files or folders exist. */
import type { Matcher } from '../../document/document.ts';
import type { Word } from '../../syntax/ast.ts';
import type { LowerContext } from '../contract/lower-context.ts';
import { requestMatcher } from '../contract/matcher.ts';
import { compileFileMatcher, REQUEST_PATH_PLACEHOLDER } from './file-candidates.ts';

/** Names of the policies by which one of several files is selected. */
export const TRY_POLICIES = [
	'first_exist',
	'first_exist_fallback',
	'smallest_size',
	'largest_size',
	'most_recently_modified',
] as const;

/**
 * The policy to which `first_exist_fallback` in a Compatfile is lowered. It selects the first path that exists; the last path may
 * be a folder even if it does not end with a slash.
 */
export const COMPATIBLE_FALLBACK_POLICY = 'first_exist_last_any';

/** All policies that a document may name. */
const DOCUMENT_POLICIES = [...TRY_POLICIES, COMPATIBLE_FALLBACK_POLICY] as const;

/** The `file` matcher in the document. */
export interface FileMatcher extends Matcher {
	readonly type: 'file';
	/** Paths below the root, with placeholders and globs. `=404` raises an error with this status. Default: the requested path. */
	readonly files?: readonly string[];
	readonly root?: string;
	/**
	 * If `rendered`, a trailing slash from a placeholder restricts a path to folders, like a literal slash. By default, only a literal
	 * slash does.
	 */
	readonly slashes?: 'rendered';
	readonly policy?: (typeof DOCUMENT_POLICIES)[number];
	readonly split_path?: readonly string[];
}

const USAGE = 'file [<file>…] [{ root <path>; try_files <file>…; try_policy <policy>; split_path <extension>… }]';

export const file = requestMatcher<FileMatcher>({
	id: 'file',
	usage: USAGE,
	summary: 'Matches if a file exists.',
	documentation: [
		'Tries the files in order; the default is the requested path (in a Compatfile without its trailing slash,',
		'and not matching folders). A file may contain placeholders and the globs `*`,',
		'`?` and `[a-z]`; globs in placeholder values are literal, and no path leads out of the root. A path with a trailing slash must',
		'be a folder, any other must not be one. `=404` raises that error instead of trying further files.',
		'',
		'| Line | Meaning |',
		'| --- | --- |',
		'| `root PATH` | root folder of the files; default the variable `root` |',
		'| `try_files FILE…` | additional files |',
		'| `try_policy first_exist` | selects the first that exists (default) |',
		'| `try_policy first_exist_fallback` | the same, but the last one is selected without checking (in a Compatfile it must exist, as a file or folder) |',
		'| `try_policy first_exist_last_any` | the same, but the last one must exist, as a file or folder (not in a Compatfile) |',
		'| `try_policy smallest_size \\| largest_size \\| most_recently_modified` | selects among all that exist |',
		'| `split_path EXT…` | cuts paths after the first segment with such an extension and checks only that part |',
		'',
		'The result is `{file_match.relative}`, `{file_match.absolute}`, `{file_match.type}` (`file` or `directory`) and',
		'`{file_match.remainder}`. Symbolic links that lead out of the root are not followed.',
		'',
		'```',
		'@page file {path} {path}.html',
		'```',
	].join('\n'),
	dependsOn: 'files',
	lower: (line, cx) => {
		const files = line.words.slice(1).map(word => cx.template(word));
		for (const word of line.words.slice(1)) checkErrorStatus(word, cx);
		const fields: { root?: string; policy?: FileMatcher['policy']; split_path?: string[] } = {};
		cx.subdirectives(
			line.block,
			{
				root: (words, innerLine) => {
					if (!cx.count(innerLine, words, 1, 1, 'root <path>')) return;
					fields.root = cx.filePath(cx.template(words[0]!), words[0]!.span);
				},
				try_files: (words, innerLine) => {
					if (!cx.count(innerLine, words, 1, Number.POSITIVE_INFINITY, 'try_files <file>…')) return;
					for (const word of words) checkErrorStatus(word, cx);
					files.push(...words.map(word => cx.template(word)));
				},
				try_policy: (words, innerLine) => {
					const policy =
						cx.count(innerLine, words, 1, 1, 'try_policy <policy>') && lowerTryPolicy(words[0]!, cx, 'unknown');
					if (policy) fields.policy = policy;
				},
				split_path: (words, innerLine) => {
					if (!cx.count(innerLine, words, 1, Number.POSITIVE_INFINITY, 'split_path <extension>…')) return;
					fields.split_path = [...(fields.split_path ?? []), ...words.map(word => word.text)];
				},
			},
			'file',
		);
		// If no files are named, Caddy tries the normalized path, which has no trailing slash, so folders do not match.
		if (files.length === 0 && cx.dialect === 'compatfile') files.push(REQUEST_PATH_PLACEHOLDER);
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
			root: { type: 'string', description: 'Root folder of the files; default the variable `root`.' },
			slashes: {
				enum: ['rendered'],
				description:
					'Whether a slash that asks for a folder may come from a placeholder; by default only literal ones count.',
			},
			policy: {
				enum: DOCUMENT_POLICIES,
				default: 'first_exist',
				description: [
					'How one of several files is selected; default `first_exist`. `first_exist_fallback` selects the last one without',
					'checking, `first_exist_last_any` selects whatever exists under the last name, even a folder.',
				].join(' '),
			},
			split_path: {
				type: 'array',
				items: { type: 'string', minLength: 1 },
				description: 'Extensions of segments after which a path is cut.',
			},
		},
	},
	compile: compileFileMatcher,
});

/**
 * Lowers a policy. For an unknown policy in a Compatfile, the message begins with `wording`, like Caddy's message.
 */
export function lowerTryPolicy(
	word: Word,
	cx: LowerContext,
	wording: 'unknown' | 'unrecognized',
): FileMatcher['policy'] {
	const policy = TRY_POLICIES.find(name => name === word.text);
	if (policy === 'first_exist_fallback' && cx.dialect === 'compatfile') return COMPATIBLE_FALLBACK_POLICY;
	if (policy) return policy;
	if (cx.dialect === 'configfile') return cx.oneOf(word, DOCUMENT_POLICIES, 'try policy');
	cx.problem(
		'error',
		'file/unknown-policy',
		word.span,
		wording === 'unknown' ? `unknown try policy ${word.text}` : `unrecognized try policy: ${word.text}`,
	);
	return undefined;
}

/** Checks that the number in a word such as `=404` is a status from 200 to 999. */
export function checkErrorStatus({ text, span }: Word, cx: LowerContext): void {
	if (!/^=\d+$/.test(text) || /^=[2-9]\d\d$/.test(text)) return;
	cx.problem('error', 'file/bad-status', span, `\`${text}\` is not an error status.`, {
		hint: 'Write `=404` or another status.',
	});
}
