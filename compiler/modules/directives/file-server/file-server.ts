/** `file_server`: serves static files below a root folder. */
import type { Step } from '../../../document/document.ts';
import type { Word } from '../../../syntax/ast.ts';
import { type DirectiveLine, handlerDirective } from '../../contract/directive.ts';
import type { LowerContext } from '../../contract/lower-context.ts';
import { checkFileSystem } from '../fs.ts';
import { BROWSE_SCHEMA, type BrowseSettings, lowerBrowse } from './browse/browse-settings.ts';
import { compileFilesStep } from './files-handler.ts';
import { SIDECAR_CODINGS, type SidecarCoding } from './precompressed.ts';

export interface FilesStep extends Step {
	readonly handler: 'files';
	/** Folder to serve, with placeholders. Default: the variable `root`; if that is not set, the working directory. */
	readonly root?: string;
	/** Index names tried in a folder, in order; default `index.html` and `index.txt`. */
	readonly index?: readonly string[];
	/** Names and paths to hide. */
	readonly hide?: readonly string[];
	/** True to follow symbolic links that lead out of the root. */
	readonly follow_symlinks?: boolean;
	/** False to disable redirects that add or remove the trailing slash. */
	readonly canonical_uris?: boolean;
	/** If `ignored`, and if redirects are disabled, a file is also served for its path with a trailing slash. */
	readonly trailing_slash?: 'ignored';
	/** Status of the response instead of 200: a number, or a template that evaluates to one. */
	readonly status?: number | string;
	/** True to continue with the next handler if the file does not exist. */
	readonly pass_thru?: boolean;
	/** How folders without an index file are listed; undefined if such folders are not listed. */
	readonly browse?: BrowseSettings;
	/** Codings of precompressed files (`x.js.br`), in order of preference if the client gives them equal weight. */
	readonly precompressed?: readonly SidecarCoding[];
	/** Extensions of files that contain the entity tag of the file next to them. */
	readonly etag_file_extensions?: readonly string[];
}

const USAGE =
	'file_server [matcher] [browse] { fs default; root PATH; index NAME…; hide PATTERN…; browse [TEMPLATE] { … }; precompressed [br | zstd | gzip]…; status CODE; pass_thru; disable_canonical_uris; follow_symlinks; etag_file_extensions .EXT… }';

/** A `files` step that is being lowered. Each line of the directive's block sets a field. */
type FilesDraft = { -readonly [K in keyof FilesStep]: FilesStep[K] } & { handler: 'files' };

