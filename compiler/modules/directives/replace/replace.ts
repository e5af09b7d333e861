/** `replace`: replaces texts in response bodies while the responses are sent. */
import type { Step } from '../../../document/document.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import { handlerDirective } from '../../contract/directive.ts';
import type { LowerContext, SubdirectiveHandler } from '../../contract/lower-context.ts';
import { compileReplace, DEFAULT_MAX_MATCH_LENGTH, DEFAULT_SEARCHED_TYPES } from './replace-handler.ts';
import { EMPTY_MATCH_HINT, EMPTY_MATCH_MESSAGE, matchesEmptyText } from './text-search.ts';

/** A text or regular expression to search for, and its replacement. */
export interface TextReplacement {
	readonly find: string;
	/**
	 * The replacement, with placeholders. If `find` is a regular expression, the replacement may also contain groups such as `$1`.
	 */
	readonly replace: string;
	/** True if `find` is a regular expression. */
	readonly regexp?: true;
	readonly ignore_case?: true;
	/** True to replace only the first match of each response. */
	readonly once?: true;
}

export interface ReplaceTextStep extends Step {
	readonly handler: 'replace_text';
	readonly replacements: readonly TextReplacement[];
	/** Media types of responses to search; `text/*` includes all that begin with `text/`. */
	readonly types?: readonly string[];
	/** Maximum number of characters of a match. */
	readonly max_match?: number;
	/** True to keep `Last-Modified`, and to keep `Etag` as a weak tag. */
	readonly keep_validators?: true;
}

const MIN_MATCH_LENGTH = 64;
/** Maximum of `max_match`. For each piece of a body, up to `max_match` characters of earlier pieces are searched again. */
const MAX_MATCH_LENGTH = 64 * 1024;
/** Maximum length of a text to search for. It is less than the default of `max_match`. */
const MAX_FIND_LENGTH = 4096;
const MAX_REPLACEMENTS = 64;

const USAGE =
	'replace [matcher] [<text> <replacement> | regexp <expression> <replacement>] { text <text> <replacement> [ignore_case] [once]; regexp <expression> <replacement> [once]; types <type>…; max_match <size>; keep_validators }';

const TEXT_USAGE = 'text <text> <replacement> [ignore_case] [once]';
const REGEXP_USAGE = 'regexp <expression> <replacement> [once]';

/** Matches a media type such as `text/html`, or `text/*`. */
const MEDIA_TYPE_PATTERN = '^[!#$&^_.+0-9A-Za-z-]+/(?:\\*|[!#$&^_.+0-9A-Za-z-]+)$';

