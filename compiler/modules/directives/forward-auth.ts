/** `forward_auth`: asks another server whether a request may continue. */
import type { Step } from '../../document/document.ts';
import { isToken } from '../../exchange/field-syntax.ts';
import type { Line, Word } from '../../syntax/ast.ts';
import { handlerDirective } from '../contract/directive.ts';
import type { LowerContext } from '../contract/lower-context.ts';
import { lowerProxy } from './reverse-proxy/lower-proxy.ts';

const USAGE = 'forward_auth [matcher] <upstream>… { uri <uri>; copy_headers <field>[><name>]…; … }';

/** A field that is copied from the authentication response to the request, and its name in each of the two. */
interface CopiedHeader {
	readonly responseField: string;
	readonly requestField: string;
}

/** Syntax: `forward_auth [matcher] <upstream>… { … }`. */
export const forwardAuth = handlerDirective<Step>({
	kind: 'handler',
	id: '',
	names: { configfile: ['forward_auth'], compatfile: ['forward_auth'] },
	usage: USAGE,
	summary: 'Lets a request continue only if another server agrees.',
	documentation: [
		"Sends a GET for `uri` without a body to the upstream, with the request's header fields and with `X-Forwarded-Method`,",
		'`X-Forwarded-Uri` and the usual `X-Forwarded-*`. If the status is 2xx, the request continues with the next directive; any other',
		'response goes to the client, for example a redirect to a login page.',
		'',
		'`copy_headers` names fields of that response to copy to the request, renamed with `FIELD>NAME`; a block can',
		'list more, one or several per line. Fields of those names that the client sent are always removed first, whether or not the',
		'response has them, so later directives can trust them.',
		'',
		'All sub-directives of `reverse_proxy` are allowed too. The directive is a `reverse_proxy` with `method GET`, `rewrite <uri>`,',
		'`header_up` for the two fields, and a `handle_response` for status 2xx.',
		'',
		'```',
		'forward_auth /admin/* 127.0.0.1:9091 {',
		'	uri /api/verify',
		'	copy_headers Remote-User Remote-Groups>X-Groups',
		'}',
		'reverse_proxy 127.0.0.1:8080',
		'```',
	].join('\n'),
	matcherToken: 'optional',
	order: { rank: 190 },
	lower: (directive, cx) => {
		const { line, name } = directive;
		let verificationUri: string | undefined;
		const copiedHeaders: CopiedHeader[] = [];
		const step = lowerProxy(
			directive,
			{
				directiveName: 'forward_auth',
				usage: USAGE,
				ownSubdirectives: () => ({
					uri: (words, innerLine) => {
						if (!cx.noBlock(innerLine) || !cx.count(innerLine, words, 1, 1, 'uri <uri>')) return;
						if (verificationUri !== undefined) {
							cx.problem('error', 'forward-auth/uri-twice', words[0]!.span, `cannot re-declare uri: ${words[0]!.text}`);
							return;
						}
						verificationUri = cx.template(words[0]!);
					},
					copy_headers: (words, innerLine) => lowerCopyHeaders(words, innerLine, copiedHeaders, cx),
				}),
				finish: fields => {
					if (verificationUri === undefined) {
						cx.problem('error', 'forward-auth/no-uri', name.span, "the 'uri' subdirective is required", {
							hint: 'Add a line such as `uri /verify`.',
						});
					}
					fields.method = 'GET';
					fields.rewrite = verificationUri ?? '/';
					const forwardedFields = [
						{ name: 'X-Forwarded-Method', value: '{http.request.method}' },
						{ name: 'X-Forwarded-Uri', value: '{http.request.uri}' },
					];
					fields.header_up = { ...fields.header_up, set: [...forwardedFields, ...(fields.header_up?.set ?? [])] };
					const allowRule = { match: { status: ['2xx'] }, pipeline: copiedHeaders.flatMap(copyHeaderSteps) };
					fields.responses = [cx.origin(allowRule, line.span), ...(fields.responses ?? [])];
				},
			},
			cx,
		);
		return step;
	},
	schema: { properties: {} },
	compile: undefined,
});

/** Lowers a line `copy_headers A B>C { D … }`. */
function lowerCopyHeaders(words: readonly Word[], line: Line, copiedHeaders: CopiedHeader[], cx: LowerContext): void {
	const allWords = [...words, ...(line.block?.lines ?? []).flatMap(innerLine => innerLine.words)];
	if (allWords.length === 0) cx.count(line, words, 1, 1, 'copy_headers <field>[><name>]…');
	for (const word of allWords) {
		const separatorIndex = word.text.indexOf('>');
		const responseField = separatorIndex === -1 ? word.text : word.text.slice(0, separatorIndex);
		const requestField = separatorIndex === -1 ? word.text : word.text.slice(separatorIndex + 1);
		if (isToken(responseField) && isToken(requestField)) copiedHeaders.push({ responseField, requestField });
		else {
			const message = `\`${word.text}\` is not a valid header field.`;
			cx.problem('error', 'header/invalid-name', word.span, message, { hint: 'Write FIELD, or FIELD>NAME.' });
		}
	}
}

/**
 * Returns the steps that copy one field. They always remove the client's own field, and set the field from the response only if it
 * is not empty.
 */
function copyHeaderSteps({ responseField, requestField }: CopiedHeader): Step[] {
	const value = `{http.reverse_proxy.header.${responseField}}`;
	const emptyValueMatcher = { type: 'not', of: { type: 'vars', variables: { [value]: [''] } } };
	return [
		{ handler: 'edit_headers', request: { delete: [requestField] } },
		{ handler: 'edit_headers', when: emptyValueMatcher, request: { set: [{ name: requestField, value }] } },
	];
}
