/** `templates`: executes responses as templates before they are sent. */
import type { Step } from '../../../document/document.ts';
import { handlerDirective } from '../../contract/directive.ts';
import { compileTemplates } from './templates-handler.ts';

export interface RenderStep extends Step {
	readonly handler: 'render';
	/** Media types of responses to execute, matched as substrings of `Content-Type`. */
	readonly types?: readonly string[];
	/** The opening and closing delimiter of template actions, by default `{{` and `}}`. */
	readonly delimiters?: readonly string[];
	/** Folder from which templates include files. */
	readonly root?: string;
}

const USAGE = 'templates [matcher] { mime TYPE…; between OPEN CLOSE; root PATH }';

/** Syntax: `templates [matcher] { … }`. */
export const templates = handlerDirective<RenderStep>({
	kind: 'handler',
	id: 'render',
	changesBodies: true,
	names: { configfile: ['templates'], compatfile: ['templates'] },
	usage: USAGE,
	summary: 'Executes responses as templates.',
	documentation: `Executes the responses of later directives as templates, in the language of Go's \`text/template\`, before they are sent.

| Line | Meaning |
| --- | --- |
| \`mime TYPE…\` | Media types to execute; default \`text/html text/plain text/markdown\`. |
| \`between OPEN CLOSE\` | Delimiters of actions; default \`{{\` and \`}}\`. |
| \`root PATH\` | Folder for \`include\`, \`readFile\` and the like; default the site's \`root\`. |

The whole response is buffered in memory, up to 10 MiB. \`Etag\`, \`Last-Modified\` and \`Accept-Ranges\` are removed. A mistake
in a template causes an error 500, which \`handle_errors\` can answer.

Pages of \`file_server\`, \`reverse_proxy\` and \`respond\` are executed. What placeholders insert into a \`respond\` is data and never
executed. What an upstream sends is executed: do not use \`templates\` for an upstream that repeats what visitors send it.

| In a template | Meaning |
| --- | --- |
| \`.Req\`, \`.OriginalReq\` | The current and the original request: \`.Req.Method\`, \`.Req.URL.Path\`, \`.Req.URL.Query.Get "q"\`, \`.Req.Header.Get "Accept"\` |
| \`.Host\`, \`.RemoteIP\`, \`.ClientIP\` | Host without port, address of the peer, address of the client |
| \`.Cookie "name"\`, \`.Args\` | Value of a cookie; arguments of an \`include\` |
| \`.RespHeader.Add\`, \`.Set\`, \`.Del\` | Fields of the response |
| \`include FILE ARGS…\`, \`import FILE\`, \`readFile FILE\` | Renders another file; imports its definitions; returns its text |
| \`httpInclude PATH\` | The site's response to another request, nested at most three deep |
| \`listFiles DIR\`, \`fileExists FILE\`, \`fileStat FILE\` | Contents of the folder |
| \`env NAME\`, \`placeholder NAME\`, \`ph NAME\` | Environment, placeholders |
| \`markdown TEXT\` | CommonMark with tables, task lists, strike-through, links and heading IDs, as HTML; HTML in the text is kept |
| \`stripHTML\`, \`splitFrontMatter\`, \`humanize\`, \`pathEscape\`, \`httpError CODE\`, \`maybe NAME\` | Texts, errors, functions that may not exist |

Nothing is escaped automatically: \`{{.Req.URL.Query.Get "q" | html}}\`. The functions of sprig are available too, except those that create
certificates. \`bcrypt\`, \`htpasswd\`, \`derivePassword\` and \`genPrivateKey\` run on a separate thread, one after the other. If 64 of
them are pending, or if a thread is looking up 8 names for \`getHostByName\`, further requests that need one are answered with 503. A page
may wait for such functions at most 50 times. \`splitFrontMatter\` reads YAML (between lines of \`---\`), TOML (\`+++\`) and JSON; the
result has \`.Meta\` and \`.Body\`. A page may execute a million steps.

\`\`\`
root /srv/www
templates
file_server
\`\`\`
`,
	matcherToken: 'optional',
	readsRoot: () => true,
	order: { rank: 250 },
	lower: ({ line, args }, cx) => {
		cx.count(line, args, 0, 0, USAGE);
		const step: { -readonly [K in keyof RenderStep]: RenderStep[K] } = { handler: 'render' };
		cx.subdirectives(
			line.block,
			{
				mime: (words, innerLine) => {
					cx.noBlock(innerLine);
					if (cx.count(innerLine, words, 1, Number.POSITIVE_INFINITY, 'mime TYPE…'))
						step.types = words.map(word => word.text);
				},
				between: (words, innerLine) => {
					cx.noBlock(innerLine);
					if (!cx.count(innerLine, words, 2, 2, 'between OPEN CLOSE')) return;
					const empty = words.find(word => word.text === '');
					if (empty) cx.problem('error', 'templates/empty-delimiter', empty.span, 'A delimiter cannot be empty.');
					else step.delimiters = words.map(word => word.text);
				},
				root: (words, innerLine) => {
					cx.noBlock(innerLine);
					if (!cx.count(innerLine, words, 1, 1, 'root PATH')) return;
					step.root = cx.filePath(cx.template(words[0]!), words[0]!.span);
				},
				extensions: (_, innerLine) => {
					for (const extension of innerLine.block?.lines ?? []) {
						const { text, span } = extension.words[0]!;
						const message =
							cx.dialect === 'compatfile'
								? `getting module named 'http.handlers.templates.functions.${text}': module not registered: http.handlers.templates.functions.${text}`
								: `\`${text}\` is not an extension of templates.`;
						cx.problem('error', 'templates/unknown-extension', span, message, {
							hint: 'This server has no template extensions; all functions are built in.',
						});
					}
				},
			},
			'templates',
		);
		return cx.origin<RenderStep>(step, line.span);
	},
	schema: {
		properties: {
			types: {
				type: 'array',
				items: { type: 'string', minLength: 1 },
				minItems: 1,
				default: ['text/html', 'text/plain', 'text/markdown'],
				description: 'Media types to execute; default `text/html`, `text/plain` and `text/markdown`.',
			},
			delimiters: {
				type: 'array',
				items: { type: 'string', minLength: 1 },
				minItems: 2,
				maxItems: 2,
				default: ['{{', '}}'],
				description: 'Delimiters of actions; default `{{` and `}}`.',
			},
			root: {
				type: 'string',
				minLength: 1,
				description: 'Folder that templates read; default the variable `root`, otherwise the working directory.',
			},
		},
	},
	compile: compileTemplates,
});