/** Syntax: `replace [matcher] [<text> <replacement>] { … }`. */
export const replace = handlerDirective<ReplaceTextStep>({
	kind: 'handler',
	id: 'replace_text',
	changesBodies: true,
	names: { configfile: ['replace'], compatfile: [] },
	usage: USAGE,
	summary: 'Replaces texts in response bodies.',
	documentation: `Replaces texts in the response bodies of later directives while they are sent.

| Line | Meaning |
| --- | --- |
| \`text TEXT REPLACEMENT\` | replaces a text; \`ignore_case\` after it ignores case, \`once\` replaces only the first match |
| \`regexp EXPRESSION REPLACEMENT\` | replaces what a regular expression matches; \`$1\` and \`$name\` are its groups |
| \`types TYPE…\` | media types to search; default \`text/*\` |
| \`max_match SIZE\` | the longest match that is replaced, in characters; 64 to 64KiB, default 8KiB |
| \`keep_validators\` | keeps \`Last-Modified\` and, as a weak one, \`Etag\` |

Several lines are searched for together: at each place, the first line that matches is applied, and what it inserts is not searched
again. A single text or expression may be written on the line itself; one that begins with \`/\`, \`@\` or \`*\` needs a \`text\` line,
because there it would be a matcher.

Texts and expressions are taken literally: placeholders have no effect in them. In a replacement, placeholders are expanded once, and
their values are escaped for the response's type: HTML and XML, or JSON. They are not escaped for other places, such as scripts in a page.

Regular expressions are those of \`path_regexp\`, in time linear in the length of the body. Matches are found across
the pieces in which a body arrives. Only what may still become a match is held back, at most \`max_match\`. A longer
match stays as it is. If an expression could match more than that, as \`(?s)<a.*</a>\` does, whether it matches a shorter text instead depends on
those pieces: write \`(?s)<a.*?</a>\`. Do not rely on \`replace\` to hide secrets.

Bodies are UTF-8; other bytes are passed on unchanged. Later directives see a request with \`Accept-Encoding: identity\`, so
that an upstream sends its response uncompressed; write \`encode\` before \`replace\` to compress it afterwards. Responses that are compressed
nevertheless are not changed, and counted in \`svc_module_events_total{event="replace_encoded_response"}\`.
Texts are replaced even in a response with \`Cache-Control: no-transform\`.

A short body in memory is sent with its new length, any other without \`Content-Length\`. \`Etag\` and \`Last-Modified\` are removed, as are
\`Accept-Ranges\` and digests. Kept validators do not change with the replacement: do not use \`keep_validators\` if placeholders in
it depend on the request. If a part (206) of a text is requested, the whole is requested instead and sent with status 200; a part of a text that was
requested with a body, and other types, are passed on. Responses of \`handle_errors\` are not changed; write \`replace\` there.

A \`cache\` after \`replace\` stores what upstreams sent, and each response gets its own replacements. A \`cache\` before \`replace\` stores
the result of the first.

\`\`\`
replace "http://app.internal" "https://{host}"
replace /docs/* {
	text "Version 1" "Version 2" ignore_case
	regexp \`href="http://([a-z]+)\\.internal/\` \`href="/$1/\`
	types text/html application/json
}
reverse_proxy 127.0.0.1:9000
\`\`\`
`,
	matcherToken: 'optional',
	lower: ({ line, args }, cx) => {
		const replacements: TextReplacement[] = [];
		const lineReplacement = lowerLineReplacement(line, args, cx);
		if (lineReplacement) replacements.push(lineReplacement);
		const options = lowerReplaceBlock(line, replacements, cx);
		if (replacements.length === 0) {
			if (args.length === 0 && !line.block?.lines.length) {
				const message = '`replace` contains no text to replace.';
				cx.problem('error', 'replace/no-text', line.words[0]!.span, message, { hint: `Usage: ${USAGE}` });
			}
			return undefined;
		}
		if (replacements.length > MAX_REPLACEMENTS) {
			const message = `\`replace\` takes at most ${MAX_REPLACEMENTS} texts and expressions.`;
			cx.problem('error', 'replace/too-many', line.words[0]!.span, message);
		}
		return { handler: 'replace_text', replacements, ...options };
	},
	schema: {
		properties: {
			replacements: {
				type: 'array',
				minItems: 1,
				maxItems: MAX_REPLACEMENTS,
				items: {
					type: 'object',
					properties: {
						find: { type: 'string', minLength: 1, maxLength: MAX_FIND_LENGTH, description: 'The text to search for.' },
						replace: { type: 'string', description: 'What replaces it, with placeholders.' },
						regexp: { const: true, description: 'Whether `find` is a regular expression.' },
						ignore_case: { const: true, description: 'Whether case is ignored.' },
						once: { const: true, description: 'Whether only the first match of a response is replaced.' },
					},
					required: ['find', 'replace'],
					additionalProperties: false,
				},
				description: 'What to search for. Of several that match at the same place, the first is applied.',
			},
			types: {
				type: 'array',
				minItems: 1,
				items: { type: 'string', pattern: MEDIA_TYPE_PATTERN },
				default: DEFAULT_SEARCHED_TYPES,
				description: 'Media types of responses to search; `text/*` includes all that begin with `text/`.',
			},
			max_match: {
				type: 'integer',
				minimum: MIN_MATCH_LENGTH,
				maximum: MAX_MATCH_LENGTH,
				default: DEFAULT_MAX_MATCH_LENGTH,
				description: 'Maximum number of characters of a match.',
			},
			keep_validators: { const: true, description: 'Keeps `Last-Modified` and, as a weak one, `Etag`.' },
		},
		required: ['replacements'],
	},
	compile: compileReplace,
});

/** Lowers the text or expression that is written on the directive's own line. */
function lowerLineReplacement(line: Line, args: readonly Word[], cx: LowerContext): TextReplacement | undefined {
	if (args.length === 0) return undefined;
	const [firstWord, secondWord] = args as [Word, Word | undefined];
	if (firstWord.text === 'regexp' && args.length > 2) {
		return cx.count(line, args, 3, 3, USAGE) ? lowerRegexp(secondWord!, args[2]!, cx) : undefined;
	}
	if (secondWord === undefined && line.words.length === 3) {
		const message = `\`${line.words[1]!.text}\` is a matcher here, so the text to search for is missing.`;
		const hint = 'Write a line `text TEXT REPLACEMENT` in the block of `replace` for a text that looks like a matcher.';
		cx.problem('error', 'replace/matcher-as-text', line.words[1]!.span, message, { hint });
		return undefined;
	}
	return cx.count(line, args, 2, 2, USAGE) ? lowerText(firstWord, secondWord!, cx) : undefined;
}

type StepOptions = { -readonly [K in 'types' | 'max_match' | 'keep_validators']?: ReplaceTextStep[K] };

