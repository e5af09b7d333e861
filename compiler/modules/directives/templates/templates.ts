/** `templates`: responses executed as templates before they are sent. */
import type { Step } from '../../../document/document.ts';
import { handlerDirective } from '../directive.ts';
import { compileTemplates } from './templates-handler.ts';

/** A step of the handler `render`. */
export interface RenderStep extends Step {
	readonly handler: 'render';
	/** Types of the responses that are executed: texts that stand in `Content-Type`. */
	readonly types?: readonly string[];
	/** Delimiters of actions: two texts. */
	readonly delimiters?: readonly string[];
	/** Folder that templates include files from. */
	readonly root?: string;
}

const USAGE = 'templates [matcher] { mime TYPE…; between OPEN CLOSE; root PATH }';

/** `templates [matcher] { … }`. */
export const templates = handlerDirective<RenderStep>({
	kind: 'handler',
	id: 'render',
	names: { configfile: ['templates'], compatfile: ['templates'] },
	usage: USAGE,
	summary: 'Executes responses as templates.',
	documentation: `Executes what later directives answer as a template, in the language of Go's \`text/template\`, before it is sent.

| Line | Meaning |
| --- | --- |
| \`mime TYPE…\` | Types that are executed; \`text/html text/plain text/markdown\` if left out. |
| \`between OPEN CLOSE\` | Delimiters of actions; \`{{\` and \`}}\` if left out. |
| \`root PATH\` | Folder that \`include\`, \`readFile\` and the like read; the folder that \`root\` set if left out. |

The whole response is held in memory, up to 10 MiB. \`Etag\`, \`Last-Modified\` and \`Accept-Ranges\` are removed from it. A mistake
in a template is an error 500 for \`handle_errors\`.

Pages of \`file_server\`, \`reverse_proxy\` and \`respond\` are executed. What placeholders insert into a \`respond\` is data and never
executed; what an upstream sends is: do not put \`templates\` before an upstream that repeats what visitors send it.

| In a template | Meaning |
| --- | --- |
| \`.Req\`, \`.OriginalReq\` | The request now and as it came: \`.Req.Method\`, \`.Req.URL.Path\`, \`.Req.URL.Query.Get "q"\`, \`.Req.Header.Get "Accept"\` |
| \`.Host\`, \`.RemoteIP\`, \`.ClientIP\` | Host without port, address of the peer, address of the client |
| \`.Cookie "name"\`, \`.Args\` | Value of a cookie; arguments of an \`include\` |
| \`.RespHeader.Add\`, \`.Set\`, \`.Del\` | Fields of the response |
| \`include FILE ARGS…\`, \`import FILE\`, \`readFile FILE\` | Another file rendered; its definitions; its text |
| \`httpInclude PATH\` | The answer of this site to another request, at most three deep |
| \`listFiles DIR\`, \`fileExists FILE\`, \`fileStat FILE\` | What is in the folder |
| \`env NAME\`, \`placeholder NAME\`, \`ph NAME\` | Environment, placeholders |
| \`markdown TEXT\` | CommonMark with tables, task lists, strike-through, links and ids of headings, as HTML; HTML in the text stays as it is |
| \`stripHTML\`, \`splitFrontMatter\`, \`humanize\`, \`pathEscape\`, \`httpError CODE\`, \`maybe NAME\` | Texts, errors, functions that may not exist |

Nothing is escaped by itself: \`{{.Req.URL.Query.Get "q" | html}}\`. The functions of sprig are there too, but those that make
certificates. \`bcrypt\`, \`htpasswd\`, \`derivePassword\`, \`genPrivateKey\` and \`getHostByName\` are done off the thread that serves, one
after the other, and a request that finds 64 of them waiting is answered with 503; a page waits for 50 at most. \`splitFrontMatter\` reads YAML (between lines of \`---\`), TOML (\`+++\`) and JSON; what
comes of it is \`.Meta\` and \`.Body\`. A page has a million steps.

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
				mime: (words, at) => {
					cx.noBlock(at);
					if (cx.count(at, words, 1, Number.POSITIVE_INFINITY, 'mime TYPE…')) step.types = words.map(word => word.text);
				},
				between: (words, at) => {
					cx.noBlock(at);
					if (!cx.count(at, words, 2, 2, 'between OPEN CLOSE')) return;
					const empty = words.find(word => word.text === '');
					if (empty) cx.problem('error', 'templates/empty-delimiter', empty.span, 'A delimiter cannot be empty.');
					else step.delimiters = words.map(word => word.text);
				},
				root: (words, at) => {
					cx.noBlock(at);
					if (!cx.count(at, words, 1, 1, 'root PATH')) return;
					step.root = cx.filePath(cx.template(words[0]!), words[0]!.span);
				},
				extensions: (_, at) => {
					for (const extension of at.block?.lines ?? []) {
						const { text, span } = extension.words[0]!;
						const message =
							cx.dialect === 'compatfile'
								? `getting module named 'http.handlers.templates.functions.${text}': module not registered: http.handlers.templates.functions.${text}`
								: `\`${text}\` is not an extension of templates.`;
						cx.problem('error', 'templates/unknown-extension', span, message, {
							hint: 'This server has none: templates use the functions that are built in.',
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
				description: 'Types that are executed; `text/html`, `text/plain` and `text/markdown` if left out.',
			},
			delimiters: {
				type: 'array',
				items: { type: 'string', minLength: 1 },
				minItems: 2,
				maxItems: 2,
				default: ['{{', '}}'],
				description: 'Delimiters of actions; `{{` and `}}` if left out.',
			},
			root: {
				type: 'string',
				minLength: 1,
				description: 'Folder that templates read; the variable `root` if left out, else the working directory.',
			},
		},
	},
	compile: compileTemplates,
});