function lowerFileServer({ line, args }: DirectiveLine, cx: LowerContext): FilesStep | undefined {
	const stepDraft = {} as FilesDraft;
	stepDraft.handler = 'files';
	const [argument] = args;
	if (argument?.text === 'browse' && argument.quote === 'none') {
		cx.count(line, args, 1, 1, USAGE);
		stepDraft.browse = {};
	} else if (args.length === 1 && argument!.quote === 'none') {
		cx.oneOf(argument!, ['browse'], 'argument of `file_server`');
		return undefined;
	} else if (!cx.count(line, args, 0, 0, USAGE)) return undefined;

	const hidePatterns: string[] = [];
	const flagHandler =
		(setFlag: () => void) => (words: readonly Word[], innerLine: Parameters<LowerContext['noBlock']>[0]) => {
			cx.noBlock(innerLine);
			if (cx.count(innerLine, words, 0, 0, USAGE)) setFlag();
		};
	cx.subdirectives(
		line.block,
		{
			root: (words, innerLine) => {
				cx.noBlock(innerLine);
				if (!cx.count(innerLine, words, 1, 1, 'root PATH')) return;
				stepDraft.root = lowerPath(words[0]!, cx);
			},
			hide: (words, innerLine) => {
				cx.noBlock(innerLine);
				if (!cx.count(innerLine, words, 1, Number.POSITIVE_INFINITY, 'hide PATTERN…')) return;
				for (const word of words) hidePatterns.push(word.text.includes('/') ? lowerPath(word, cx) : cx.template(word));
			},
			index: (words, innerLine) => {
				cx.noBlock(innerLine);
				if (!cx.count(innerLine, words, 1, Number.POSITIVE_INFINITY, 'index NAME…')) return;
				stepDraft.index = words.map(word => cx.template(word));
			},
			status: (words, innerLine) => {
				cx.noBlock(innerLine);
				if (!cx.count(innerLine, words, 1, 1, 'status CODE')) return;
				const word = words[0]!;
				const status = word.text.includes('{') ? cx.template(word) : cx.status(word);
				if (status !== undefined) stepDraft.status = status;
			},
			disable_canonical_uris: flagHandler(() => {
				stepDraft.canonical_uris = false;
				// Serving `/a.txt` for `/a.txt/` as well would let requests evade access rules for `/a.txt`, so this is done only in a
				// Compatfile, for compatibility.
				if (cx.dialect === 'compatfile') stepDraft.trailing_slash = 'ignored';
			}),
			pass_thru: flagHandler(() => {
				stepDraft.pass_thru = true;
			}),
			follow_symlinks: flagHandler(() => {
				stepDraft.follow_symlinks = true;
			}),
			browse: (words, innerLine) => {
				if (stepDraft.browse) {
					cx.problem('error', 'browse/repeated', innerLine.words[0]!.span, 'browsing is already configured');
					return;
				}
				stepDraft.browse = lowerBrowse(words, innerLine, word => lowerPath(word, cx), cx);
			},
			precompressed: (words, innerLine) => {
				cx.noBlock(innerLine);
				if (!cx.count(innerLine, words, 0, SIDECAR_CODINGS.length, 'precompressed [br | zstd | gzip]…')) return;
				const codings = words.flatMap(word => cx.oneOf(word, SIDECAR_CODINGS, 'encoding') ?? []);
				if (words.length === 0) stepDraft.precompressed = [...SIDECAR_CODINGS];
				else if (codings.length > 0) stepDraft.precompressed = [...new Set(codings)];
			},
			etag_file_extensions: (words, innerLine) => {
				cx.noBlock(innerLine);
				if (!cx.count(innerLine, words, 1, Number.POSITIVE_INFINITY, 'etag_file_extensions .EXT…')) return;
				const extensions: string[] = [];
				for (const { text, span } of words) {
					if (/^\.[^/\0]+$/.test(text)) extensions.push(text);
					else
						cx.problem('error', 'files/bad-extension', span, `\`${text}\` is not an extension.`, {
							hint: 'Write it with its dot: `.sha256`.',
						});
				}
				if (extensions.length > 0) stepDraft.etag_file_extensions = extensions;
			},
			fs: (words, innerLine) => {
				cx.noBlock(innerLine);
				if (cx.count(innerLine, words, 1, 1, 'fs default')) checkFileSystem(words[0]!, cx);
			},
		},
		'file_server',
	);
	hidePatterns.push(...cx.files);
	if (hidePatterns.length > 0) stepDraft.hide = [...new Set(hidePatterns)];
	return stepDraft;
}

function lowerPath(word: Word, cx: LowerContext): string {
	return cx.filePath(cx.template(word), word.span);
}

