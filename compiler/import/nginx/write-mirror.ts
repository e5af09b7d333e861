/** Writes `mirror`, whose copies an internal location sends to another server. */
import { word } from './configfile-writer.ts';
import type { ServerContext } from './import-context.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { hasVariable, sizeOf, type Variables } from './nginx-values.ts';
import { Scope } from './scope.ts';
import { Untranslatable } from './untranslatable.ts';
import { writeField } from './write-proxy.ts';
import { orKeep } from './write-rewrites.ts';
import { upstreamAddress } from './write-upstream.ts';

/** Directives that a location for copies may have, besides `proxy_set_header`, if it is to be translated. */
const PLAIN: ReadonlySet<string> = new Set(['internal', 'proxy_pass', 'proxy_set_header', 'proxy_pass_request_body']);

/** Writes the mirrors that apply in a scope. Copies have the path and query that the client sent. */
export function writeMirrors(scope: Scope, cx: ServerContext, variables: Variables): void {
	const mirrors = scope.all('mirror');
	const body = scope.last('mirror_request_body');
	let isWritten = false;
	for (const one of mirrors) {
		if (one.args[0] === 'off') cx.out.count(one);
		else isWritten = orKeep(one, cx.out, () => writeMirror(one, body, scope, cx, variables)) || isWritten;
	}
	if (!body) return;
	if (isWritten) cx.out.count(body);
	else if (mirrors.length > 0) cx.out.keep(body, 'no copy is sent');
}

function writeMirror(
	{ args: [path = ''] }: NginxDirective,
	body: NginxDirective | undefined,
	scope: Scope,
	cx: ServerContext,
	variables: Variables,
): void {
	const { out, pools } = cx;
	const block = cx.exact(path)?.block;
	if (!block) throw new Untranslatable('the copies are not sent by a location for exactly this path');
	const odd = block.find(({ name }) => !PLAIN.has(name));
	if (odd) throw new Untranslatable(`the location that sends the copies has \`${odd.name}\``);
	const passes = block.filter(({ name }) => name === 'proxy_pass');
	const [, scheme, host = ''] =
		/^(https?):\/\/(\[[^\]]*\](?::\d+)?|[^/$[\]]+)\$request_uri$/.exec(passes[0]?.args[0] ?? '') ?? [];
	if (passes.length !== 1 || scheme === undefined || hasVariable(host)) {
		throw new Untranslatable('only copies that `proxy_pass http://SERVER$request_uri` sends have a counterpart');
	}
	const inner = new Scope(cx.scope, block);
	const fields = inner.all('proxy_set_header').filter(({ args }) => args[0]?.toLowerCase() !== 'content-length');
	const isTls = scheme === 'https';
	const address = upstreamAddress(host, isTls ? 443 : 80);
	const to = pools.has(host) ? `upstream://${pools.use(host, [], isTls)}` : isTls ? `https://${address}` : address;
	const limit = bodyLine(body, inner, scope);
	out.block(`mirror ${word(to)}`, () => {
		out.line('rewrite {orig_uri}');
		if (!fields.some(({ args }) => args[0]?.toLowerCase() === 'host')) out.line(`header_up Host ${word(host)}`);
		for (const field of fields) writeField(field, cx, variables);
		if (limit !== undefined) out.line(limit);
	});
}

/** Returns the line about the bodies of copies, if one is needed. nginx limits these bodies only by those that it accepts. */
function bodyLine(body: NginxDirective | undefined, inner: Scope, scope: Scope): string | undefined {
	if (body?.args[0] === 'off' || inner.value('proxy_pass_request_body') === 'off') return 'body off';
	const limit = scope.value('client_max_body_size');
	if (limit === undefined || limit === '1m') return undefined;
	return limit === '0' ? 'body 64MiB' : `body ${sizeOf(limit)}`;
}
