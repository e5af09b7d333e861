/** `forward_auth`: asks another server whether a request may go on. */
import type { Step } from '../../document/document.ts';
import { isToken } from '../../exchange/field-syntax.ts';
import type { LowerContext } from '../../lower/lower-context.ts';
import type { Line, Word } from '../../syntax/ast.ts';
import { handlerDirective } from './directive.ts';
import { lowerProxy } from './reverse-proxy/lower-proxy.ts';

const USAGE = 'forward_auth [matcher] <upstream>… { uri <uri>; copy_headers <field>[><name>]…; … }';

/** A field of the answer, and the name under which the request gets it. */
interface CopiedField {
	readonly from: string;
	readonly to: string;
}

/** `forward_auth [matcher] <upstream>… { … }`. */
export const forwardAuth = handlerDirective<Step>({
	kind: 'handler',
	id: '',
	names: { configfile: ['forward_auth'], compatfile: ['forward_auth'] },
	usage: USAGE,
	summary: 'Lets a request go on only when another server agrees.',
	documentation: [
		'Sends a GET for `uri` without a body to the upstream, with the fields of the request and with `X-Forwarded-Method`,',
		'`X-Forwarded-Uri` and the usual `X-Forwarded-*`. With status 2xx the request goes on to the next directive; any other',
		'answer is the answer to the client: a redirect to a login page, say.',
		'',
		'`copy_headers` names fields of that answer which the request gets, under another name with `FIELD>NAME`; a block can',
		'hold more, one or several a line. Whatever the client sent under those names is removed first, whether the answer has',
		'the field or not: what stands behind can believe them.',
		'',
		'Every sub-directive of `reverse_proxy` can stand there too. It is a `reverse_proxy` with `method GET`, `rewrite <uri>`,',
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
		let uri: string | undefined;
		const copied: CopiedField[] = [];
		const step = lowerProxy(
			directive,
			{
				of: 'forward_auth',
				usage: USAGE,
				own: () => ({
					uri: (words, at) => {
						if (!cx.noBlock(at) || !cx.count(at, words, 1, 1, 'uri <uri>')) return;
						if (uri !== undefined) {
							cx.problem('error', 'forward-auth/uri-twice', words[0]!.span, `cannot re-declare uri: ${words[0]!.text}`);
							return;
						}
						uri = cx.template(words[0]!);
					},
					copy_headers: (words, at) => lowerCopied(words, at, copied, cx),
				}),
				settle: fields => {
					if (uri === undefined) {
						cx.problem('error', 'forward-auth/no-uri', name.span, "the 'uri' subdirective is required", {
							hint: 'Add a line such as `uri /verify`.',
						});
					}
					fields.method = 'GET';
					fields.rewrite = uri ?? '/';
					const own = [
						{ name: 'X-Forwarded-Method', value: '{http.request.method}' },
						{ name: 'X-Forwarded-Uri', value: '{http.request.uri}' },
					];
					fields.header_up = { ...fields.header_up, set: [...own, ...(fields.header_up?.set ?? [])] };
					const allowed = { match: { status: ['2xx'] }, pipeline: copied.flatMap(copySteps) };
					fields.responses = [cx.origin(allowed, line.span), ...(fields.responses ?? [])];
				},
			},
			cx,
		);
		return step;
	},
	schema: { properties: {} },
	compile: undefined,
});

/** `copy_headers A B>C { D … }`. */
function lowerCopied(words: readonly Word[], line: Line, copied: CopiedField[], cx: LowerContext): void {
	const all = [...words, ...(line.block?.lines ?? []).flatMap(one => one.words)];
	if (all.length === 0) cx.count(line, words, 1, 1, 'copy_headers <field>[><name>]…');
	for (const word of all) {
		const at = word.text.indexOf('>');
		const from = at === -1 ? word.text : word.text.slice(0, at);
		const to = at === -1 ? word.text : word.text.slice(at + 1);
		if (isToken(from) && isToken(to)) copied.push({ from, to });
		else {
			const message = `\`${word.text}\` names no header field.`;
			cx.problem('error', 'header/invalid-name', word.span, message, { hint: 'Write FIELD, or FIELD>NAME.' });
		}
	}
}

/** The client's own is always removed; the answer's is set only where it says something. */
function copySteps({ from, to }: CopiedField): Step[] {
	const value = `{http.reverse_proxy.header.${from}}`;
	const absent = { type: 'not', of: { type: 'vars', variables: { [value]: [''] } } };
	return [
		{ handler: 'edit_headers', request: { delete: [to] } },
		{ handler: 'edit_headers', when: absent, request: { set: [{ name: to, value }] } },
	];
}