export const fileServer = handlerDirective<FilesStep>({
	kind: 'handler',
	id: 'files',
	// `svc diff` probes with both methods, because the handler refuses all methods except GET and HEAD.
	probeChanges: () => [{ method: 'GET' }, { method: 'POST' }],
	names: { configfile: ['file_server'], compatfile: ['file_server'] },
	usage: USAGE,
	summary: 'Serves static files.',
	documentation: `Serves the files below a folder, with ranges, entity tags and conditional requests.

The folder is \`root\` of the block, or what the directive \`root\` set, or the working directory. A request for a
folder is answered with its index file (\`index.html\` or \`index.txt\`). A missing file is a 404, or, with \`pass_thru\`,
left to the directives that follow; a path that continues below a file (\`/a.txt/x\`) is a 400. Small popular files are
cached in memory and larger ones kept open; changes to them take effect immediately. The field \`file\` of the access log
says where a file came from: \`memory\`, \`held\` open, or \`disk\`.

| Line | Meaning |
| --- | --- |
| \`fs default\` | The file system; \`default\` is the only one. |
| \`root PATH\` | Folder to serve. |
| \`index NAME…\` | Names tried in a folder, in order. |
| \`hide PATTERN…\` | Hides every file and folder of that name or, if it contains a slash, that path and everything below it. \`*\`, \`?\` and \`[a-z]\` are wildcards. The configuration and the files it imports are always hidden. |
| \`status CODE\` | Status of the response. |
| \`browse [TEMPLATE]\` | Lists folders without an index, as a page, JSON or text, depending on \`Accept\`. Options in its block: \`sort name\\|namedirfirst\\|size\\|time [asc\\|desc]\`, \`file_limit N\`, \`reveal_symlinks\`. |
| \`precompressed [CODING…]\` | Sends \`x.js.br\`, \`x.js.zst\` or \`x.js.gz\` for \`x.js\` to clients that accept it. |
| \`etag_file_extensions .EXT…\` | Takes a file's entity tag from the file next to it with that extension. |
| \`pass_thru\` | Continues with the next directive if the file does not exist. |
| \`disable_canonical_uris\` | Disables redirects to the path with a slash (folders) or without (files). In a Compatfile, \`/a.txt/\` then also serves the file; in a Configfile it is a 404. |
| \`follow_symlinks\` | Follows symbolic links that lead out of the folder; by default they are a 404. Links that stay inside always work. |

\`\`\`
http://example.com {
	root /srv/www
	file_server {
		hide .git *.bak
	}
}
\`\`\`
`,
	matcherToken: 'optional',
	lower: lowerFileServer,
	schema: {
		properties: {
			root: {
				type: 'string',
				description: 'Folder to serve; default the variable `root`, otherwise the working directory.',
			},
			index: {
				type: 'array',
				items: { type: 'string' },
				default: ['index.html', 'index.txt'],
				description: 'Index names tried in a folder, in order; default `index.html` and `index.txt`.',
			},
			hide: {
				type: 'array',
				items: { type: 'string', minLength: 1 },
				description: 'Names, and absolute paths if they contain a slash, to hide.',
			},
			follow_symlinks: {
				type: 'boolean',
				default: false,
				description: 'Follow symbolic links that lead out of the root.',
			},
			canonical_uris: {
				type: 'boolean',
				default: true,
				description: 'Redirect to the path with a trailing slash (folders) or without one (files); default true.',
			},
			trailing_slash: {
				enum: ['ignored'],
				description: '`ignored`: without redirects, a file is also served for its path with a trailing slash.',
			},
			status: {
				type: ['integer', 'string'],
				minimum: 100,
				maximum: 599,
				description: 'Status of the response instead of 200; a text is a template that evaluates to a number.',
			},
			browse: BROWSE_SCHEMA,
			precompressed: {
				type: 'array',
				items: { enum: SIDECAR_CODINGS },
				minItems: 1,
				uniqueItems: true,
				description: 'Codings of precompressed files, in order of preference.',
			},
			etag_file_extensions: {
				type: 'array',
				items: { type: 'string', pattern: '^\\.[^/]+$' },
				minItems: 1,
				description: 'Extensions of files that contain the entity tag of the file next to them.',
			},
			pass_thru: {
				type: 'boolean',
				default: false,
				description: 'Continue with the next step if the file does not exist.',
			},
		},
	},
	compile: compileFilesStep,
	answers: 'always',
	passesOn: step => step.pass_thru === true,
	servesFiles: ({ hide = [] }) => ({ hiddenPatterns: hide }),
	rootOf: ({ root }) => (root === undefined ? undefined : { text: root, pointer: '/root' }),
	readsRoot: () => true,
	makesPages: true,
	order: { rank: 360 },
});
