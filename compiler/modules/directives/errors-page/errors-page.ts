/** `errors_page`: pages for errors that nothing else answers. */
import type { Step } from '../../../document/document.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import { handlerDirective } from '../../contract/directive.ts';
import type { LowerContext, SubdirectiveHandler } from '../../contract/lower-context.ts';
import { ERROR_PAGE_THEMES, type ErrorPageTheme } from './built-in-page.ts';
import { compileErrorsPage } from './errors-page-handler.ts';

export interface ErrorsPageStep extends Step {
	readonly handler: 'errors_page';
	/** Folder with files such as `404.html`. */
	readonly folder?: string;
	readonly theme?: ErrorPageTheme;
	/** Heading of the built-in page. Like `text`, it is plain text with placeholders. */
	readonly title?: string;
	readonly text?: string;
	/** Statuses or classes of statuses (`404`, `5xx`). Responses of later handlers with such a status are also replaced by a page. */
	readonly intercept?: readonly string[];
}

type ErrorsPageFields = { -readonly [K in 'folder' | 'theme' | 'title' | 'text' | 'intercept']?: ErrorsPageStep[K] };

const USAGE =
	'errors_page [matcher] [<folder>] { theme auto | light | dark; title <text>; text <text>; intercept [<status> | <class>…] }';

/** Matches an error status or a class of error statuses. */
const ERROR_STATUS_OR_CLASS = /^[45](?:\d\d|xx)$/;
const ALL_ERROR_CLASSES: readonly string[] = ['4xx', '5xx'];

/** Syntax: `errors_page [matcher] [<folder>] { … }`. */
export const errorsPage = handlerDirective<ErrorsPageStep>({
	kind: 'handler',
	id: 'errors_page',
	names: { configfile: ['errors_page'], compatfile: [] },
	usage: USAGE,
	summary: 'Answers errors with a page.',
	documentation: `Supplies the page for errors of later directives: those of \`error\`, and those that the server makes, such as 404 of \`file_server\`,
502 of \`reverse_proxy\` or 429 of \`rate_limit\`. \`handle_errors\` comes first; the page is for what it does not answer, and without
\`errors_page\`, such errors have no body. Of several that ran, the last one counts.

| Line | Meaning |
| --- | --- |
| \`theme auto\\|light\\|dark\` | colors of the built-in page; default \`auto\`, as the browser prefers |
| \`title TEXT\` | its heading, with placeholders; default the status text, such as \`Not Found\` |
| \`text TEXT\` | the sentence below it; default one for the status; \`""\` for none |
| \`intercept [STATUS…]\` | error responses of later directives get the page, too, above all those of upstreams; default \`4xx 5xx\` |

Browsers get HTML. A client that prefers \`application/json\` gets \`{"status":404,"error":"Not Found","request_id":"…"}\`, with the text as
\`message\` if one is set; all others, such as \`curl\`, get plain text. The request's ID is shown if it is known: the field \`X-Request-Id\` of the
response, \`{uuid}\` if it was used, for example by \`log_append\`, \`X-Request-Id\` of the request, or the trace ID of \`tracing\`.

With a folder, browsers get a file of it, the first that exists of \`404.html\`, \`4xx.html\` and \`error.html\`, for example. It is
sent as it is: placeholders and templates have no effect in it. Without any, the built-in page is sent. A relative path is relative to the
configuration file. A single argument is always the folder; write \`when @name { errors_page … }\` to have a matcher without one.

The status and fields of the response stay, such as \`Retry-After\`, \`WWW-Authenticate\` and \`Set-Cookie\`. Fields that describe
the content or allow it to be stored are removed, \`Cache-Control: no-store\` and \`Vary: Accept\` are added, and the built-in page has a
\`Content-Security-Policy\` that allows nothing.

The cause of an error, which may name upstreams, is logged but never shown, unless a text contains \`{err.message}\`.
Values of placeholders are escaped. Responses of gRPC are not intercepted. Errors before a site is found, such as a malformed request line,
have no page.

\`\`\`
errors_page {
	title "Something went wrong"
	intercept 5xx
}
reverse_proxy 127.0.0.1:9000
\`\`\`

Pages from a folder, with others below one path, and a text of its own for one status:

\`\`\`
errors_page pages
errors_page /api/* api-pages
file_server
handle_errors 410 {
	errors_page {
		text "The offer has ended."
	}
}
\`\`\`
`,
	matcherToken: 'with-more-arguments',
	lower: ({ line, args }, cx) => {
		const fields: ErrorsPageFields = {};
		if (cx.count(line, args, 0, 1, USAGE) && args[0]) {
			const folder = lowerFolder(args[0], line, cx);
			if (folder !== undefined) fields.folder = folder;
		}
		lowerPageSettings(line, fields, cx);
		return cx.origin(
			{ handler: 'errors_page', ...fields } as ErrorsPageStep,
			line.span,
			fields.folder === undefined ? {} : { folder: args[0]!.span },
		);
	},
	schema: {
		properties: {
			folder: {
				type: 'string',
				minLength: 1,
				description: 'Folder with files such as `404.html`, `5xx.html` and `error.html`.',
			},
			theme: { enum: ERROR_PAGE_THEMES, default: 'auto', description: 'Colors of the built-in page.' },
			title: { type: 'string', description: 'Heading of the built-in page, with placeholders.' },
			text: { type: 'string', description: 'Text below the heading, with placeholders.' },
			intercept: {
				type: 'array',
				minItems: 1,
				items: { type: 'string', pattern: '^[45](\\d\\d|xx)$' },
				description: 'Statuses and classes (`5xx`) of error responses of later handlers that get a page, too.',
			},
		},
	},
	compile: compileErrorsPage,
});

