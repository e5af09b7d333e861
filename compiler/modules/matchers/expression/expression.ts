/** `expression`: a condition in CEL, the Common Expression Language. */
import type { Matcher } from '../../../document/document.ts';
import type { LowerContext } from '../../../lower/lower-context.ts';
import type { Word } from '../../../syntax/ast.ts';
import { COMPATIBLE_FALLBACK } from '../file.ts';
import { REQUEST_PATH } from '../file-candidates.ts';
import { requestMatcher } from '../matcher.ts';
import { compileExpression } from './compile-expression.ts';
import { comparedPlaceholders } from './placeholder-calls.ts';

/** The matcher in the document. */
export interface ExpressionMatcher extends Matcher {
	readonly type: 'expression';
	readonly expression: string;
	/** Name of captures where a function gives none. */
	readonly name?: string;
	/** What `file` tries where it names no files; the path as requested if left out. */
	readonly files?: readonly string[];
}

/** The policy as a text of the expression: a Compatfile means another by this name. */
const FALLBACK = /(["'])first_exist_fallback\1/g;

const USAGE = 'expression "<expression>"';

/** The `expression` matcher. */
export const expression = requestMatcher<ExpressionMatcher>({
	id: 'expression',
	usage: USAGE,
	summary: 'Matches by an expression in CEL.',
	documentation: [
		'A condition in the Common Expression Language. `{name}` is the value of a placeholder: statuses and counts are numbers,',
		'`{time.now}` is a time, what is not there is null. Matchers are functions whose arguments are literals, placeholders, or',
		'`+` of them: `host`, `path`, `method`, `remote_ip`, `client_ip`, `protocol`, `path_regexp`, `header_regexp`,',
		"`vars_regexp`, `file` and `url_pattern` take texts, `header({'Foo': '*bar*'})`, `query` and `vars` a map. CEL's functions of",
		'strings, lists and numbers and `cel.bind` are there too.',
		'',
		'`{path}` is the path as it was sent: a client can write `//admin` for `/admin`. `path()` and `path_regexp()` compare the',
		'cleaned path.',
		'',
		'The expression must give a bool, which is checked when loading; one that fails for a request is an error 500. In a',
		'Configfile it is one quoted argument; a quoted word alone is an expression too. Relative folders in `file` are taken from',
		'the working directory.',
		'',
		'```',
		"@busy expression `{http.request.uri.query.n}.size() > 3 || path('/heavy/*')`",
		'```',
	].join('\n'),
	compares: matcher => comparedPlaceholders(matcher.expression),
	lower: (line, cx, name) => {
		const args = line.words.slice(1);
		cx.noBlock(line);
		const compat = cx.dialect === 'compatfile';
		if (!cx.count(line, args, 1, compat ? Number.POSITIVE_INFINITY : 1, USAGE)) return undefined;
		const only = args.length === 1 ? args[0]! : undefined;
		if (!compat && only?.quote === 'none') {
			const message = `\`${only.text}\` is not quoted: an expression is one quoted argument.`;
			cx.problem('error', 'expression/not-quoted', only.span, message, { hint: `Usage: ${USAGE}` });
			return undefined;
		}
		const text = (only ? cx.template(only) : args.map(word => asWritten(word, cx)).join(' ')).trim();
		const named = only && name !== undefined && /^[\w-]+$/.test(name);
		return {
			type: 'expression',
			expression: compat ? text.replaceAll(FALLBACK, `$1${COMPATIBLE_FALLBACK}$1`) : text,
			...(named ? { name } : {}),
			...(compat && /\bfile\s*\(/.test(text) ? { files: [REQUEST_PATH] } : {}),
		};
	},
	schema: {
		properties: {
			expression: {
				type: 'string',
				minLength: 1,
				secret: 'expression',
				description: 'Expression in CEL that gives a bool.',
			},
			name: { type: 'string', pattern: '^[\\w-]+$', description: 'Name of captures where a function gives none.' },
			files: {
				type: 'array',
				items: { type: 'string' },
				minItems: 1,
				description: 'What `file` tries where it names no files; the path as requested if left out.',
			},
		},
		required: ['expression'],
	},
	compile: compileExpression,
});

/** A word with its quotes, which are the expression's own. */
function asWritten(word: Word, cx: LowerContext): string {
	const text = cx.template(word);
	if (word.quote === 'double') return `"${text.replaceAll('"', '\\"')}"`;
	return word.quote === 'backtick' ? `\`${text}\`` : text;
}
