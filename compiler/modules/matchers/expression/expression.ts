/** `expression`: a condition in CEL, the Common Expression Language. */
import type { Matcher } from '../../../document/document.ts';
import type { Word } from '../../../syntax/ast.ts';
import type { LowerContext } from '../../contract/lower-context.ts';
import { requestMatcher } from '../../contract/matcher.ts';
import { COMPATIBLE_FALLBACK_POLICY } from '../file.ts';
import { REQUEST_PATH_PLACEHOLDER } from '../file-candidates.ts';
import { compileExpression } from './compile-expression.ts';
import { comparedPlaceholders } from './placeholder-calls.ts';

/** The `expression` matcher in the document. */
export interface ExpressionMatcher extends Matcher {
	readonly type: 'expression';
	readonly expression: string;
	/** Name under which matchers in the expression store their captures, unless they have a name of their own. */
	readonly name?: string;
	/** Files for `file` calls without arguments; by default, the requested path. */
	readonly files?: readonly string[];
}

/** Matches a string literal with the name of a policy whose meaning differs in a Compatfile. */
const FALLBACK_POLICY_LITERAL = /(["'])first_exist_fallback\1/g;

const USAGE = 'expression "<expression>"';

export const expression = requestMatcher<ExpressionMatcher>({
	id: 'expression',
	usage: USAGE,
	summary: 'Matches by a CEL expression.',
	documentation: [
		'A condition in the Common Expression Language. `{name}` is the value of a placeholder: statuses and counts are numbers,',
		'`{time.now}` is a time, and missing values are null. Matchers are functions whose arguments are literals, placeholders, or',
		'concatenations of them with `+`: `host`, `path`, `method`, `remote_ip`, `client_ip`, `protocol`, `path_regexp`, `header_regexp`,',
		"`vars_regexp`, `file` and `url_pattern` take strings, `header({'Foo': '*bar*'})`, `query` and `vars` a map. CEL's functions for",
		'strings, lists and numbers and `cel.bind` are available too.',
		'',
		'`{path}` is the path as the client sent it, who can write `//admin` for `/admin`. `path()` and `path_regexp()` compare the',
		'cleaned path.',
		'',
		'The expression must return a bool, which is checked at load time; one that fails for a request causes an error 500. In a',
		'Configfile it is one quoted argument; a quoted word alone is an expression too. Relative folders in `file` are resolved against',
		'the working directory.',
		'',
		'```',
		"@busy expression `{http.request.uri.query.n}.size() > 3 || path('/heavy/*')`",
		'```',
	].join('\n'),
	comparedPlaceholders: matcher => comparedPlaceholders(matcher.expression),
	lower: (line, cx, name) => {
		const args = line.words.slice(1);
		cx.noBlock(line);
		const isCompatfile = cx.dialect === 'compatfile';
		if (!cx.count(line, args, 1, isCompatfile ? Number.POSITIVE_INFINITY : 1, USAGE)) return undefined;
		const onlyWord = args.length === 1 ? args[0]! : undefined;
		if (!isCompatfile && onlyWord?.quote === 'none') {
			const message = `\`${onlyWord.text}\` is not quoted: an expression is one quoted argument.`;
			cx.problem('error', 'expression/not-quoted', onlyWord.span, message, { hint: `Usage: ${USAGE}` });
			return undefined;
		}
		const expressionText = (
			onlyWord ? cx.template(onlyWord) : args.map(word => textWithQuotes(word, cx)).join(' ')
		).trim();
		const isNamed = onlyWord && name !== undefined && /^[\w-]+$/.test(name);
		return {
			type: 'expression',
			expression: isCompatfile
				? expressionText.replaceAll(FALLBACK_POLICY_LITERAL, `$1${COMPATIBLE_FALLBACK_POLICY}$1`)
				: expressionText,
			...(isNamed ? { name } : {}),
			...(isCompatfile && /\bfile\s*\(/.test(expressionText) ? { files: [REQUEST_PATH_PLACEHOLDER] } : {}),
		};
	},
	schema: {
		properties: {
			expression: {
				type: 'string',
				minLength: 1,
				secret: 'expression',
				description: 'CEL expression that returns a bool.',
			},
			name: { type: 'string', pattern: '^[\\w-]+$', description: 'Default name of captures.' },
			files: {
				type: 'array',
				items: { type: 'string' },
				minItems: 1,
				description: 'Files for `file` calls without arguments; default the requested path.',
			},
		},
		required: ['expression'],
	},
	compile: compileExpression,
});

/** Returns a word with its quotes, which belong to the expression. */
function textWithQuotes(word: Word, cx: LowerContext): string {
	const wordText = cx.template(word);
	if (word.quote === 'double') return `"${wordText.replaceAll('"', '\\"')}"`;
	return word.quote === 'backtick' ? `\`${wordText}\`` : wordText;
}