function lowerFolder(word: Word, line: Line, cx: LowerContext): string | undefined {
	const { text, span, quote } = word;
	if (quote === 'none' && (text.startsWith('@') || text.includes('*'))) {
		const message = `\`${text}\` is a folder here: a single argument of \`errors_page\` is never a matcher.`;
		const hint = `Write \`when ${text.startsWith('@') ? text : `path ${text}`} { errors_page … }\`.`;
		cx.problem('error', 'errors-page/matcher-as-folder', span, message, { hint });
		return undefined;
	}
	if (text === '' || text.includes('{')) {
		const message = 'The path of a folder of error pages cannot depend on a request or be empty.';
		const hint = 'Write a path without placeholders; `{$NAME}` takes one from the environment.';
		cx.problem('error', 'errors-page/folder-path', span, message, { hint });
		return undefined;
	}
	return cx.filePath(text, line.span);
}

function lowerPageSettings(line: Line, fields: ErrorsPageFields, cx: LowerContext): void {
	const usedSubdirectives = new Set<string>();
	const onceHandler =
		(handle: (args: readonly Word[], innerLine: Line) => void): SubdirectiveHandler =>
		(args, innerLine) => {
			const { text, span } = innerLine.words[0]!;
			if (usedSubdirectives.has(text))
				cx.problem('error', 'errors-page/twice', span, `\`${text}\` is given more than once.`);
			usedSubdirectives.add(text);
			cx.noBlock(innerLine);
			handle(args, innerLine);
		};
	cx.subdirectives(
		line.block,
		{
			theme: onceHandler((args, innerLine) => {
				const theme = cx.count(innerLine, args, 1, 1, 'theme auto | light | dark')
					? cx.oneOf(args[0]!, ERROR_PAGE_THEMES, 'theme')
					: undefined;
				if (theme !== undefined && theme !== 'auto') fields.theme = theme;
			}),
			title: onceHandler((args, innerLine) => {
				if (cx.count(innerLine, args, 1, 1, 'title <text>')) fields.title = cx.template(args[0]!);
			}),
			text: onceHandler((args, innerLine) => {
				if (cx.count(innerLine, args, 1, 1, 'text <text>')) fields.text = cx.template(args[0]!);
			}),
			intercept: onceHandler(args => {
				const statuses = args.map(({ text }) => text.toLowerCase());
				for (const [index, { text, span }] of args.entries()) {
					if (ERROR_STATUS_OR_CLASS.test(statuses[index]!)) continue;
					const message = `\`${text}\` is not a status of errors.`;
					const hint = 'Write a status from 400 to 599, or a class: 4xx, 5xx.';
					cx.problem('error', 'errors-page/bad-status', span, message, { hint });
				}
				fields.intercept =
					statuses.length === 0 ? ALL_ERROR_CLASSES : statuses.filter(text => ERROR_STATUS_OR_CLASS.test(text));
			}),
		},
		'errors_page',
	);
}
