/** `uri`: edits the request's path and query. */

import type { Line, Word } from '../../syntax/ast.ts';
import { handlerDirective } from '../contract/directive.ts';
import type { LowerContext } from '../contract/lower-context.ts';
import type { RewriteTargetStep } from './rewrite.ts';
import type { QueryEdits } from './uri-edits.ts';

const USAGE =
	'uri [matcher] strip_prefix <p> | strip_suffix <s> | replace <find> <to> [<limit>] | path_regexp <re> <to> | query <op> | query { … }';
const URI_OPERATIONS = ['strip_prefix', 'strip_suffix', 'replace', 'path_regexp', 'query'] as const;

/** Syntax: `uri [matcher] <operation> …`. */
export const uri = handlerDirective<RewriteTargetStep>({
	kind: 'handler',
	id: '',
	names: { configfile: ['uri'], compatfile: ['uri'] },
	usage: USAGE,
	summary: 'Edits the path and the query of the request.',
	documentation: [
		'| Operation | Effect |',
		'| --- | --- |',
		'| `strip_prefix /p` | removes the prefix from the path, if present |',
		'| `strip_suffix .s` | removes the suffix from the path, if present |',
		'| `replace FIND TO [LIMIT]` | replaces text in the path and the query |',
		'| `path_regexp RE TO` | replaces matches in the path; `$1` inserts a group |',
		'| `query +K V` | adds a parameter |',
		'| `query K V` | sets it |',
		'| `query -K` | removes it |',
		'| `query A>B` | renames it |',
		'| `query K RE TO` | replaces in its values; `*` is every parameter |',
		'',
		'`strip_prefix`, `strip_suffix` and `replace` clean the path first: `/a/../b` becomes `/b`, and `/a//b` becomes `/a/b`',
		'unless the text contains `//` itself.',
		'',
		'Write several `query` operations in a block. They are made in the order rename, set, add, replace, delete. The query is',
		'then rebuilt with its names sorted. Write literal braces as `\\{` and `\\}`.',
		'',
		'```',
		'uri strip_prefix /api',
		'uri query -utm_source',
		'```',
	].join('\n'),
	matcherToken: 'optional',
	order: { rank: 160 },
	lower: ({ line, args }, cx) => {
		const [operationWord, ...operationArgs] = args;
		if (!operationWord) {
			cx.count(line, args, 1, Number.POSITIVE_INFINITY, USAGE);
			return undefined;
		}
		if (operationWord.text !== 'query') cx.noBlock(line);
		const fields = lowerOperation(operationWord, operationArgs, line, cx);
		return fields && cx.origin<RewriteTargetStep>({ handler: 'rewrite_target', ...fields }, line.span);
	},
	schema: { properties: {} },
	compile: undefined,
});

type UriFields = Omit<RewriteTargetStep, 'handler'>;

function lowerOperation(
	operationWord: Word,
	args: readonly Word[],
	line: Line,
	cx: LowerContext,
): UriFields | undefined {
	const [firstWord, secondWord, thirdWord] = args as readonly [Word, Word, Word | undefined];
	switch (operationWord.text) {
		case 'strip_prefix':
			return cx.count(line, args, 1, 1, USAGE) ? { strip_prefix: cx.template(firstWord) } : undefined;
		case 'strip_suffix':
			return cx.count(line, args, 1, 1, USAGE) ? { strip_suffix: cx.template(firstWord) } : undefined;
		case 'replace': {
			if (!cx.count(line, args, 2, 3, USAGE)) return undefined;
			if (thirdWord && !/^-?\d+$/.test(thirdWord.text)) {
				cx.problem('error', 'uri/limit', thirdWord.span, `limit must be an integer; invalid: ${thirdWord.text}`);
				return undefined;
			}
			const limitField = thirdWord ? { limit: Number(thirdWord.text) } : {};
			return { replace: [{ find: cx.template(firstWord), replace: cx.template(secondWord), ...limitField }] };
		}
		case 'path_regexp': {
			if (!cx.count(line, args, 2, 2, USAGE)) return undefined;
			if (firstWord.text === '') {
				cx.problem('error', 'uri/empty-regexp', firstWord.span, 'path_regexp find cannot be empty');
				return undefined;
			}
			const find = cx.regexp(firstWord);
			return find === undefined ? undefined : { path_regexp: [{ find, replace: cx.template(secondWord) }] };
		}
		case 'query':
			return lowerQuery(args, line, cx);
	}
	if (cx.dialect === 'configfile') cx.oneOf(operationWord, URI_OPERATIONS, 'operation');
	else cx.problem('error', 'uri/unknown', operationWord.span, `unrecognized URI manipulation '${operationWord.text}'`);
	return undefined;
}

function lowerQuery(args: readonly Word[], line: Line, cx: LowerContext): UriFields | undefined {
	let queryEdits: QueryEdits = {};
	if (args.length > 0 && line.block) {
		const message = 'Cannot specify uri query rewrites in both argument and block';
		cx.problem('error', 'uri/arguments-and-block', line.block.open, message);
		return undefined;
	}
	if (!line.block) {
		if (!cx.count(line, args, 1, 3, 'uri query <operation>')) return undefined;
		queryEdits = addQueryEdit(queryEdits, args, line, cx);
	}
	for (const innerLine of line.block?.lines ?? []) {
		cx.noBlock(innerLine);
		if (cx.count(innerLine, innerLine.words, 1, 3, '<operation>'))
			queryEdits = addQueryEdit(queryEdits, innerLine.words, innerLine, cx);
	}
	return Object.keys(queryEdits).length > 0 ? { query: queryEdits } : undefined;
}

function addQueryEdit(edits: QueryEdits, words: readonly Word[], line: Line, cx: LowerContext): QueryEdits {
	const [keyWord, valueWord, replacementWord] = words as readonly [Word, Word | undefined, Word | undefined];
	const parameterText = cx.template(keyWord);
	if (!valueWord) {
		const arrowIndex = parameterText.indexOf('>');
		if (parameterText.startsWith('-') && parameterText.length > 1)
			return { ...edits, delete: [...(edits.delete ?? []), parameterText.slice(1)] };
		if (arrowIndex > 0 && arrowIndex < parameterText.length - 1) {
			const entry = { from: parameterText.slice(0, arrowIndex), to: parameterText.slice(arrowIndex + 1) };
			return { ...edits, rename: [...(edits.rename ?? []), entry] };
		}
		cx.count(
			line,
			words,
			2,
			3,
			'+<name> <value> | -<name> | <from>><to> | <name> <value> | <name> <regexp> <replacement>',
		);
		return edits;
	}
	if (replacementWord) {
		const find = /\{[a-z_]+\.[^{}]+\}/.test(cx.template(valueWord)) ? cx.template(valueWord) : cx.regexp(valueWord);
		if (find === undefined) return edits;
		return {
			...edits,
			replace: [...(edits.replace ?? []), { name: parameterText, find, replace: cx.template(replacementWord) }],
		};
	}
	const isAddition = parameterText.startsWith('+') && parameterText.length > 1;
	const entry = { name: isAddition ? parameterText.slice(1) : parameterText, value: cx.template(valueWord) };
	const editKind = isAddition ? 'add' : 'set';
	return { ...edits, [editKind]: [...(edits[editKind] ?? []), entry] };
}