function lowerReplaceBlock(line: Line, replacements: TextReplacement[], cx: LowerContext): StepOptions {
	const options: StepOptions = {};
	const optionHandler =
		(handle: (args: readonly Word[], innerLine: Line) => void): SubdirectiveHandler =>
		(args, innerLine) => {
			cx.noBlock(innerLine);
			handle(args, innerLine);
		};
	cx.subdirectives(
		line.block,
		{
			text: optionHandler((args, innerLine) => {
				if (!cx.count(innerLine, args, 2, 4, TEXT_USAGE)) return;
				const replacement = lowerText(args[0]!, args[1]!, cx);
				const flags = lowerFlags(args.slice(2), ['ignore_case', 'once'], cx);
				if (replacement && flags) replacements.push({ ...replacement, ...flags });
			}),
			regexp: optionHandler((args, innerLine) => {
				if (!cx.count(innerLine, args, 2, 3, REGEXP_USAGE)) return;
				const replacement = lowerRegexp(args[0]!, args[1]!, cx);
				const flags = lowerFlags(args.slice(2), ['once'], cx);
				if (replacement && flags) replacements.push({ ...replacement, ...flags });
			}),
			types: optionHandler((args, innerLine) => {
				if (!cx.count(innerLine, args, 1, Number.POSITIVE_INFINITY, 'types <type>…')) return;
				const mediaTypeRegexp = new RegExp(MEDIA_TYPE_PATTERN);
				for (const { text, span } of args) {
					if (mediaTypeRegexp.test(text)) continue;
					const hint = 'Write a type such as `text/html`, or `text/*` for all that begin with `text/`.';
					cx.problem('error', 'replace/invalid-type', span, `\`${text}\` is not a media type.`, { hint });
				}
				options.types = args.map(({ text }) => text).filter(text => mediaTypeRegexp.test(text));
			}),
			max_match: optionHandler((args, innerLine) => {
				if (!cx.count(innerLine, args, 1, 1, 'max_match <size>')) return;
				const size = cx.size(args[0]!);
				if (size === undefined) return;
				if (size >= MIN_MATCH_LENGTH && size <= MAX_MATCH_LENGTH) options.max_match = size;
				else {
					const hint = 'Write a size from 64 to 64KiB.';
					cx.problem('error', 'replace/max-match-range', args[0]!.span, `\`${args[0]!.text}\` is out of range.`, {
						hint,
					});
				}
			}),
			keep_validators: optionHandler((args, innerLine) => {
				if (cx.count(innerLine, args, 0, 0, 'keep_validators')) options.keep_validators = true;
			}),
		},
		'replace',
	);
	const { max_match: maxMatch } = options;
	for (const { find, regexp } of replacements) {
		if (regexp || maxMatch === undefined || find.length <= maxMatch) continue;
		const message = `A text of ${find.length} characters is longer than \`max_match\`, so it is never found.`;
		cx.problem('error', 'replace/longer-than-max-match', line.words[0]!.span, message);
	}
	return options;
}

type ReplacementFlag = 'ignore_case' | 'once';

function lowerFlags(
	words: readonly Word[],
	allowedFlags: readonly ReplacementFlag[],
	cx: LowerContext,
): { [flag in ReplacementFlag]?: true } | undefined {
	const flags: { [flag in ReplacementFlag]?: true } = {};
	for (const word of words) {
		const flag = cx.oneOf(word, allowedFlags, 'option of a replacement');
		if (flag === undefined) return undefined;
		flags[flag] = true;
	}
	return flags;
}

function lowerText(textWord: Word, replacementWord: Word, cx: LowerContext): TextReplacement | undefined {
	const template = cx.template(replacementWord);
	if (!hasUsableLength(textWord, cx)) return undefined;
	return { find: textWord.text, replace: template };
}

function lowerRegexp(expressionWord: Word, replacementWord: Word, cx: LowerContext): TextReplacement | undefined {
	const template = cx.template(replacementWord);
	if (!hasUsableLength(expressionWord, cx)) return undefined;
	const regexpSource = cx.regexp(expressionWord);
	if (regexpSource === undefined) return undefined;
	if (matchesEmptyText(regexpSource)) {
		cx.problem('error', 'replace/matches-nothing', expressionWord.span, EMPTY_MATCH_MESSAGE, {
			hint: EMPTY_MATCH_HINT,
		});
		return undefined;
	}
	return { find: regexpSource, replace: template, regexp: true };
}

function hasUsableLength({ text, span }: Word, cx: LowerContext): boolean {
	if (text === '') cx.problem('error', 'replace/empty-text', span, 'The text to search for is empty.');
	else if (text.length > MAX_FIND_LENGTH) {
		cx.problem(
			'error',
			'replace/too-long',
			span,
			`The text to search for is longer than ${MAX_FIND_LENGTH} characters.`,
		);
	} else return true;
	return false;
}
